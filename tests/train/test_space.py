"""A space that is added to a bundle: what it finds, what stays valid, and what is refused."""

import json
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, flip_byte, raises, write_lines
from conftest import NAMES
from numpy.typing import NDArray
from trainings import command

from xsent import SearchIndex, SentenceEncoder, build_index, semantic_search
from xsent.bundle import Bundle
from xsent.errors import BundleError
from xsent.fingerprint import same_space
from xsent.verification import verify
from xsent_export.export import export
from xsent_export.options import ExportOptions

WIDTH = 36  # numbers of the other model's vectors
SPACE = "old-model"
TEXTS = [", ".join(names) for names in combinations(NAMES, 5)]
random.Random(2).shuffle(TEXTS)
TEXTS, NEW = TEXTS[:600], TEXTS[600:660]


def their_vectors(bundle: Path, texts: list[str]) -> NDArray[np.float32]:
    """Another model: a bent projection of this one's vectors, not of length 1."""
    projection = np.random.default_rng(4).normal(size=(SentenceEncoder(bundle).dim, WIDTH))
    return np.tanh(SentenceEncoder(bundle).encode(texts) @ projection).astype(np.float32)


@pytest.fixture(scope="module")
def arguments(deep_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """The bundle, the texts and the other model's vectors."""
    folder = tmp_path_factory.mktemp("theirs")
    np.save(folder / "old.npy", their_vectors(deep_bundle, TEXTS))
    return deep_bundle, write_lines(folder / "texts.txt", TEXTS), folder / "old.npy"


@pytest.fixture(scope="module")
def added(arguments: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("added") / "bundle"
    code, said, error = command("add-space", *arguments, "--name", SPACE, "--out", out, "--json")
    assert code == 0, error
    report = json.loads(said)
    assert (report["texts"], report["held_out"]) == (540, 60)
    assert report["found"] > 80 and report["cosine"] > 0.8
    assert f"{report['found']}% find the other model's vector" in (out / "README.md").read_text()
    assert report["fingerprint"] == Bundle.open(out).fingerprint_of(SPACE)
    return out


def test_an_index_of_the_other_model_is_found(added: Path, deep_bundle: Path) -> None:
    index, encoder = their_vectors(deep_bundle, NEW), SentenceEncoder(added)
    queries = encoder.encode(NEW, space=SPACE)
    assert queries.shape == (len(NEW), WIDTH) and encoder.dim_of(SPACE) == WIDTH
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 1, atol=1e-5)
    best = [hits[0]["corpus_id"] for hits in semantic_search(queries, index, top_k=1)]
    assert np.mean(np.array(best) == np.arange(len(NEW))) > 0.6
    raises(ValueError, "binary", encoder.encode, NEW, space=SPACE, precision="binary")  # 36 is not a multiple of 8


def test_what_the_bundle_made_before_stays_valid(added: Path, deep_bundle: Path, run: Runner, tmp_path: Path) -> None:
    before, after = SentenceEncoder(deep_bundle), SentenceEncoder(added)
    assert verify(added).fingerprint == before.fingerprint and after.bundle.spaces == ("their-model", SPACE)
    assert after.fingerprint_of("their-model") == before.fingerprint_of("their-model")
    assert np.array_equal(before.encode(TEXTS[:5]), after.encode(TEXTS[:5]))
    build_index(tmp_path / "index", TEXTS[:50], before)
    [hits] = SearchIndex(tmp_path / "index").search(after, [TEXTS[3]], k=1)
    assert hits[0].line == 4
    text = write_lines(tmp_path / "a.txt", TEXTS[:9])
    mapped, options = tmp_path / "mapped.index", ("--model", added, "--space", SPACE)
    assert run("index", text, mapped, *options)[0] == 0
    assert run("search", mapped, TEXTS[2], *options, "-n", 1, "--no-words")[1].startswith("1.0000\t3\t")
    assert_refused(run("search", mapped, "Anna", "--model", added), f"{before.fingerprint}@{SPACE}-")
    assert run("encode", text, "--output", tmp_path / "a.npy", *options)[0] == 0
    assert np.load(tmp_path / "a.npy").shape == (9, WIDTH)


def test_another_matrix_is_another_space(added: Path, arguments: tuple[object, ...], tmp_path: Path) -> None:
    bundle, texts, vectors = arguments
    np.save(tmp_path / "other.npy", np.load(str(vectors))[:, ::-1])
    made = tmp_path / "bundle"
    assert command("add-space", bundle, texts, tmp_path / "other.npy", "--name", SPACE, "--out", made)[0] == 0
    assert not same_space(Bundle.open(added).fingerprint_of(SPACE), Bundle.open(made).fingerprint_of(SPACE))


def test_an_export_keeps_the_added_space(added: Path, deep_checkpoint: Path, tmp_path: Path) -> None:
    options = ExportOptions(tolerance=20, gate_data=deep_checkpoint / "validation.tsv")
    again = Bundle.open(export(added, tmp_path / "again", options).path)
    assert again.fingerprint == Bundle.open(added).fingerprint
    assert again.fingerprint_of(SPACE) == Bundle.open(added).fingerprint_of(SPACE)


def test_the_matrix_is_checked(added: Path, deep_bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "bundle" / f"space.{SPACE}.bin"
    (tmp_path / "bundle").mkdir()
    for known in added.iterdir():
        (tmp_path / "bundle" / known.name).write_bytes(known.read_bytes())
    flip_byte(file)
    raises(BundleError, f"space.{SPACE}.bin: damaged", verify, tmp_path / "bundle")
    file.unlink()
    raises(BundleError, f"space.{SPACE}.bin: missing", Bundle.open, tmp_path / "bundle")


def test_what_does_not_fit_is_one_line(arguments: tuple[object, ...], added: Path, tmp_path: Path) -> None:
    bundle, texts, vectors = arguments
    out, rows = tmp_path / "out", np.load(str(vectors))
    wrong = {
        "short": rows[:-1],
        "flat": rows[0],
        "words": np.array(["a"] * 600),
        "zero": np.where(np.arange(600)[:, None] == 5, 0, rows),
        "nan": np.where(np.arange(600)[:, None] == 5, np.nan, rows),
    }
    for name, array in wrong.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "few.npy", rows[:20])
    np.savez(tmp_path / "archive.npz", rows=rows)
    blank = write_lines(tmp_path / "blank.txt", [" "] * 20)
    few = write_lines(tmp_path / "few.txt", TEXTS[:20])
    for given, name, message in [
        ((bundle, texts, tmp_path / "short.npy"), SPACE, "short.npy: 599 vectors for the 600 lines"),
        ((bundle, texts, tmp_path / "flat.npy"), SPACE, "flat.npy: float32 of shape [36]; expected an array"),
        ((bundle, texts, tmp_path / "words.npy"), SPACE, "words.npy: <U1 of shape [600]"),
        ((bundle, texts, tmp_path / "zero.npy"), SPACE, "zero.npy: has vectors that are zero or not finite"),
        ((bundle, texts, tmp_path / "nan.npy"), SPACE, "nan.npy: has vectors that are zero or not finite"),
        ((bundle, texts, tmp_path / "none.npy"), SPACE, "none.npy: missing"),
        ((bundle, few, tmp_path / "few.npy"), SPACE, "few.txt: 20 different texts, expected at least 500"),
        ((bundle, texts, tmp_path / "archive.npz"), SPACE, "archive.npz: an archive of arrays; expected"),
        ((bundle, blank, tmp_path / "few.npy"), SPACE, "blank.txt: 0 different texts, expected at least 500"),
        ((bundle, texts, vectors), "v1.5", "--name: 'v1.5' is not a valid name"),
        ((added, texts, vectors), SPACE, f"already maps into the space {SPACE}"),
    ]:
        assert_refused(command("add-space", *given, "--name", name, "--out", out), message)
        assert not out.exists()
    assert_refused(command("add-space", *arguments, "--name", SPACE, "--out", added), "exists; name another folder")
