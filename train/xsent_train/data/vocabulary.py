"""The joint vocabulary: one SentencePiece model over all languages, which is also the only text normaliser.

It can grow by the pieces of another language. Text of the old languages is then cut exactly as before: old pieces keep
their ids and scores, and a new piece that would cut old text in another way is left out.
"""

import io
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
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

# A model's file as a protobuf message, to read and to change its pieces. Made while it is imported: no type is known.
ModelProto: Any = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
SentencePiece = ModelProto.SentencePiece

# What SentencePiece says, and what we say.
REFUSALS = {
    r"too high .* <= (\d+)": "the text has {0} at most; set {setting} to {0} or less, or take more text",
    r"required_chars\. \d+ vs (\d+)": "bytes and characters alone are {0}; set {setting} to {0} or more",
    r"sentences_\.empty\(\)": "there is no sentence to train it on",
}

Piece = tuple[str, float]  # its text, where a space is written ▁, and its log-probability


def sample_text(
    pairs: Iterable[Pair], counts: Mapping[Cell, int], shares: Mapping[Cell, float], sentences: int
) -> Iterator[str]:
    """About `sentences` sentences to train a vocabulary on, drawn per cell in proportion to its share.

    English stands in every pair and would make up half of the text, so that every second English side is left out.
    """
    rates = {cell: sentences * shares[cell] / (1.5 * counts[cell]) for cell in counts}
    for pair in pairs:
        digest = pair.digest
        if digest / 2**64 < rates[pair.cell]:
            if not pair.alone:
                yield pair.translation
            if pair.alone or digest & 1:
                yield pair.english


def train_vocabulary(text: Iterator[str], path: Path, *, size: int, threads: int, exact: bool = True) -> None:
    """Train a unigram SentencePiece model with byte fallback and case folding (mao2021 section 4; 50k joint).

    It has `size` pieces. Raises DataError if the text is too small for them, unless the number need not be `exact`.
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
    except (RuntimeError, ValueError) as error:  # the latter of a size that is no 32-bit number
        why, setting = in_one_line(error), "vocabulary.size" if exact else "--pieces"
        for pattern, words in REFUSALS.items():
            if match := re.search(pattern, why):
                why = words.format(*match.groups(), setting=setting)
        raise DataError(f"no vocabulary of {size} pieces could be trained: {why}") from error
    with atomic_file(path) as file:
        file.write(model.getvalue())


def is_text(processor: spm.SentencePieceProcessor, piece: int) -> bool:
    """Whether a piece is text: no byte, no control symbol, not the unknown one."""
    return not (processor.is_byte(piece) or processor.is_control(piece) or processor.is_unknown(piece))


def maskable_pieces(processor: spm.SentencePieceProcessor) -> NDArray[np.bool_]:
    """Which pieces may be masked: words and parts of words, never punctuation, bytes or control symbols [V]."""
    texts = (processor.id_to_piece(i) if is_text(processor, i) else "" for i in range(len(processor)))
    return np.array([any(unicodedata.category(c)[0] in "LN" for c in text) for text in texts])


def grow_vocabulary(old: Path, text: Iterator[str], out: Path, *, size: int, keep: Iterable[str], threads: int) -> int:
    """Add the pieces of a new language to a vocabulary; returns how many, their ids follow the old ones.

    A vocabulary of the new language alone is trained, and its pieces that the old one lacks are added with their
    scores: the two log-probabilities are of one kind, and measured, a shift between them changes next to nothing.
    The new one has at most `size` pieces; its text is held in memory (3 kB a sentence), 50,000 are enough.

    Sentences to `keep` shall be cut into pieces exactly as before. Those with letters of a script that the old
    vocabulary does not have quote some other language, and are not kept. Raises DataError if the old model cannot be
    read.
    """
    model = read_model(old)
    with TemporaryDirectory() as folder:
        alone = Path(folder) / "sentencepiece.model"
        train_vocabulary(text, alone, size=size, threads=threads, exact=False)
        pieces = missing_pieces(model, alone.read_bytes())
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


def missing_pieces(model: bytes, alone: bytes) -> list[Piece]:
    """The pieces of a new language's vocabulary that a model lacks, the most probable first.

    Their scores are never below the model's lowest: the cost of an unknown character follows from that one and must
    stay the same.
    """
    old, new = open_model(model), open_model(alone)
    known = {old.id_to_piece(i) for i in range(len(old))}
    lowest = min(old.get_score(i) for i in range(len(old)) if is_text(old, i))
    texts = ((new.id_to_piece(i), new.get_score(i)) for i in range(len(new)) if is_text(new, i))
    return [(text, max(score, lowest)) for text, score in texts if text not in known]


def harmless_pieces(model: bytes, pieces: Sequence[Piece], keep: Iterable[str], *, threads: int) -> list[Piece]:
    """Leave out the pieces with which a sentence of a sample, `keep`, would be cut in another way than before.

    A sentence that no new piece turns up in is cut as before: its best cut is still there, and still the best. When
    pieces go, others may take their place, so it takes a few rounds; each looks at the sentences that changed in the
    round before.
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
    logger.info("%d new pieces, %d left out because old text uses them", len(kept), len(pieces) - len(kept))
    return kept


def scripts(text: str) -> set[str]:
    """The scripts of a text's letters, as Unicode names them: {"LATIN"}, {"CJK", "HIRAGANA"}."""
    letters = unicodedata.normalize("NFKC", text)  # full-width, superscript and the like
    return {re.split("[ -]", unicodedata.name(letter, "UNKNOWN"))[0] for letter in set(letters) if letter.isalpha()}


def with_pieces(model: bytes, pieces: Iterable[Piece]) -> bytes:
    """A SentencePiece model with pieces added after its own.

    Protobuf messages can be concatenated: repeated fields grow, and the old bytes stay as they are.
    """
    added = ModelProto(pieces=[SentencePiece(piece=text, score=score) for text, score in pieces])
    return model + bytes(added.SerializeToString())


def open_model(model: bytes) -> spm.SentencePieceProcessor:
    """A SentencePiece model from its bytes."""
    return spm.SentencePieceProcessor(model_proto=model)
