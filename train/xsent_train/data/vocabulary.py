"""The joint vocabulary: one SentencePiece model over all languages, which is also the only text normaliser.

It can grow by the pieces of another language. Text in the old languages keeps exactly the same pieces: old pieces keep
their ids and scores, and new pieces that would cut old text in another way are dropped.
"""

import io
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece as spm
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

from xsent.errors import DataError, in_one_line
from xsent.files.atomic import as_data_error, atomic_file
from xsent_train.data.corpus import Pair
from xsent_train.data.sampling import Cell
from xsent_train.tokens import FIRST, LAST, PAD, UNK

logger = logging.getLogger(__name__)

MASK_PIECE = "[MASK]"

# The file of a model as a protobuf message, to read and change its pieces. Built at import time, so it has no type.
ModelProto: Any = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
SentencePiece = ModelProto.SentencePiece

# SentencePiece's errors, and what to report instead.
REFUSALS = {
    r"too high .* <= (\d+)": "the text has {0} at most; set {setting} to {0} or less, or take more text",
    r"required_chars\. \d+ vs (\d+)": "the bytes and characters already need {0}; set {setting} to {0} or more",
    r"sentences_\.empty\(\)": "there are no sentences to train it on",
}

Piece = tuple[str, float]  # its text, with ▁ for spaces, and its log-probability


def sample_text(
    pairs: Iterable[Pair], counts: Mapping[Cell, int], shares: Mapping[Cell, float], sentences: int
) -> Iterator[str]:
    """About `sentences` sentences to train a vocabulary on, drawn per cell in proportion to its share.

    Only every second English side is used, because English is in every pair and would otherwise be half of the text.
    """
    rates = {cell: sentences * shares[cell] / (1.5 * counts[cell]) for cell in counts}
    for pair in pairs:
        digest = pair.digest
        if digest / 2**64 < rates[pair.cell]:
            if not pair.alone:
                yield pair.translation
            if pair.alone or digest & 1:
                yield pair.english


def train_vocabulary(text: Iterator[str], *, size: int, threads: int, exact: bool = True) -> bytes:
    """Train a unigram SentencePiece model with byte fallback and case folding (mao2021 section 4; 50k joint).

    Returns its file. It has `size` pieces, or fewer if the number need not be `exact`. Raises DataError if the text is
    too small.
    """
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=text,
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=exact,
            normalization_rule_name="nmt_nfkc_cf",
            byte_fallback=True,
            character_coverage=0.9999,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=FIRST,
            eos_id=LAST,
            control_symbols=[MASK_PIECE],
            num_threads=threads,
            minloglevel=1,
        )
    except (RuntimeError, ValueError) as error:  # ValueError for a size over 32 bits
        if "KeyboardInterrupt" in str(error):  # Ctrl-C while the trainer was reading `text`
            raise KeyboardInterrupt from error
        why, setting = in_one_line(error), "vocabulary.size" if exact else "--pieces"
        for pattern, words in REFUSALS.items():
            if match := re.search(pattern, why):
                why = words.format(*match.groups(), setting=setting)
        raise DataError(f"cannot train a vocabulary of {size} pieces: {why}") from error
    return model.getvalue()


def is_text(processor: spm.SentencePieceProcessor, piece: int) -> bool:
    """Whether a piece is text, not a byte, a control symbol or the unknown piece."""
    return not (processor.is_byte(piece) or processor.is_control(piece) or processor.is_unknown(piece))


def maskable_pieces(processor: spm.SentencePieceProcessor) -> NDArray[np.bool_]:
    """Which pieces may be masked: words and parts of words, never punctuation, bytes or control symbols [V]."""
    texts = (processor.id_to_piece(i) if is_text(processor, i) else "" for i in range(len(processor)))
    return np.array([any(unicodedata.category(c)[0] in "LN" for c in text) for text in texts])


