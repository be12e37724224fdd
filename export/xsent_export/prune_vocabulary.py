"""A checkpoint of fewer languages: the pieces that others alone use go, from the vocabulary and from the table.

A sentence whose pieces all stay is cut and encoded exactly as before.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
FEW = 5_000  # sentences; with fewer, many words that users write are in none

# What makes a vocabulary work: the unknown piece, control symbols such as the mask, symbols of the user, bytes.
ALWAYS = {SentencePiece.UNKNOWN, SentencePiece.CONTROL, SentencePiece.USER_DEFINED, SentencePiece.BYTE}


@dataclass(frozen=True)
class PieceCounts:
    """How often the pieces of a checkpoint occur in a sample of some languages."""

    languages: Sequence[str]
    model: Any  # a ModelProto, the whole vocabulary
    counts: NDArray[np.int64]  # of each piece [V]

    def kept(self) -> NDArray[np.int64]:
        """The ids of the pieces that stay, in order: those of the sample, and what every vocabulary needs.

        The least probable piece stays too: from its score follows what an unknown character costs.
        """
        keep = self.counts > 0
        least = min((piece.score for piece in self.model.pieces if piece.type == SentencePiece.NORMAL), default=0.0)
        for number, piece in enumerate(self.model.pieces):
            keep[number] |= piece.type in ALWAYS
            keep[number] |= piece.type == SentencePiece.NORMAL and piece.score == least
        return keep.nonzero()[0]

    def vocabulary(self, kept: NDArray[np.int64]) -> bytes:
        """The vocabulary of some pieces alone."""
        small = ModelProto()
        small.CopyFrom(self.model)
        del small.pieces[:]
        small.pieces.extend(self.model.pieces[int(number)] for number in kept)
        small.trainer_spec.vocab_size = len(kept)
        return bytes(small.SerializeToString(deterministic=True))


def count_pieces(checkpoint: Checkpoint, languages: Sequence[str] | None, sample: Path | None) -> PieceCounts | None:
    """Count the pieces of a checkpoint in a sample of some of its languages; None where all are asked for.

    The sample is their sentences, a line each; or a corpus of pairs (source, language, English, translation), of which
    only those in these languages are read. A DataError where a language is not the checkpoint's, or has no text.
    """
    if languages is None or sample is None:
        return None
    if ENGLISH not in languages:
        raise DataError(
            f"--languages {','.join(languages)} must name {ENGLISH} too: every other language is held to it"
        )
    unknown = [language for language in languages if language not in checkpoint.languages]
    if unknown:
        known = ", ".join(checkpoint.languages)
        raise DataError(f"{checkpoint.given}: has no language {', '.join(unknown)}; it has {known}")
    processor = checkpoint.load_tokenizer()
    counts, total, seen = np.zeros(len(processor), np.int64), 0, set[str]()
    source = _sentences(sample, languages, seen)
    while chunk := list(islice(source, CHUNK)):
        ids = [i for sentence in processor.encode(chunk) for i in sentence]
        counts += np.bincount(np.array(ids, np.int64), minlength=len(counts))
        total += len(chunk)
    if not counts.any():
        raise DataError(f"{sample}: no text in {', '.join(languages)}; expected sentences, or pairs in these languages")
    if missing := [language for language in languages if seen and language not in {*seen, ENGLISH}]:
        raise DataError(f"{sample}: no pairs in {', '.join(missing)}; their pieces would all go")
    if total < FEW:
        logger.warning("%s: %d sentences are few: words that are in none of them lose their pieces", sample, total)
    return PieceCounts(languages, ModelProto.FromString(checkpoint.tokenizer.read_bytes()), counts)


@contextmanager
def kept_pieces(checkpoint: Checkpoint, counts: PieceCounts | None) -> Iterator[Checkpoint]:
    """The checkpoint with the pieces that stay, see `PieceCounts.kept`, while the block runs; itself where all do."""
    if counts is None:
        yield checkpoint
        return
    kept = counts.kept()
    logger.info(f"{len(kept):,} of {len(counts.counts):,} pieces stay for {', '.join(counts.languages)}")
    about, weights = with_table(checkpoint, checkpoint.weights[TABLE][kept], counts.languages)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / TOKENIZER).write_bytes(counts.vocabulary(kept))
        if checkpoint.validation.exists():
            lines = [line for line in read_lines(checkpoint.validation) if line.split("\t")[1] in counts.languages]
            (folder / VALIDATION).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield Checkpoint(folder, about, weights, checkpoint.given)


def _sentences(sample: Path, languages: Sequence[str], seen: set[str]) -> Iterator[str]:
    """The sentences of a text, or of the pairs in some languages of a corpus; `seen` gets the languages of these."""
    for line in read_lines(sample):
        fields = line.split("\t")
        if len(fields) != 4:
            yield line
        elif fields[1] in languages:
            seen.add(fields[1])
            yield from fields[2:]
