"""Document vectors (LAWDR): what they are made of, what they are worth, and what is kept of them."""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_documents import DIM, ToyEncoder, toy_documents

from xsent.documents.encoder import DocumentEncoder
from xsent.documents.space import DIMENSIONS, Density, choose_bandwidth
from xsent.errors import DataError, FingerprintError
from xsent.mining.bitext import align_documents

CORPORA = {language: toy_documents(language) for language in ("en", "fr")}


@pytest.fixture(scope="module")
def fitted() -> DocumentEncoder:
    return DocumentEncoder(ToyEncoder()).fit(CORPORA)


def test_a_document_is_the_weighted_sum_of_debiased_sentences(fitted: DocumentEncoder) -> None:
    document = CORPORA["fr"][3]
    vectors = np.stack([ToyEncoder().vector(sentence) for sentence in document]).astype(np.float64)
    known = fitted.space.languages["fr"]
    assert known.density is not None
    expected = np.zeros(DIM)
    for vector in vectors:
        clean = vector - sum((vector @ axis) * axis for axis in known.directions.astype(np.float64))
        share = known.density.of(vector[None].astype(np.float32))[0]
        expected += known.density.scale / (known.density.scale + share) * clean
    found = fitted.encode([document], "fr", normalize_embeddings=False)[0]
    assert np.allclose(found, expected, atol=1e-5)
    unit = fitted.encode([document], "fr")[0]
    assert np.allclose(unit, expected / np.linalg.norm(expected), atol=1e-5)


def test_debiasing_brings_the_languages_together(fitted: DocumentEncoder) -> None:
    choice = fitted.space.choice
    assert choice.rank >= 1
    assert choice.accuracies[0] > 0.9
    assert choice.accuracies[-1] < 0.55 <= min(choice.accuracies[:-1])
    biased = DocumentEncoder(ToyEncoder(), debias=False).fit(CORPORA)
    truth = {(row, row) for row in range(len(CORPORA["en"]))}

    def found(encoder: DocumentEncoder) -> int:
        left, right = (encoder.encode(CORPORA[code], code) for code in CORPORA)
        return len({(pair.a, pair.b) for pair in align_documents(left, right, margin="absolute")} & truth)

    assert found(fitted) == len(truth) >= found(biased)


def test_one_language_needs_no_name_and_nothing_is_removed() -> None:
    encoder = DocumentEncoder(ToyEncoder()).fit(CORPORA["en"])
    assert encoder.space.choice.rank == 0
    assert encoder.encode(CORPORA["en"]).shape == (60, DIM)
    assert DocumentEncoder(ToyEncoder()).fit(CORPORA["en"], rank=2).space.choice.rank == 2


def test_texts_are_split_into_sentences() -> None:
    pytest.importorskip("sentencex")
    texts = [" ".join(f"{sentence}." for sentence in document) for document in CORPORA["en"]]
    lists = [[f"{sentence}." for sentence in document] for document in CORPORA["en"]]
    encoder = DocumentEncoder(ToyEncoder()).fit(lists)
    assert np.array_equal(encoder.encode(texts), encoder.encode(lists))
    assert DocumentEncoder(ToyEncoder()).fit(texts).fingerprint == encoder.fingerprint