def grow_vocabulary(old: Path, text: Iterator[str], out: Path, *, size: int, keep: Iterable[str], threads: int) -> int:
    """Add the pieces of a new language to a vocabulary; returns how many. Their ids follow the old ones.

    A vocabulary of at most `size` pieces is trained on the new language, and the pieces that the old one lacks are
    added with their scores: both are log-probabilities, and in measurements a shift between them changes next to
    nothing. The text is held in memory (3 kB per sentence); 50,000 sentences are enough.

    Sentences to `keep` must have exactly the same pieces as before. This does not apply to sentences with letters of a
    script that the old vocabulary lacks, which quote another language. Raises DataError if the old model cannot be
    read.
    """
    model = read_model(old)
    pieces = missing_pieces(model, train_vocabulary(text, size=size, threads=threads, exact=False))
    pieces = harmless_pieces(model, pieces, keep, threads=threads)
    with atomic_file(out) as file:
        file.write(with_pieces(model, pieces))
    return len(pieces)


def read_model(path: Path) -> bytes:
    """The bytes of a SentencePiece model. Raises DataError if the file is missing or something else."""
    with as_data_error(path, "expected a SentencePiece model"):
        model = path.read_bytes()
        open_model(model)
    return model


def missing_pieces(model: bytes, new_model: bytes) -> list[Piece]:
    """The pieces of a new language's vocabulary that a model lacks, the most probable first.

    Their scores are never below the lowest one of the model, because that one determines the cost of an unknown
    character, which must not change.
    """
    old, new = open_model(model), open_model(new_model)
    known = {old.id_to_piece(i) for i in range(len(old))}
    lowest = min(old.get_score(i) for i in range(len(old)) if is_text(old, i))
    texts = ((new.id_to_piece(i), new.get_score(i)) for i in range(len(new)) if is_text(new, i))
    return [(text, max(score, lowest)) for text, score in texts if text not in known]


def harmless_pieces(model: bytes, pieces: Sequence[Piece], keep: Iterable[str], *, threads: int) -> list[Piece]:
    """Drop the pieces that would change how a sentence of a sample, `keep`, is cut.

    A sentence without new pieces is cut as before, because its best cut still exists and is still the best. When pieces
    are dropped, others may take their place, so this takes a few rounds. Each round only checks the sentences that
    changed in the previous one.
    """
    old = open_model(model)
    known = set[str]().union(*(scripts(old.id_to_piece(i)) for i in range(len(old))))
    sample = [sentence for sentence in keep if scripts(sentence) <= known]
    kept = list(pieces)
    while sample:
        cut = open_model(with_pieces(model, kept)).encode(sample, num_threads=threads)
        intruders = {i - len(old) for ids in cut for i in ids if i >= len(old)}
        sample = [sentence for sentence, ids in zip(sample, cut, strict=True) if max(ids, default=0) >= len(old)]
        kept = [piece for i, piece in enumerate(kept) if i not in intruders]
    logger.info("%d new pieces, %d dropped because old text would use them", len(kept), len(pieces) - len(kept))
    return kept


def scripts(text: str) -> set[str]:
    """The scripts of a text's letters, as Unicode names them: {"LATIN"}, {"CJK", "HIRAGANA"}."""
    letters = unicodedata.normalize("NFKC", text)  # full-width, superscript and so on
    return {re.split("[ -]", unicodedata.name(letter, "UNKNOWN"))[0] for letter in set(letters) if letter.isalpha()}


def with_pieces(model: bytes, pieces: Iterable[Piece]) -> bytes:
    """A SentencePiece model with pieces added after its own.

    Protobuf messages can be concatenated: repeated fields grow, and the old bytes do not change.
    """
    added = ModelProto(pieces=[SentencePiece(piece=text, score=score) for text, score in pieces])
    return model + bytes(added.SerializeToString())


def open_model(model: bytes) -> spm.SentencePieceProcessor:
    """A SentencePiece model from its bytes."""
    return spm.SentencePieceProcessor(model_proto=model)
