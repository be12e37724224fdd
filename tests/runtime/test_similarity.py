"""Cosine and exact neighbours, int8 and packed signs."""

import mmap
import os
from operator import itemgetter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commands import raises
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xsent import SentenceEncoder
from xsent.precision import Precision, binary_similarity, hamming_distances, pack_signs, to_int8, unpack_signs
from xsent.similarity import (
    CANDIDATES,
    NearestSearch,
    NormalizedBlocks,
    cosine_similarity,
    cosines_with,
    nearest,
    release_pages,
    unit_rows,
)


@settings(max_examples=50, deadline=None)
@given(st.tuples(*(st.integers(1, most) for most in (5, 40, 50, 50))), st.integers(0))
def test_blocks_change_nothing(sizes: tuple[int, int, int, int], seed: int) -> None:
    (queries, count, k, block), random = sizes, np.random.default_rng(seed)
    asked = random.integers(-2, 3, (queries, 3))  # small whole numbers: many ties
    candidates = random.integers(-2, 3, (count, 3))
    with mock.patch("xsent.similarity.CANDIDATES", block):
        indices, scores = nearest(asked, candidates, k)
    cosines = cosine_similarity(asked, candidates)
    assert indices.shape == scores.shape == (queries, min(k, count))
    assert np.allclose(scores, -np.sort(-cosines, axis=1)[:, :k], atol=1e-6)
    assert np.allclose(np.take_along_axis(cosines, indices, axis=1), scores, atol=1e-6)
    assert all(len(set(row)) == len(row) for row in indices.tolist())