@pytest.mark.parametrize(
    ("documents", "arguments", "message"),
    [
        ({}, {}, "no language to fit"),
        ([], {}, "no sentence in 0 documents"),
        (CORPORA, {"rank": DIM}, f"rank = {DIM} must lie between 0 and {DIM - 1}"),
        (CORPORA, {"rank": -1}, "rank = -1 must lie"),
        ({"en": CORPORA["en"], "fr": CORPORA["fr"][:4]}, {}, "language 'fr': too few documents .* give the rank"),
        ({"en": CORPORA["en"], "fr": CORPORA["fr"][:2]}, {"rank": 1}, "language 'fr': .* sentences are too few"),
        (CORPORA["en"][:2], {}, "sentences are too few .* without weights"),
    ],
)
def test_what_cannot_be_fitted(documents: object, arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DocumentEncoder(ToyEncoder()).fit(documents, **arguments)  # type: ignore[arg-type]


def test_damaged_folders(fitted: DocumentEncoder, tmp_path: Path) -> None:
    fitted.save(tmp_path / "whole")
    about = json.loads((tmp_path / "whole" / "documents.json").read_text())
    arrays = (tmp_path / "whole" / "documents.npz").read_bytes()
    turned = bytearray(arrays)
    turned[len(arrays) // 2] ^= 1
    cases = [
        ("documents.json", None, "documents.json: missing"),
        ("documents.json", b"{", "damaged"),
        ("documents.json", b"[]", "damaged"),
        ("documents.json", json.dumps({**about, "format_version": 9}).encode(), "format version 9"),
        ("documents.json", json.dumps({**about, "languages": {"de": True}}).encode(), "damaged"),
        ("documents.json", json.dumps({**about, "fingerprint": "0"}).encode(), "fingerprint is not that"),
        ("documents.npz", None, "documents.npz: missing"),
        ("documents.npz", b"", "damaged"),
        ("documents.npz", arrays[:-100], "damaged"),
        ("documents.npz", bytes(turned), "damaged"),
    ]
    for number, (name, content, message) in enumerate(cases):
        broken = shutil.copytree(tmp_path / "whole", tmp_path / str(number))
        (broken / name).unlink() if content is None else (broken / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            DocumentEncoder.load(broken, ToyEncoder())


@pytest.mark.filterwarnings("ignore:.* encountered in")
def test_numbers_that_are_none_are_refused(fitted: DocumentEncoder, tmp_path: Path) -> None:
    known = {code: replace(space, directions=space.directions / 0) for code, space in fitted.space.languages.items()}
    replace(fitted.space, languages=known).save(tmp_path / "space")  # as whoever writes all of it would
    with pytest.raises(DataError, match=r"damaged .*directions holds other things than finite numbers"):
        DocumentEncoder.load(tmp_path / "space", ToyEncoder())


def test_without_either_a_document_is_the_sum_of_its_sentences() -> None:
    plain = DocumentEncoder(ToyEncoder(), debias=False, weighted=False).fit(CORPORA)
    expected = sum(ToyEncoder().vector(sentence) for sentence in CORPORA["en"][0])
    assert np.allclose(plain.encode(CORPORA["en"][:1], "en", normalize_embeddings=False)[0], expected, atol=1e-6)
    small = {code: documents[:2] for code, documents in CORPORA.items()}  # too few for weights
    encoder = DocumentEncoder(ToyEncoder(), weighted=False).fit(small, rank=1)
    assert encoder.encode(small["en"], "en").any(axis=1).all()


def test_the_same_sentences_give_the_same_space_and_none_is_cut(fitted: DocumentEncoder) -> None:
    padded = {code: [*[["", *document, " "] for document in documents], []] for code, documents in CORPORA.items()}
    encoder = ToyEncoder()
    again = DocumentEncoder(encoder).fit(padded)
    assert again.fingerprint == fitted.fingerprint
    with pytest.raises(ValueError, match="language 'fr': no sentence in 2 documents"):
        again.fit({"en": CORPORA["en"], "fr": [[], [" "]]})
    assert again.fingerprint == fitted.fingerprint  # a failed fit leaves what was there
    again.encode(CORPORA["en"][:1], "en")
    assert encoder.policies == {"split"}
    assert again.fit({"en": CORPORA["en"]}).languages == ("en",)
    assert again.fingerprint != fitted.fingerprint


def test_empty_documents_become_zero(fitted: DocumentEncoder) -> None:
    vectors = fitted.encode([[], ["", "  "], "", " \n ", CORPORA["en"][0]], "en")
    assert vectors.shape == (5, DIM) and not vectors[:4].any()
    assert np.array_equal(vectors[4], fitted.encode(CORPORA["en"], "en")[0])  # a vector does not depend on the company
    assert fitted.encode([], "en").shape == (0, DIM)


@pytest.mark.parametrize(
    ("documents", "language", "error", "message"),
    [
        (CORPORA["en"], "de", ValueError, "language = 'de' was never fitted; these were: 'en', 'fr'"),
        (CORPORA["en"], None, ValueError, "language = None was never fitted"),
        ("A text.", "en", TypeError, "got one str; put it in a list"),
        ([[1]], "en", TypeError, "got int in a document"),
    ],
)
def test_what_cannot_be_encoded(
    fitted: DocumentEncoder, documents: list[Any], language: str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fitted.encode(documents, language)
    with pytest.raises(ValueError, match="nothing was fitted"):
        DocumentEncoder(ToyEncoder()).encode(CORPORA["en"], "en")


def test_save_and_load(fitted: DocumentEncoder, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="exists"):
        fitted.save(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"
    plain = DocumentEncoder(ToyEncoder(), weighted=False).fit(CORPORA)
    for name, encoder in (("fitted", fitted), ("plain", plain)):
        encoder.save(tmp_path / name)
        with pytest.raises(FingerprintError, match=r"vectors of toy, this model gives those of other"):
            DocumentEncoder.load(tmp_path / name, ToyEncoder(fingerprint="other"))
        loaded = DocumentEncoder.load(tmp_path / name, ToyEncoder())
        assert (loaded.fingerprint, loaded.languages) == (encoder.fingerprint, encoder.languages)
        assert loaded.space.choice == encoder.space.choice
        assert (loaded.space.languages["fr"].density is None) == (encoder is plain)
        assert np.array_equal(loaded.encode(CORPORA["fr"], "fr"), encoder.encode(CORPORA["fr"], "fr"))


def dense(count: int = 60, dim: int = 20, seed: int = 0) -> np.ndarray:
    """Two thirds of the vectors close together, the rest far from everything."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, dim)).astype(np.float32)
    vectors[: 2 * count // 3] = vectors[0] + vectors[: 2 * count // 3] / 100
    return vectors


def test_densities_are_shares_within_the_ball() -> None:
    vectors = dense()
    density = Density.fit(vectors)
    places = (vectors - density.center) @ density.axes.T
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert np.allclose(density.of(vectors), (distances <= density.bandwidth * (1 + 1e-4)).mean(axis=1))
    assert density.scale == pytest.approx(density.of(vectors).mean() / 2)


def test_weights_by_hand() -> None:
    center, axes, points = np.zeros(1), np.ones((1, 1)), np.array([[0], [0], [1], [9]])
    density = Density(*(array.astype(np.float32) for array in (center, axes, points)), bandwidth=1.0, scale=0.25)
    queries = np.array([[0], [2], [9], [50]], np.float32)
    assert density.of(queries).tolist() == [0.75, 0.25, 0.25, 0]
    assert density.weights(queries).tolist() == [0.25, 0.5, 0.5, 1]


def brute_bandwidths(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Candidates and their cross-validated log likelihoods, as a textbook computes them."""
    folds = np.arange(len(points)) % 5
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    others = folds[:, None] != folds[None]
    least = np.where(others, distances, np.inf).min(axis=1).max()
    candidates = np.geomspace(least, distances[others].max(), 20)
    near = [
        [(row[kept] <= h * (1 + 1e-6)).mean() for row, kept in zip(distances, others, strict=True)] for h in candidates
    ]
    return candidates, np.log(near / candidates[:, None] ** points.shape[1]).sum(axis=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dim", [1, 3])
def test_the_bandwidth_is_the_most_likely_one(seed: int, dim: int) -> None:
    points = np.random.default_rng(seed).normal(size=(53, dim)).astype(np.float32)
    candidates, likelihoods = brute_bandwidths(points.astype(np.float64))
    found = choose_bandwidth(points)
    place = np.abs(candidates - found).argmin()
    assert found == pytest.approx(candidates[place], rel=1e-6)
    assert likelihoods[place] == pytest.approx(likelihoods.max())


def test_the_axes_are_principal() -> None:
    vectors = dense() + 5  # centring matters
    density = Density.fit(vectors)
    right = np.linalg.svd(vectors - vectors.mean(axis=0))[2][:DIMENSIONS]
    assert density.axes.shape == (DIMENSIONS, 20)
    assert np.allclose(density.axes.T @ density.axes, right.T @ right, atol=1e-2)
    assert Density.fit(dense(dim=4)).axes.shape == (4, 4)


def test_common_sentences_weigh_less_than_rare_ones_whatever_the_company() -> None:
    vectors = dense(count=1200)  # more than are compared at once
    density = Density.fit(vectors)
    weights = density.weights(vectors)
    assert weights[:800].mean() < weights[800:].mean() / 1.5
    assert (weights > 0).all() and (weights <= 1).all()
    assert np.array_equal(weights, np.concatenate([density.weights(row[None]) for row in vectors]))
    assert density.weights(vectors[:0]).shape == (0,)


def test_sentences_that_are_the_same_find_each_other_whatever_the_rounding() -> None:
    vectors = np.tile(np.random.default_rng(0).normal(size=30).astype(np.float32), (40, 1))
    assert np.allclose(Density.fit(vectors).weights(vectors), 1 / 3)  # b / (b + 2 b)
    twins = np.repeat(dense(count=40)[30:], 10, axis=0)
    assert (Density.fit(twins).of(twins) >= 0.1).all()


def test_streams_of_vectors_come_to_their_end() -> None:
    # There they warn of text that the encoder does not know.
    ended = []

    class Ending(ToyEncoder):
        def encode_iter(self, sentences: Iterable[str], /, *, on_long: str) -> Iterator[np.ndarray]:
            yield from super().encode_iter(sentences, on_long=on_long)
            ended.append(on_long)

    encoder = DocumentEncoder(Ending()).fit(CORPORA["en"], rank=1)
    assert ended == ["split"]
    encoder.encode(CORPORA["en"][:3])
    assert ended == ["split", "split"]
