"""A checkpoint for fewer languages: without the pieces that only other languages use.

A sentence whose pieces all stay is cut into pieces and encoded exactly as before.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files.text import read_lines
from xsent_train.checkpoint import TABLE, TOKENIZER, VALIDATION, Checkpoint
from xsent_train.data.vocabulary import ModelProto, SentencePiece
from xsent_train.from_bundle import with_table

logger = logging.getLogger(__name__)

ENGLISH = "en"
CHUNK = 20_000  # sentences cut into pieces at a time
FEW = 5_000  # sentences; a smaller sample lacks many words that users write

# Types of pieces that always stay: the unknown piece, control symbols such as the mask, symbols of the user, bytes.
ALWAYS = {SentencePiece.UNKNOWN, SentencePiece.CONTROL, SentencePiece.USER_DEFINED, SentencePiece.BYTE}


@contextmanager
def pruned(checkpoint: Checkpoint, languages: Sequence[str] | None, sample: Path | None) -> Iterator[Checkpoint]:
    """Yields the checkpoint with only the pieces that occur in the sample. Without a sample, yields it unchanged.

    The sample is text in these languages, a sentence a line, or a corpus of pairs (source, language, English,
    translation), of which only the pairs in these languages are read. Raises DataError if the checkpoint lacks a
    language, or the sample has no text in one.
    """
    if languages is None or sample is None:
        yield checkpoint
        return
    counts = count_pieces(checkpoint, languages, sample)
    vocabulary = ModelProto.FromString(checkpoint.tokenizer.read_bytes())
    kept = _kept_pieces(vocabulary, counts)
    logger.info(f"{len(kept):,} of {len(counts):,} pieces stay for {', '.join(languages)}")
    about, weights = with_table(checkpoint, checkpoint.weights[TABLE][kept], languages)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / TOKENIZER).write_bytes(_vocabulary_of(vocabulary, kept))
        if checkpoint.validation.exists():
            lines = [line for line in read_lines(checkpoint.validation) if line.split("\t")[1] in languages]
            (folder / VALIDATION).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield Checkpoint(folder, about, weights, checkpoint.given)


def count_pieces(checkpoint: Checkpoint, languages: Sequence[str], sample: Path) -> NDArray[np.int64]:
    """How often each piece of a checkpoint occurs in a sample [V], see `pruned`."""
    if ENGLISH not in languages:
        raise DataError(
            f"--languages {','.join(languages)} must name {ENGLISH} too: every other language is held to it"
        )
    unknown = [language for language in languages if language not in checkpoint.languages]
    if unknown:
        known = ", ".join(checkpoint.languages)
        raise DataError(f"{checkpoint.given}: has no language {', '.join(unknown)}; it has {known}")
    tokenizer = checkpoint.load_tokenizer()
    counts = np.zeros(len(tokenizer), np.int64)
    total = 0
    seen: set[str] = set()
    sentences = _sentences(sample, languages, seen)
    while chunk := list(islice(sentences, CHUNK)):
        ids = [i for sentence in tokenizer.encode(chunk) for i in sentence]
        counts += np.bincount(np.array(ids, np.int64), minlength=len(counts))
        total += len(chunk)
    if not counts.any():
        raise DataError(f"{sample}: no text in {', '.join(languages)}; expected sentences, or pairs in these languages")
    if missing := [language for language in languages if seen and language not in {*seen, ENGLISH}]:
        raise DataError(f"{sample}: no pairs in {', '.join(missing)}; their pieces would all go")
    if total < FEW:
        logger.warning("%s: %d sentences are few: words that are in none of them lose their pieces", sample, total)
    return counts


def _sentences(sample: Path, languages: Sequence[str], seen: set[str]) -> Iterator[str]:
    """The sentences of a text, or of the pairs in some languages of a corpus, whose languages are added to `seen`."""
    for line in read_lines(sample):
        fields = line.split("\t")
        if len(fields) != 4:
            yield line
        elif fields[1] in languages:
            seen.add(fields[1])
            yield from fields[2:]


def _kept_pieces(vocabulary: Any, counts: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ANN401  protobuf has no types
    """The ids of the pieces that stay, in order: those that occur, and those that every vocabulary needs.

    The least probable piece stays too: SentencePiece derives the cost of an unknown character from its score.
    """
    keep = counts > 0
    least = min((piece.score for piece in vocabulary.pieces if piece.type == SentencePiece.NORMAL), default=0.0)
    for number, piece in enumerate(vocabulary.pieces):
        keep[number] |= piece.type in ALWAYS
        keep[number] |= piece.type == SentencePiece.NORMAL and piece.score == least
    return keep.nonzero()[0]


def _vocabulary_of(vocabulary: Any, kept: NDArray[np.int64]) -> bytes:  # noqa: ANN401
    """The SentencePiece model with some of its pieces."""
    small = ModelProto()
    small.CopyFrom(vocabulary)
    del small.pieces[:]
    small.pieces.extend(vocabulary.pieces[int(number)] for number in kept)
    small.trainer_spec.vocab_size = len(kept)
    return bytes(small.SerializeToString(deterministic=True))