@pytest.mark.parametrize(("count", "step"), [(1000, 1), (5000, 11)])
def test_equal_rows_come_in_their_order_for_any_number_of_queries(count: int, step: int) -> None:
    random = np.random.default_rng(0)
    rows = np.tile(random.normal(size=384), (count, 1))
    others = random.normal(size=(count, 384))
    rows[::7] = others[::7]
    equal = np.flatnonzero(np.arange(count) % 7)
    asked = rows[1] + random.normal(size=(67, 384))
    alone = np.concatenate([nearest(query, rows, 20)[1] for query in asked[::step]])
    for queries in range(1, 68, step):
        indices, scores = nearest(asked[:queries], rows, 20)
        assert (indices == equal[:20]).all(), queries
        assert np.array_equal(scores[::step], alone[: 1 + (queries - 1) // step])
    assert (alone == alone[:, :1]).all()
    assert np.array_equal(cosines_with(asked[0], unit_rows(rows[indices[0]])), scores[0])


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_files_are_read_in_blocks(tmp_path: Path, precision: str) -> None:
    vectors = (20 * np.random.default_rng(0).normal(size=(50, 4))).astype(precision)
    np.save(tmp_path / "a.npy", vectors)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    rows = NormalizedBlocks(mapped)
    assert (len(rows), rows.dim) == (50, 4)
    unit = np.concatenate([rows.block(start, 20) for start in range(0, 60, 20)])
    wide = vectors.astype(np.float32)
    assert np.allclose(unit, wide / np.linalg.norm(wide, axis=1, keepdims=True), atol=1e-6)
    assert np.array_equal(NormalizedBlocks(mapped, np.array([7, 3, 9])).block(1, 5), unit[[3, 9]])
    assert np.array_equal(nearest(mapped, mapped)[0][:, 0], np.arange(50))
    private = np.load(tmp_path / "a.npy", mmap_mode="c")
    private[1] = [0, 5, 0, 0]  # what was written to it is kept
    rows = NormalizedBlocks(private)
    assert rows.block(1, 1).tolist() == rows.block(1, 1).tolist() == [[0, 1, 0, 0]]


def test_a_file_that_is_cut_while_it_is_open_is_an_error(tmp_path: Path) -> None:
    for suffix, mapped in ((".npy", lambda path: np.load(path, mmap_mode="r")), (".f32", None)):
        path = tmp_path / f"a{suffix}"
        (np.save if mapped else lambda path, rows: rows.tofile(path))(path, np.ones((5000, 64), np.float32))
        rows = mapped(path) if mapped else np.memmap(path, np.float32, "r", shape=(5000, 64))
        os.truncate(path, 300_000)
        raises(ValueError, "the file of 5,000 vectors was truncated while it was open", nearest, rows[0], rows)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_pages_of_a_map_are_released(tmp_path: Path) -> None:
    file, size = tmp_path / "a", 1 << 24
    file.write_bytes(b"\x01" * size)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE  # of files

    with file.open("rb") as opened:
        raw = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    for array in (np.memmap(file, np.uint8, "r")[:].reshape(2, -1), np.frombuffer(raw, np.uint8).reshape(2, -1)):
        before = resident()
        assert array.sum() == size and resident() - before > size // 2
        release_pages(array)
        assert resident() - before < size // 2 and array[1, -1] == 1
    copied = np.memmap(file, np.uint8, "c")
    copied[0] = 2
    release_pages(copied)
    frozen = copied[:]
    frozen.flags.writeable = False
    release_pages(frozen)
    assert copied[0] == 2  # a change that no file has
    release_pages(np.zeros(3))


def test_cosines_and_nearest_by_hand() -> None:
    vectors = np.array([[1, 0], [3, 4], [0, 0]], np.float32)
    cosines = cosine_similarity(vectors, [[2, 0], [0, -5]])
    assert np.allclose(cosines, np.array([[1, 0], [0.6, -0.8], [0, 0]])) and cosines.dtype == np.float32
    assert vectors.tolist() == [[1, 0], [3, 4], [0, 0]]  # as they were
    assert cosine_similarity([3.0, 4.0], [3.0, 4.0]).shape == (1, 1)
    short = np.array([[3e-30, 4e-30], [1e-44, 0], [0, 0]])  # their squares are 0 in float32
    assert np.allclose(cosine_similarity(short, [[1, 0]]), [[0.6], [1], [0]])
    half = np.full((1, 4), 300, np.float16)  # their squares overflow float16
    assert cosine_similarity(half, half)[0, 0] == pytest.approx(1)
    damaged = np.full((1, 4), np.inf, np.float16)
    with pytest.raises(ValueError, match="infinite"):
        unit_rows(damaged)
    for block in (1, 2, 3, 100):  # of equal cosines the lower index
        with mock.patch("xsent.similarity.CANDIDATES", block):
            indices, _ = nearest([[1, 0]], [[0, 1], [1, 0], [2, 0], [0, 3], [3, 0]], k=4)
        assert indices.tolist() == [[1, 2, 4, 0]]
    assert nearest(np.zeros((0, 3)), np.zeros((2, 3)))[0].shape[0] == 0
    assert nearest(np.zeros((2, 3)), np.zeros((0, 3)))[0].shape == (2, 0)
    queries = np.random.default_rng(0).normal(size=(2100, 4))  # more than are scored at once
    assert (nearest(queries, queries)[0][:, 0] == np.arange(2100)).all()
    candidates = np.random.default_rng(0).normal(size=(2 * CANDIDATES + 10, 2))
    search = NearestSearch(candidates[[0, CANDIDATES, -1]], k=2)
    assert search.indices.shape == search.scores.shape == (3, 0)
    search.add(candidates[:1])
    assert search.indices.tolist() == [[0], [0], [0]]
    search.add(candidates[1:])
    assert search.indices[:, 0].tolist() == [0, CANDIDATES, len(candidates) - 1]
    assert np.array_equal(search.indices, nearest(candidates[[0, CANDIDATES, -1]], candidates, k=2)[0])


BITS = np.ones((8, 1), np.uint8)


def test_what_cannot_be_compared() -> None:
    for a, b, arguments, error, message in [
        ("a", "b", {}, TypeError, "encode texts first"),
        (BITS, BITS, {}, TypeError, "packed bits; compare binary vectors with SentenceEncoder.similarity"),
        ([[1, 0]], [[1, 0, 0]], {}, ValueError, "2 and of 3 dimensions"),
        (np.zeros((1, 1, 1)), [[1, 0]], {}, ValueError, "shape"),
        ([[1.0, np.nan]], [[1.0, 2.0]], {}, ValueError, "infinite, NaN"),
        ([[1.0]], [[1.0]], {"k": 0}, ValueError, "at least 1"),
    ]:
        for compare in (nearest,) if arguments else (cosine_similarity, nearest):
            raises(error, message, compare, a, b, **arguments)


SENTENCES = ["Anna sees Boris.", "", "David, Elena, Frank and Greta.", "Clara", "Clara sees Boris."]


def test_int8_counts_steps_and_signs_come_back() -> None:
    vector = np.array([0.5, -0.5, 0.1, -0.7], np.float32)  # a step is 1 / (32 sqrt(4)) = 1/64
    assert to_int8(vector).tolist() == [32, -32, 6, -45]
    assert to_int8(np.array([1, 0, 0, 0], np.float32)).tolist() == [64, 0, 0, 0]
    assert to_int8(np.array([-1] + 63 * [0], np.float32))[0] == -127  # 256 steps are cut: no -128, so that all negate
    assert pack_signs([1, -1, 0, 2, -3, -1, -1, 0.5]).tolist() == [0b10010001]
    vectors = np.random.default_rng(0).normal(size=(3, 5, 16))
    assert np.array_equal(unpack_signs(pack_signs(vectors)), np.sign(vectors))
    assert not unpack_signs(np.zeros((2, 3), np.uint8)).any()
    raises(ValueError, "12 dimensions cannot be packed", pack_signs, np.ones(12))
    a, b = pack_signs([[1.0, 1, 1, 1, -1, -1, -1, -1], [1.0, 1, 1, -1, 1, -1, -1, -1]])
    assert (hamming_distances(a, b).tolist(), binary_similarity(a, [a, b, ~a]).tolist()) == ([[2]], [[1, 0.5, -1]])


@pytest.mark.parametrize("dim", [32, 16])
def test_vectors_are_rounded_after_the_cut(encoder: SentenceEncoder, dim: int) -> None:
    vectors = encoder.encode(SENTENCES, truncate_dim=dim)
    rounded, packed = (encoder.encode(SENTENCES, truncate_dim=dim, precision=form) for form in ("int8", "binary"))
    assert (rounded.dtype, packed.dtype, packed.shape) == (np.int8, np.uint8, (5, dim // 8))
    assert np.array_equal(rounded, [to_int8(vector) for vector in vectors])
    assert np.array_equal(packed, np.packbits(vectors > 0, axis=1))  # the first number in the highest bit
    assert np.abs(encoder.similarity(rounded, rounded) - encoder.similarity(vectors, vectors)).max() < 0.02


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "binary"])
def test_company_changes_nothing_and_empty_resembles_nothing(encoder: SentenceEncoder, precision: Precision) -> None:
    texts = SENTENCES * 20  # alone, together and as a stream, in one thread and in two
    alone = np.stack([encoder.encode(text, precision=precision) for text in texts])
    assert np.array_equal(encoder.encode(texts, precision=precision), alone)
    assert np.array_equal(np.stack(list(encoder.encode_iter(texts, precision=precision))), alone)
    items = list(encoder.encode_items(enumerate(texts), itemgetter(1), precision=precision))
    assert [item for item, _ in items] == list(enumerate(texts))
    assert np.array_equal([vector for _, vector in items], alone)
    assert encoder.encode([], precision=precision).shape == (0, alone.shape[1])
    vectors = alone[:5]
    similarity = encoder.similarity(vectors, vectors)
    assert similarity.dtype == np.float32
    assert not vectors[1].any() and not similarity[1].any() and not similarity[:, 1].any()
    assert np.allclose(np.delete(np.diag(similarity), 1), 1) and similarity.max() <= 1
    if precision == "binary":
        for pair in ((vectors, similarity), (similarity, vectors)):
            raises(TypeError, r"expected packed signs, uint8 .* got float32", encoder.similarity, *pair)
        raises(ValueError, "vectors of 32 and of 16 dimensions", encoder.similarity, vectors, vectors[:, :2])


packed = lambda width: arrays(np.uint8, st.tuples(st.integers(0, 20), st.just(width)))  # noqa: E731


@given(st.integers(1, 20).flatmap(lambda width: st.tuples(packed(width), packed(width))))
def test_distances_and_similarities_of_bits(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    bits = [np.unpackbits(side, axis=1) for side in pair]
    assert np.array_equal(hamming_distances(a, b), (bits[0][:, None] != bits[1][None]).sum(axis=2))
    assert np.allclose(binary_similarity(a, b), cosine_similarity(unpack_signs(a), unpack_signs(b)), atol=1e-6)
