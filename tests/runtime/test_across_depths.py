"""Vectors of several depths and spaces meet: indexes, pairs, heads, documents, and the commands that make them."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, edit_json, raises, write_lines
from conftest import sentences
from indexes import LINES

from xsent import (
    Document,
    DocumentEncoder,
    FingerprintError,
    LinearClassifier,
    SearchIndex,
    SentenceEncoder,
    build_index,
    extend_index,
    update_index,
)
from xsent.bundle import same_space
from xsent.files import vectors as vector_output

ENGLISH, GERMAN = sentences("en"), sentences("de")
SPACE = "their-model"


def test_an_index_is_searched_by_any_depth_and_keeps_to_its_own(deep_bundle: Path, tmp_path: Path) -> None:
    whole, shallow = (SentenceEncoder(deep_bundle, layers=layers, threads=1) for layers in (2, 1))
    for made, other, advice in ((whole, shallow, "leave --layers 1 out"), (shallow, whole, "give --layers 1")):
        lines, notes = (tmp_path / f"{kind} {made.layers}" for kind in ("lines", "notes"))
        build_index(lines, ENGLISH, made)
        update_index(notes, [], made)
        hits = SearchIndex(lines).search(other, ENGLISH[:3], 1, words=False)
        cosines = (made.encode(ENGLISH) @ other.encode(ENGLISH[:3]).T).max(axis=0)
        assert [hit.score for (hit,) in hits] == pytest.approx(cosines, abs=1e-3)
        both = f"has vectors of {made.fingerprint}, the model makes {other.fingerprint}: an index keeps to one depth"
        raises(FingerprintError, f"{both}, {advice}, or build the index again$", extend_index, lines, ["Anna"], other)
        new = [Document("a", "1", [(1, "Anna")])]
        raises(FingerprintError, f"{both}, {advice}", update_index, notes, new, other)
    path = tmp_path / "index"
    state = build_index(path, LINES, whole, space=SPACE)
    assert state.fingerprint == f"{whole.fingerprint}@{SPACE}"
    extend_index(path, ["Greta"], whole, space=SPACE)
    assert SearchIndex(path).search(whole, ["Greta"], 1, space=SPACE)[0][0].line == len(LINES) + 1
    assert SearchIndex(path).search(shallow, ["Greta"], 1, space=SPACE, words=False)[0][0].score < 0.999
    message = f"has vectors of {state.fingerprint}, the model makes {whole.fingerprint}: use the model of the index and"
    for work in (SearchIndex(path).search, lambda *about: extend_index(path, *reversed(about))):
        raises(FingerprintError, message, work, whole, ["Greta"])


def test_heads_and_fits_are_used_with_fewer_layers(deep_bundle: Path, encoder: SentenceEncoder, tmp_path: Path) -> None:
    whole, shallow = (SentenceEncoder(deep_bundle, layers=layers) for layers in (2, 1))
    labels = ["en"] * len(ENGLISH) + ["de"] * len(GERMAN)
    head, file = LinearClassifier.fit(whole.encode(ENGLISH + GERMAN), labels, fingerprint=whole.fingerprint), "head.npz"
    head.save(tmp_path / file)
    assert LinearClassifier.load(tmp_path / file, fingerprint=shallow.fingerprint).fingerprint == whole.fingerprint
    both = f"{whole.fingerprint}, the model is {encoder.fingerprint}"
    raises(FingerprintError, both, LinearClassifier.load, tmp_path / file, fingerprint=encoder.fingerprint)
    fitted = DocumentEncoder(whole, weighted=False).fit({"en": [[text] for text in ENGLISH]})
    fitted.save(tmp_path / "space")
    loaded = DocumentEncoder.load(tmp_path / "space", shallow)
    assert loaded.fingerprint == f"{fitted.fingerprint}.1" and same_space(loaded.fingerprint, fitted.fingerprint)
    message = "was fitted on sentence vectors of"
    raises(FingerprintError, message, DocumentEncoder.load, tmp_path / "space", encoder)


def test_commands_with_vectors_of_two_depths_and_of_two_spaces(run: Runner, deep_bundle: Path, tmp_path: Path) -> None:
    model, few = ("--model", deep_bundle), ("--layers", 1)
    en, de = write_lines(tmp_path / "en.txt", ENGLISH[::4]), write_lines(tmp_path / "de.txt", GERMAN[::4])
    made = {}
    for name, options in {"all": (), "few": few, "their": ("--space", SPACE), "both": ("--space", SPACE, *few)}.items():
        made[name] = tmp_path / f"{name}.npy"
        assert run("encode", de, "--output", made[name], *model, *options)[0] == 0
    mine = ("mine", en, de, *model, "--retrieval", "fwd", "--trg-vectors")
    assert run(*mine, made["few"])[0] == run(*mine, made["all"], *few)[0] == 0
    assert run(*mine, made["both"], "--src-vectors", made["their"])[0] == 0
    notes = [json.loads(Path(f"{path}.json").read_bytes())["fingerprint"] for path in made.values()]
    name = SentenceEncoder(deep_bundle).fingerprint
    assert notes == [name, f"{name}.1", f"{name}@{SPACE}", f"{name}@{SPACE}.1"]
    assert_refused(run(*mine, made["both"]), f"has vectors of {name}@{SPACE}.1, the model makes {name}; --model")
    assert_refused(run(*mine, made["all"], "--src-vectors", made["their"]), f"{name}@{SPACE}, .* of {name}: use one")
    encoded = SentenceEncoder(deep_bundle, layers=1).encode(GERMAN[::4], space=SPACE)
    assert np.array_equal(np.load(made["both"]), encoded)


def test_an_output_keeps_its_depth(
    run: Runner, deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_output, "STEP", 2)
    text, name = tmp_path / "a.txt", SentenceEncoder(deep_bundle).fingerprint
    text.write_bytes("\n".join(ENGLISH * 5).encode() + b"\n\xff\n")
    command = ("encode", text, "--output", tmp_path / "a.npy", "--model", deep_bundle, "--threads", 1)
    code, _, err = run(*command)
    assert code == 1 and "not UTF-8" in err
    for options, other in ((("--layers", 1), f"{name}.1"), (("--space", SPACE), f"{name}@{SPACE}")):
        assert_refused(run(*command, "--resume", *options), f"fingerprint was {name}, is now {other}; give the same")


def test_what_a_model_lacks_is_one_line(run: Runner, deep_bundle: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    text, index, head = write_lines(tmp_path / "a.txt", ENGLISH), tmp_path / "index", tmp_path / "head.npz"
    assert run("index", text, index, "--model", deep_bundle)[0] == 0
    labelled = write_lines(tmp_path / "en-fr.tsv", [f"x\t{text}" for text in ENGLISH])
    commands: list[tuple[object, ...]] = [
        ("similarity", "a", "b"),
        ("encode", text),
        ("index", text, tmp_path / "new"),
        ("search", index, "Anna"),
        ("mine", text, text),
        ("duplicates", text),
        ("score", labelled),
        ("classify", "fit", labelled, head),
        ("classify", "predict", head, text),
        ("classify", "evaluate", labelled, labelled),
        ("documents", "align", text, text, "--languages", "en,de"),
        ("evaluate", "tatoeba", tmp_path),
        ("evaluate", "space", tmp_path, "--english-by", deep_bundle),
    ]
    for place, command in enumerate(commands):
        given, message = ("--model", deep_bundle), "has depths 0, 1 and 2; layers=9 is not among them"
        assert_refused(run(*command, *given, "--layers", 9), message)
        if place in (1, 2, 3, 12):
            assert_refused(run(*command, *given, "--space", "other"), f"space = 'other' must be one of {SPACE}")
    assert not (tmp_path / "new").exists() and not head.exists()
    assert_refused(run("encode", text, "--model", deep_bundle, "--space", SPACE, "--truncate-dim", 8), "leave one out")
    assert_refused(run("similarity", "a", "b", "--model", mini_checkpoint, "--layers", 1), "no bundle, and only those")


def test_commands_run_as_many_layers_as_asked(run: Runner, deep_bundle: Path, tmp_path: Path) -> None:
    text, index = write_lines(tmp_path / "a.txt", ENGLISH), tmp_path / "index"
    options = ("--model", deep_bundle, "--space", SPACE)
    assert run("index", text, index, *options)[0] == 0
    assert run("search", index, ENGLISH[2], *options, "-k", 1, "--no-words")[1].startswith("1.0000\t3\t")
    out = run("search", index, ENGLISH[2], *options, "-k", 1, "--layers", 1, "--json")[1]
    assert json.loads(out)["hits"][0]["score"] < 0.9999
    assert_refused(run("index", text, index, "--add", *options, "--layers", 1), "leave --layers 1 out, or build")
    cosine = float(run("similarity", *ENGLISH[:2], "--model", deep_bundle, "--layers", 0)[1])
    left, right = SentenceEncoder(deep_bundle, layers=0).encode(ENGLISH[:2])
    assert cosine == pytest.approx(left @ right, abs=1e-4)
    _, out, _ = run("info", deep_bundle)
    assert re.search(r"^depths +0, 1, 2\n(.*\n)*spaces +their-model\n", out, re.M) and "Fewer layers against all" in out
    assert json.loads(run("info", deep_bundle, "--json")[1])["depths"] == [0, 1, 2]
    write_lines(tmp_path / "en-de.tsv", [f"{a}\t{b}" for a, b in zip(ENGLISH[::4], GERMAN[::4], strict=True)])
    command = ("evaluate", "space", tmp_path, "--model", deep_bundle, "--english-by", deep_bundle, "--json")
    report, (_, out, _) = json.loads(run(*command, "--layers", 1)[1]), run(*command[:-1])
    assert "cosine_across" in out and "English encoded by the other model" in out
    assert report["english_by"] == str(deep_bundle)
    shallow, theirs = SentenceEncoder(deep_bundle, layers=1), SentenceEncoder(deep_bundle).encode(ENGLISH[::4])
    assert (report["space"], report["fingerprint"]) == (SPACE, shallow.fingerprint_of(SPACE))
    expected = (shallow.encode(ENGLISH[::4], space=SPACE) * theirs).sum(axis=1).mean()
    assert report["rows"][0]["cosine_english"] == pytest.approx(float(expected), abs=1e-4)


def test_a_bundle_that_lies_in_a_space_is_not_mapped(mini_bundle: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    edit_json(bundle / "xsent.json", space="sentence-transformers/all-MiniLM-L6-v2")
    encoder = SentenceEncoder(bundle, threads=1)
    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        assert np.array_equal(encoder.encode(ENGLISH[:2], space=name), encoder.encode(ENGLISH[:2]))
        assert encoder.fingerprint_of(name) == encoder.fingerprint
        with pytest.raises(ValueError, match="truncate_dim = 8 cuts no vector of another model's space"):
            encoder.encode("Anna", space=name, truncate_dim=8)
    raises(ValueError, r"space = 'other' must be one of all-MiniLM-L6-v2$", encoder.encode, "Anna", space="other")
