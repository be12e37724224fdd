"""Forms of vectors: int8 and packed signs, and what their similarities mean."""

from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xsent import SentenceEncoder
from xsent.precision import Precision, binary_similarity, hamming_distances, pack_signs, to_int8, unpack_signs
from xsent.similarity import cosine_similarity

SENTENCES = ["Anna sees Boris.", "", "David, Elena, Frank and Greta.", "Clara", "Clara sees Boris."]


def test_int8_counts_steps_of_a_fixed_size() -> None:
    vector = np.array([0.5, -0.5, 0.1, -0.7], np.float32)  # a step is 1 / (32 sqrt(4)) = 1/64
    assert to_int8(vector).tolist() == [32, -32, 6, -45]
    assert to_int8(np.array([1, 0, 0, 0], np.float32)).tolist() == [64, 0, 0, 0]
    assert to_int8(np.array([-1] + 63 * [0], np.float32))[0] == -127  # 256 steps are cut: no -128, so that all negate


@pytest.mark.parametrize("dim", [32, 16])
def test_vectors_are_rounded_after_the_cut(encoder: SentenceEncoder, dim: int) -> None:
    vectors = encoder.encode(SENTENCES, truncate_dim=dim)
    rounded, packed = (encoder.encode(SENTENCES, truncate_dim=dim, precision=form) for form in ("int8", "binary"))
    assert (rounded.dtype, packed.dtype, packed.shape) == (np.int8, np.uint8, (5, dim // 8))
    assert np.array_equal(rounded, [to_int8(vector) for vector in vectors])
    assert np.array_equal(packed, np.packbits(vectors > 0, axis=1))  # the first number in the highest bit
    assert np.abs(encoder.similarity(rounded, rounded) - encoder.similarity(vectors, vectors)).max() < 0.02


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "binary"])
def test_company_changes_nothing_and_the_empty_sentence_resembles_nothing(
    encoder: SentenceEncoder, precision: Precision
) -> None:
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
            with pytest.raises(TypeError, match=r"expected packed signs, uint8 .* got float32"):
                encoder.similarity(*pair)
        with pytest.raises(ValueError, match="vectors of 32 and of 16 dimensions"):
            encoder.similarity(vectors, vectors[:, :2])


packed_pairs = st.integers(1, 20).flatmap(
    lambda width: st.tuples(*(arrays(np.uint8, st.tuples(st.integers(0, 20), st.just(width))) for _ in range(2)))
)


@given(packed_pairs)
def test_distance_is_the_number_of_bits_that_differ(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    bits = [np.unpackbits(packed, axis=1) for packed in pair]
    assert np.array_equal(hamming_distances(a, b), (bits[0][:, None] != bits[1][None]).sum(axis=2))


@given(packed_pairs)
def test_similarity_is_the_cosine_of_the_signs(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    assert np.allclose(binary_similarity(a, b), cosine_similarity(unpack_signs(a), unpack_signs(b)), atol=1e-6)
    by_hand = pack_signs([[1.0, 1, 1, 1, -1, -1, -1, -1], [1.0, 1, 1, -1, 1, -1, -1, -1]])
    assert hamming_distances(by_hand[0], by_hand[1]).tolist() == [[2]]
    assert binary_similarity(by_hand[0], [*by_hand, ~by_hand[0]]).tolist() == [[1, 0.5, -1]]


def test_signs_come_back() -> None:
    assert pack_signs([1, -1, 0, 2, -3, -1, -1, 0.5]).tolist() == [0b10010001]
    vectors = np.random.default_rng(0).normal(size=(3, 5, 16))
    assert np.array_equal(unpack_signs(pack_signs(vectors)), np.sign(vectors))
    assert not unpack_signs(np.zeros((2, 3), np.uint8)).any()
    with pytest.raises(ValueError, match="12 dimensions cannot be packed"):
        pack_signs(np.ones(12))
