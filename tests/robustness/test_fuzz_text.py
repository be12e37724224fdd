"""Any text gets one vector, whoever else is encoded, and what is no text or no argument is named."""

import re
import sys
import unicodedata
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from xsent import (
    LongSentenceWarning,
    SentenceEncoder,
    align_documents,
    cosine_similarity,
    margin_scores,
    mine_bitext,
    nearest,
    semantic_search,
)
from xsent.bundle import builtin_path
from xsent.cpu import instruction_set
from xsent.tokenizer import Tokenizer

pytestmark = [
    pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning"),
    pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning"),
]

# Controls, marks of direction, joiners, runs of marks, private use, no characters, what a tokenizer writes itself.
ODD = ["\0", "\x1b[31m", "\u202e", "\u2066", "\ufeff", "\u2028", "\u200d", "\u00ad", "e" + "\u0301" * 40, "\u0301"]
ODD += ["👨\u200d👩\u200d👧", "🇩🇪", "1\ufe0f\u20e3", "\ue000", "\u0378", "\ufffe", "\U0010ffff", "\u1112\u1161\u11ab"]
ODD += ["<unk>", "<s>", "<0x41>", "▁", "\ufdfa", "ﬁ", "ẞ", "İ", "שלום", "مرحبا", "か\u3099"]
PART = st.one_of(st.text(min_size=1), st.sampled_from(ODD), st.sampled_from(["Anna ", "sees\t", "Boris, ", " "]))
TEXT = st.builds(lambda parts, times: "".join(parts) * times, st.lists(PART, max_size=6), st.sampled_from([1, 1, 1, 9]))
# Shares of what the profile asks for: `--hypothesis-profile=long` tries many times as many.
SOME, FEW = (settings(max_examples=settings.default.max_examples // share, deadline=None) for share in (3, 20))
Encoders = tuple[SentenceEncoder, SentenceEncoder]


@pytest.fixture(scope="module", params=["onnx", "numpy", "openvino"])
def mini(request: pytest.FixtureRequest) -> Encoders:
    """The tiny bundle on one thread, and on two."""
    path = request.getfixturevalue("openvino_bundle" if request.param == "openvino" else "mini_bundle")
    one, two = (SentenceEncoder(path, backend=request.param, threads=threads) for threads in (1, 2))
    return one, two


@pytest.fixture(scope="module", params=["onnx", "numpy"])
def full(request: pytest.FixtureRequest) -> Encoders:
    """The built-in one."""
    return SentenceEncoder(backend=request.param, threads=1), SentenceEncoder(backend=request.param, threads=2)


@given(texts=st.lists(TEXT, min_size=1, max_size=4))
@example(texts=ODD)
@example(texts=["", " ", "\n", "\0" * 300])
@SOME
def test_a_text_has_one_vector_whoever_else_is_encoded(mini: Encoders, texts: list[str]) -> None:
    assert_one_vector(*mini, texts)


@given(texts=st.lists(TEXT, min_size=1, max_size=4))
@example(texts=ODD[::3])
@FEW
def test_so_does_it_in_the_model_that_ships(full: Encoders, texts: list[str]) -> None:
    assert_one_vector(*full, texts)


def assert_one_vector(one: SentenceEncoder, two: SentenceEncoder, texts: list[str]) -> None:
    alone = np.stack([one.encode(text) for text in texts])
    for text, length in zip(texts, np.linalg.norm(alone, axis=1), strict=True):
        assert length == pytest.approx(1 if one.count_tokens(text) else 0, abs=1e-5)
    rows = [*range(len(texts)), *reversed(range(len(texts)))] * (8 // len(texts) + 1)  # more than one thread takes
    crowd = [texts[row] for row in rows]
    for vectors in (one.encode(crowd), two.encode(crowd), np.stack([*two.encode_iter(crowd)])):
        assert np.array_equal(vectors, alone[rows])


@pytest.mark.parametrize("model", ["mini", "builtin"])
def test_numpy_agrees_with_onnx(mini_bundle: Path, model: str) -> None:
    path = builtin_path() if model == "builtin" else mini_bundle
    onnx, numpy = (SentenceEncoder(path, backend=backend, threads=1) for backend in ("onnx", "numpy"))
    allowed = onnx.bundle.golden.allowed(instruction_set())

    @given(text=TEXT)
    @SOME
    def agree(text: str) -> None:
        assert np.abs(onnx.encode(text) - numpy.encode(text)).max() <= allowed

    agree()


@given(text=TEXT)
@example(text="Anna sees Boris. " * 60)
@SOME
def test_only_long_text_is_cut_and_never_in_silence(encoder: SentenceEncoder, text: str) -> None:
    tokens, vectors, remarks = encoder.count_tokens(text), {}, {}
    for on_long in ("warn", "split", "error"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LongSentenceWarning)
            if on_long == "error" and tokens > encoder.max_length:
                with pytest.raises(ValueError, match=f"{tokens:,} tokens, at most {encoder.max_length} fit"):
                    encoder.encode(text, on_long=on_long)
                continue
            vectors[on_long] = encoder.encode(text, on_long=on_long)
        remarks[on_long] = [str(one.message)[:6] for one in caught if one.category is LongSentenceWarning]
    long = tokens > encoder.max_length
    assert remarks.pop("warn") == ["1 of 1"] * long and not any(remarks.values())
    assert long or all(np.array_equal(vector, vectors["warn"]) for vector in vectors.values())
    assert np.linalg.norm(vectors["split"]) == pytest.approx(1 if tokens else 0, abs=1e-5)


@pytest.mark.parametrize("part", ["a", "猫", "😀", "\0", "\u0301", "\u200d", "\u202e", "\ufdfa", " "])
def test_a_megabyte_without_a_space(encoder: SentenceEncoder, part: str) -> None:
    length = 0 if part == " " else 1
    text = part * (2**20 // len(part.encode()))
    assert np.linalg.norm(encoder.encode(text)) == pytest.approx(length, abs=1e-5)
    assert np.linalg.norm(encoder.encode(text[: 2**13], on_long="split")) == pytest.approx(length, abs=1e-5)


def test_the_forms_of_a_character_are_one() -> None:
    tokenizer, forms = Tokenizer(builtin_path() / "sentencepiece.model"), ("NFC", "NFD", "NFKC", "NFKD")
    characters = (chr(code) for code in range(sys.maxunicode) if not 0xD800 <= code < 0xE000)
    several = [text for text in characters if unicodedata.normalize("NFKD", text) != text]
    assert len(several) > 16_000
    cut = {text: {(*tokenizer.encode(f"a{unicodedata.normalize(form, text)}b"),) for form in forms} for text in several}
    # Wide, it is a wave dash in Japanese, which SentencePiece keeps apart from the tilde on purpose.
    assert [text for text in several if len(cut[text]) > 1] == ["～"]


@given(before=TEXT, after=st.text(st.characters(), max_size=3), surrogate=st.characters(categories=["Cs"]))
@SOME
def test_half_a_character_is_refused_with_its_place(
    encoder: SentenceEncoder, before: str, after: str, surrogate: str
) -> None:
    with pytest.raises(ValueError, match=rf"^sentence 2 .*lone surrogate \('\\u{ord(surrogate):x}' at {len(before)}\)"):
        encoder.encode(["Anna", before + surrogate + after])


class Shouting(str):
    """A text whose own methods say other things than it does."""

    def encode(self, *_: object) -> bytes:  # type: ignore[override]  # noqa: D102
        return b"Boris"


def test_other_kinds_of_text(encoder: SentenceEncoder) -> None:
    anna = encoder.encode("Anna")
    for text in (np.str_("Anna"), Shouting("Anna")):
        assert np.array_equal(encoder.encode(text), anna)
    assert np.array_equal(encoder.encode(np.array(["Anna", "Anna"])), [anna, anna])
    for nothing in (b"", b"Anna"):
        with pytest.raises(TypeError, match="expected str, got bytes"):
            encoder.encode(nothing)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not one bytes"):
            encoder.encode_iter(nothing)  # type: ignore[arg-type]


NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(-2, 5), st.sampled_from([10**30, np.float32(2)]))
WORDS = st.one_of(st.text(max_size=20), st.binary(max_size=5), st.sampled_from(["ratio", "max", "int8", "split", "4"]))
THINGS = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS, st.just(object()), st.just(int))
PILES = st.one_of(st.lists(THINGS, max_size=3), st.dictionaries(st.text(max_size=2), THINGS, max_size=2))
ARRAYS = arrays.arrays(st.one_of(arrays.scalar_dtypes(), st.just(object)), arrays.array_shapes(min_dims=0, min_side=0))
ANYTHING = st.one_of(THINGS, PILES, ARRAYS)
TWO, FIVE = np.eye(5, dtype=np.float32)[:2], np.eye(5, dtype=np.float32)
CALLS = {
    "top_k": lambda _, top_k: semantic_search(TWO, FIVE, top_k),
    "k": lambda _, k: (nearest(TWO, FIVE, k), mine_bitext(FIVE, FIVE, k=k), margin_scores(FIVE, FIVE, k=k)),
    "block": lambda _, block: nearest(TWO, FIVE, block=block),
    "margin": lambda _, margin: (margin_scores(FIVE, FIVE, margin=margin), align_documents(FIVE, FIVE, margin=margin)),
    "retrieval": lambda _, retrieval: mine_bitext(FIVE, FIVE, retrieval=retrieval),
    "threshold": lambda _, threshold: mine_bitext(FIVE, FIVE, threshold=threshold),
    "rows": lambda _, rows: mine_bitext(FIVE, FIVE, src_rows=rows, k=1),
    "truncate_dim": lambda encoder, dim: encoder.encode("Anna", truncate_dim=dim),
    "precision": lambda encoder, precision: encoder.encode("Anna", precision=precision),
    "on_long": lambda encoder, on_long: encoder.encode("Anna", on_long=on_long),
    "start": lambda encoder, start: list(encoder.encode_iter(["Anna"], start=start)),
    "threads": lambda encoder, threads: SentenceEncoder(encoder.bundle.path, backend="numpy", threads=threads),
}
REFUSED = (TypeError, ValueError)


@pytest.mark.parametrize("name", CALLS)
@given(value=ANYTHING)
@SOME
def test_a_wrong_argument_is_named(encoder: SentenceEncoder, name: str, value: object) -> None:
    try:
        CALLS[name](encoder, value)
    except REFUSED as error:
        assert re.match(rf"{name} = |one side has no sentences", str(error))


@given(left=ANYTHING, right=ANYTHING)
@SOME
def test_what_is_no_vectors_is_refused(encoder: SentenceEncoder, left: object, right: object) -> None:
    calls = cosine_similarity, nearest, margin_scores, mine_bitext, align_documents, semantic_search, encoder.similarity
    for call in calls:
        for pair in ((left, right), (FIVE, right), (left, FIVE)):
            with suppress(*REFUSED):
                call(*pair)


@given(sentences=ANYTHING)
@SOME
def test_what_is_no_text_is_refused(encoder: SentenceEncoder, sentences: object) -> None:
    for encode in (encoder.encode, lambda texts: list(encoder.encode_iter(texts))):
        with suppress(*REFUSED):
            encode(sentences)
