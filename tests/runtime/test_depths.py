"""Every depth of an encoder and other models' spaces: exported, opened, read back, and where their vectors meet."""

import json
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from commands import Runner, assert_refused, edit_json, flip_byte, raises, write_lines
from conftest import sentences
from trainings import export_command

from xsent import (
    Document,
    DocumentEncoder,
    FingerprintError,
    LinearClassifier,
    SearchIndex,
    build_index,
    extend_index,
    update_index,
)
from xsent.bundle import Bundle, compute_fingerprint
from xsent.encoder import SentenceEncoder
from xsent.errors import BackendError, BundleError, DataError
from xsent.files import vectors as vector_output
from xsent.fingerprint import same_space
from xsent.precision import pack_signs
from xsent.similarity import unit_rows
from xsent.verification import verify
from xsent_export.export import export
from xsent_export.graph import EncoderGraph
from xsent_export.hub import write_sentence_transformers
from xsent_export.options import BundleSpec, ExportOptions, Precision
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.derive import checkpoint_from_bundle
from xsent_train.model import Encoder

TEXTS = ["Anna, Boris, Clara and David.", "Greta et Lukas", "", "Irina und Jonas, " * 3]
DEPTHS = (0, 1, 2)
SPACE = "their-model"
FEW = {"tolerance": 20.0}  # of few pairs


@pytest.fixture(scope="module")
def exact(deep_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exact") / "bundle"
    return export(deep_checkpoint, out, ExportOptions(precision="float32", **FEW)).path


@pytest.mark.parametrize("backend", ["onnx", "numpy"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_each_depth_is_right(depth: int, backend: str, exact: Path, deep_bundle: Path, deep_checkpoint: Path) -> None:
    trained = CheckpointEncoder(load_checkpoint(deep_checkpoint), depth=depth).encode(TEXTS)
    encoder = SentenceEncoder(exact, layers=depth, backend=backend)
    np.testing.assert_allclose(encoder.encode(TEXTS), trained, atol=2e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS, truncate_dim=8), unit_rows(trained[:, :8]), atol=1e-5)
    small = SentenceEncoder(deep_bundle, layers=depth, backend=backend)
    assert (small.encode(TEXTS[:2]) * trained[:2]).sum(axis=1).min() > 0.999
    onnx = SentenceEncoder(deep_bundle, layers=depth)
    np.testing.assert_allclose(small.encode(TEXTS), onnx.encode(TEXTS), atol=1e-3)
    assert small.layers == depth and small.fingerprint.partition(".")[2] == ("" if depth == 2 else str(depth))


def test_layers_are_stored_once(deep_bundle: Path, mini_bundle: Path) -> None:
    graphs = {"model.onnx", "model.0.onnx", "model.1.onnx"}
    files = Bundle.open(deep_bundle).files
    assert set(files) == {file.name for file in mini_bundle.iterdir()} - {"xsent.json"} | graphs
    assert all(files[name].bytes < 40_000 for name in graphs)
    page, more = 4096, 3 * 3 + 1  # readouts with biases and queries, the matrix: each begins a page
    assert files["weights.bin"].bytes <= (mini_bundle / "weights.bin").stat().st_size + (more + 1) * page
    card = (deep_bundle / "README.md").read_text()
    assert "| layers | cosine to all | P@1 in all |" in card and f'space="{SPACE}"' in card
    near = Bundle.open(deep_bundle).parity["depths"]
    assert set(near) == {"0", "1"} and near["0"].keys() == {"cosine", "found"}
    held_out = [text for language in ("en", "de", "fr") for text in sentences(language)[::4]]
    whole, shallow = (SentenceEncoder(deep_bundle, layers=layers).encode(held_out) for layers in (2, 1))
    assert near["1"]["cosine"] == pytest.approx((whole * shallow).sum(axis=1).mean(), abs=0.02)


def test_a_matrix_leads_into_another_space(deep_bundle: Path, deep_checkpoint: Path) -> None:
    matrix = load_checkpoint(deep_checkpoint).weights[f"spaces.{SPACE}"].half().float().numpy()
    encoder = SentenceEncoder(deep_bundle, layers=1)
    by_hand = encoder.encode(TEXTS).astype(np.float64) @ matrix
    lengths = np.maximum(np.linalg.norm(by_hand, axis=1, keepdims=True), 1e-9)
    mapped = encoder.encode(TEXTS, space=SPACE)
    np.testing.assert_allclose(mapped, by_hand / lengths, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, space=SPACE, normalize_embeddings=False), by_hand, atol=1e-5)
    assert np.array_equal(list(encoder.encode_iter(TEXTS, space=SPACE)), mapped)
    assert np.array_equal(encoder.encode(TEXTS, space=SPACE, precision="binary"), np.array([*map(pack_signs, mapped)]))
    assert not mapped[2].any()  # an empty text


def test_what_a_bundle_lacks_is_one_line(deep_bundle: Path, mini_bundle: Path) -> None:
    message = rf"{mini_bundle}: has only depth 2; layers=4 is not among them$"
    raises(BundleError, message, SentenceEncoder, mini_bundle, layers=4)
    raises(TypeError, "layers = '1' must be a whole number", SentenceEncoder, deep_bundle, layers="1")
    message = f"{mini_bundle} cannot map into another model's space; omit it"
    raises(ValueError, message, SentenceEncoder(mini_bundle).encode, "Anna", space=SPACE)


@pytest.fixture
def bundle(deep_bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(deep_bundle, tmp_path / "bundle"))


def test_the_graph_of_each_depth_is_checked(bundle: Path) -> None:
    assert verify(bundle).files == 7
    flip_byte(bundle / "model.1.onnx")
    SentenceEncoder(bundle, layers=0)  # does not read it
    for work in (lambda: SentenceEncoder(bundle, layers=1), lambda: verify(bundle)):
        raises(BundleError, r"model\.1\.onnx: damaged", work)
    (bundle / "model.1.onnx").unlink()
    raises(BundleError, r"model\.1\.onnx: missing", SentenceEncoder, bundle)
    manifest, graph = json.loads((bundle / "xsent.json").read_bytes()), b"\xff" * 100
    (bundle / "model.1.onnx").write_bytes(graph)
    manifest["files"]["model.1.onnx"] = {"bytes": len(graph), "sha256": sha256(graph).hexdigest()}
    manifest["fingerprint"] = compute_fingerprint(manifest)
    (bundle / "xsent.json").write_text(json.dumps(manifest))
    raises(BundleError, r"model\.1\.onnx: cannot be loaded .*; copy the whole bundle again", verify, bundle)


def test_a_manifest_that_cannot_be(bundle: Path) -> None:
    manifest = json.loads((bundle / "xsent.json").read_bytes())
    for fields, message in [
        ({"depths": [1, 0, 2]}, r"depths \[1, 0, 2\] do not ascend to all 2 layers"),
        ({"depths": [0, 1]}, "do not ascend to all 2 layers"),
        ({"depths": []}, "do not ascend"),
        ({"depths": [0, 1.5, 2]}, "'depths' is of type float"),
        ({"spaces": ["other"]}, "no matrix with 32 rows for the space other"),
        ({"spaces": ["v1.5"]}, "spaces: 'v1.5' is not a valid name; expected only letters"),
        ({"spaces": ["a@b"]}, "is not a valid name"),
        ({"depths": [0, 2]}, "fingerprint"),
        ({"spaces": []}, "fingerprint"),
    ]:
        (bundle / "xsent.json").write_text(json.dumps(manifest | fields))
        raises(BundleError, message, Bundle.open, bundle)


@pytest.mark.parametrize("precision", ["int8", "int4-table"])
def test_a_bundle_and_its_checkpoint_and_back(precision: Precision, deep_checkpoint: Path, tmp_path: Path) -> None:
    options = ExportOptions(precision=precision, least_cosine=0.9, **FEW)
    bundle = export(deep_checkpoint, tmp_path / "bundle", options).path
    checkpoint = checkpoint_from_bundle(bundle)
    assert checkpoint.config.depths == DEPTHS and f"spaces.{SPACE}" in checkpoint.weights
    pairs = deep_checkpoint / "validation.tsv"
    again = export(bundle, tmp_path / "again", replace(options, precision=None, gate_data=pairs))
    assert again.fingerprint == Bundle.open(bundle).fingerprint


@pytest.mark.parametrize("depth", [0, 1])
def test_a_part_has_depths_that_it_reaches(
    depth: int, deep_bundle: Path, deep_checkpoint: Path, tmp_path: Path
) -> None:
    options = ExportOptions(num_layers=depth, gate_data=deep_checkpoint / "validation.tsv", **FEW)
    part = SentenceEncoder(export(deep_bundle, tmp_path / "part", options).path)
    assert part.bundle.depths == DEPTHS[: depth + 1] and part.bundle.spaces == (SPACE,)
    whole = SentenceEncoder(deep_bundle, layers=depth)
    np.testing.assert_allclose(part.encode(TEXTS), whole.encode(TEXTS), atol=1e-5)
    checkpoint_from_bundle(part.bundle.path)
    with pytest.raises(DataError, match="--layers 3 was not trained, 0, 1 and 2 were"):
        export(deep_bundle, tmp_path / "none", ExportOptions(num_layers=3))


def test_fewer_numbers_leave_no_space_and_fewer_languages_do(deep_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(deep_checkpoint)
    trained = replace(checkpoint, about={**checkpoint.about, "trained": {"prefixes": [16, 32], "layers": []}})
    bundle = export(trained, tmp_path / "out", ExportOptions(dim=16, precision="float32", **FEW)).path
    for depth in DEPTHS:
        encoder = SentenceEncoder(bundle, layers=depth)
        exact = CheckpointEncoder(checkpoint, depth=depth, dim=16).encode(TEXTS)
        np.testing.assert_allclose(encoder.encode(TEXTS), exact, atol=1e-5)
        assert encoder.bundle.spaces == ()
    options = ExportOptions(languages=["en", "fr"], sample=deep_checkpoint / "validation.tsv", **FEW)
    small = SentenceEncoder(export(deep_checkpoint, tmp_path / "small", options).path, layers=1)
    assert small.languages == ("en", "fr") and small.bundle.spaces == (SPACE,)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["onnx", "web"])
def test_other_tools_get_a_readout(kind: str, depth: int, deep_checkpoint: Path, tmp_path: Path) -> None:
    arguments = [deep_checkpoint, tmp_path / "out", "--format", kind, "--layers", depth, "--tolerance", 20]
    code, told, err = export_command(*arguments)  # which measures it
    assert code == 0 and "P@1 bundle" in told, err


def test_openvino_has_all_layers_alone(deep_checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    bundle = export(deep_checkpoint, tmp_path / "out", ExportOptions("openvino", "float32", **FEW)).path
    verify(bundle, "openvino")
    with pytest.raises(BackendError, match="supports only the full 2 layers; omit layers=1"):
        SentenceEncoder(bundle, layers=1, backend="openvino")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "dim", "weighs", "atol"),  # a layer leaves out the direction in which a readout says least
    [(0, 32, True, 2e-3), (1, 32, False, 1e-5), (2, 32, True, 2e-3), (2, 16, False, 1e-5)],
)
def test_sentence_transformers_reads_a_readout(
    depth: int, dim: int, weighs: bool, atol: float, deep_checkpoint: Path, tmp_path: Path
) -> None:
    library = pytest.importorskip("sentence_transformers")
    checkpoint = load_checkpoint(deep_checkpoint)
    weights = dict(checkpoint.weights)
    query, *linear = (f"encoder.readouts.{depth}.{part}" for part in ("query", "weight", "bias"))
    if weighs:  # here one in which it says nothing
        weights |= {name: weights[name] - weights[name].mean(dim=0) for name in linear}
    else:
        weights[query] = torch.zeros(32)
    checkpoint = replace(checkpoint, weights=weights)
    trained = replace(checkpoint, about={**checkpoint.about, "trained": {"prefixes": [16, 32], "layers": []}})
    options = ExportOptions("sentence-transformers", num_layers=depth, dim=dim, **FEW)
    folder = export(trained, tmp_path / "out", options).path
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=False)
    middle = [] if weighs else ["Dense"]  # a readout that weighs the tokens is one more layer
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", *middle, "Normalize"]
    assert model[0].auto_model.config.num_hidden_layers == depth + weighs
    exact = CheckpointEncoder(checkpoint, depth=depth, dim=dim).encode(TEXTS)
    found = model.encode(TEXTS)
    np.testing.assert_allclose(found[[0, 1, 3]], exact[[0, 1, 3]], atol=atol)
    assert np.isfinite(model.half().encode(TEXTS)).all()  # as on a GPU


@pytest.mark.slow
def test_the_layer_that_weighs_is_what_the_export_measures(deep_checkpoint: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    spec = BundleSpec(2, 32, "float32")
    (tmp_path / "out").mkdir()
    written = write_sentence_transformers(load_checkpoint(deep_checkpoint), spec, tmp_path / "out")
    model = library.SentenceTransformer(str(tmp_path / "out"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(model.encode(TEXTS[:2]), written.encode(TEXTS[:2]), atol=1e-5)
    exact = CheckpointEncoder(load_checkpoint(deep_checkpoint)).encode(TEXTS[:2])
    assert 0.99 < (written.encode(TEXTS[:2]) * exact).sum(axis=1).min() < 0.99999  # random numbers leave no room


def test_a_graph_for_tools_that_pool_has_the_vector_at_each_token(deep_checkpoint: Path, tmp_path: Path) -> None:
    export(deep_checkpoint, tmp_path / "out", ExportOptions("onnx", **FEW))
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    given = {"input_ids": np.array([[3, 9, 4, 0]]), "attention_mask": np.array([[1, 1, 1, 0]])}
    vector, states = session.run(["sentence_embedding", "last_hidden_state"], given)
    np.testing.assert_array_equal(states, np.repeat(vector[:, None], 4, axis=1))


def test_a_plain_mean_is_read_from_a_bundle(deep_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(deep_checkpoint)
    assert Bundle.open(export(checkpoint, tmp_path / "weighs", ExportOptions(**FEW)).path).pooling == "attention"
    plain = {name: 0 * weight if "query" in name else weight for name, weight in checkpoint.weights.items()}
    bundle = export(replace(checkpoint, weights=plain), tmp_path / "plain", ExportOptions(**FEW)).path
    assert (Bundle.open(bundle).pooling, Bundle.open(bundle).format_version) == ("mean", 4)
    names = [name for name in plain if "query" in name]
    assert len(names) == 3 and not any(checkpoint_from_bundle(bundle).weights[name].any() for name in names)
    exact = SentenceEncoder(bundle).encode(TEXTS)
    np.testing.assert_allclose(SentenceEncoder(bundle, backend="numpy").encode(TEXTS), exact, atol=1e-4)


def test_a_bad_export_of_a_depth_is_refused(
    deep_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = EncoderGraph._branch

    def early(self: EncoderGraph, encoder: Encoder, depth: int, _: str) -> None:
        right(self, encoder, depth, "by_token" if depth else "table_norm")  # as if no layer had been

    monkeypatch.setattr(EncoderGraph, "_branch", early)
    outcome = export_command(deep_checkpoint, tmp_path / "out", "--tolerance", 100)
    assert_refused(outcome, "the exported encoder with layers=1 differs too much from the trained one: de mean cosine")


ENGLISH, GERMAN = sentences("en"), sentences("de")


def test_an_index_is_searched_by_any_depth_and_keeps_to_its_own(deep_bundle: Path, tmp_path: Path) -> None:
    whole, shallow = (SentenceEncoder(deep_bundle, layers=layers, threads=1) for layers in (2, 1))
    for made, other, advice in ((whole, shallow, "omit --layers 1"), (shallow, whole, "add --layers 1")):
        lines, notes = (tmp_path / f"{kind} {made.layers}" for kind in ("lines", "notes"))
        build_index(lines, ENGLISH, made)
        update_index(notes, [], made)
        hits = SearchIndex(lines).search(other, ENGLISH[:3], 1, words=False)
        cosines = (made.encode(ENGLISH) @ other.encode(ENGLISH[:3]).T).max(axis=0)
        assert [hit.score for (hit,) in hits] == pytest.approx(cosines, abs=1e-3)
        both = f"has vectors of {made.fingerprint}, the model is {other.fingerprint}; an index has one depth"
        raises(FingerprintError, f"{both}; {advice}, or build the index again$", extend_index, lines, ["Anna"], other)
        new = [Document("a", "1", [(1, "Anna")])]
        raises(FingerprintError, f"{both}; {advice}", update_index, notes, new, other)


def test_heads_and_fits_are_used_with_fewer_layers(deep_bundle: Path, tmp_path: Path) -> None:
    whole, shallow = (SentenceEncoder(deep_bundle, layers=layers) for layers in (2, 1))
    labels = ["en"] * len(ENGLISH) + ["de"] * len(GERMAN)
    head, file = LinearClassifier.fit(whole.encode(ENGLISH + GERMAN), labels, fingerprint=whole.fingerprint), "head.npz"
    head.save(tmp_path / file)
    assert LinearClassifier.load(tmp_path / file, fingerprint=shallow.fingerprint).fingerprint == whole.fingerprint
    fitted = DocumentEncoder(whole).fit({"en": [[text] for text in ENGLISH]})
    fitted.save(tmp_path / "space")
    loaded = DocumentEncoder.load(tmp_path / "space", shallow)
    assert loaded.fingerprint == f"{fitted.fingerprint}.1" and same_space(loaded.fingerprint, fitted.fingerprint)


def test_commands_with_vectors_of_two_depths_and_spaces(
    run: Runner, deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert_refused(run(*mine, made["both"]), f"has vectors of {name}@{SPACE}.1, the model is {name}; use --model")
    assert_refused(run(*mine, made["all"], "--src-vectors", made["their"]), f"{name}@{SPACE}, .* of {name}; use one")
    encoded = SentenceEncoder(deep_bundle, layers=1).encode(GERMAN[::4], space=SPACE)
    assert np.array_equal(np.load(made["both"]), encoded)
    monkeypatch.setattr(vector_output, "STEP", 2)
    text, name = tmp_path / "a.txt", SentenceEncoder(deep_bundle).fingerprint
    text.write_bytes("\n".join(ENGLISH * 5).encode() + b"\n\x81\n")
    command = ("encode", text, "--output", tmp_path / "a.npy", "--model", deep_bundle, "--threads", 1)
    code, _, err = run(*command)
    assert code == 1 and "not UTF-8" in err
    for options, other in ((("--layers", 1), f"{name}.1"), (("--space", SPACE), f"{name}@{SPACE}")):
        assert_refused(run(*command, "--resume", *options), f"fingerprint was {name}, is now {other}; use the same")


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
        given, message = ("--model", deep_bundle), "has depths 0, 1 and 2; --layers 9 is not among them"
        assert_refused(run(*command, *given, "--layers", 9), message)
        if place in (1, 2, 3, 12):
            assert_refused(run(*command, *given, "--space", "other"), f"--space other must be one of {SPACE}")
    assert not (tmp_path / "new").exists() and not head.exists()
    assert_refused(run("encode", text, "--model", deep_bundle, "--space", SPACE, "--truncate-dim", 8), "omit one")
    assert_refused(
        run("similarity", "a", "b", "--model", mini_checkpoint, "--layers", 1), "not a bundle, and only bundles"
    )


def test_commands_run_as_many_layers_as_asked(run: Runner, deep_bundle: Path, tmp_path: Path) -> None:
    text, index = write_lines(tmp_path / "a.txt", ENGLISH), tmp_path / "index"
    options = ("--model", deep_bundle, "--space", SPACE)
    assert run("index", text, index, *options)[0] == 0 == run("index", text, index, "--add", *options)[0]
    name = SentenceEncoder(deep_bundle).fingerprint
    message = f"has vectors of {name}@{SPACE}, the model is {name}; use the model of the index and"
    for command in (("search", index, "Anna"), ("index", text, index, "--add")):
        assert_refused(run(*command, "--model", deep_bundle), message)
    assert run("search", index, ENGLISH[2], *options, "-n", 1, "--no-words")[1].startswith("1.0000\t3\t")
    out = run("search", index, ENGLISH[2], *options, "-n", 1, "--layers", 1, "--json")[1]
    assert json.loads(out.splitlines()[0])["score"] < 0.9999
    assert_refused(run("index", text, index, "--add", *options, "--layers", 1), "omit --layers 1, or build")
    cosine = float(run("similarity", *ENGLISH[:2], "--model", deep_bundle, "--layers", 0)[1])
    left, right = SentenceEncoder(deep_bundle, layers=0).encode(ENGLISH[:2])
    assert cosine == pytest.approx(left @ right, abs=1e-4)
    _, out, _ = run("info", deep_bundle)
    assert re.search(r"^depths +0, 1, 2\n(.*\n)*spaces +their-model\n", out, re.M) and "Fewer layers against all" in out
    assert json.loads(run("info", deep_bundle, "--json")[1])["depths"] == [0, 1, 2]
    write_lines(tmp_path / "en-de.tsv", [f"{a}\t{b}" for a, b in zip(ENGLISH[::4], GERMAN[::4], strict=True)])
    command = ("evaluate", "space", tmp_path, "--model", deep_bundle, "--english-by", deep_bundle, "--json")
    report, (_, out, _) = json.loads(run(*command, "--layers", 1)[1].splitlines()[0]), run(*command[:-1])
    assert "cosine_across" in out and "English encoded by the other model" in out
    assert report["english_by"] == str(deep_bundle)
    shallow, theirs = SentenceEncoder(deep_bundle, layers=1), SentenceEncoder(deep_bundle).encode(ENGLISH[::4])
    assert (report["space"], report["fingerprint"]) == (SPACE, shallow.fingerprint_of(SPACE))
    expected = (shallow.encode(ENGLISH[::4], space=SPACE) * theirs).sum(axis=1).mean()
    assert report["cosine_english"] == pytest.approx(float(expected), abs=1e-4)


def test_a_bundle_that_lies_in_a_space_is_not_mapped(mini_bundle: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    edit_json(bundle / "xsent.json", space="sentence-transformers/all-MiniLM-L6-v2")
    encoder = SentenceEncoder(bundle, threads=1)
    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        assert np.array_equal(encoder.encode(ENGLISH[:2], space=name), encoder.encode(ENGLISH[:2]))
        assert encoder.fingerprint_of(name) == encoder.fingerprint
        with pytest.raises(ValueError, match="truncate_dim = 8 cannot be combined with space"):
            encoder.encode("Anna", space=name, truncate_dim=8)
    raises(ValueError, r"space = 'other' must be one of all-MiniLM-L6-v2$", encoder.encode, "Anna", space="other")
