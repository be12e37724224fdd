"""The joint vocabulary: one SentencePiece model over all languages, which is also the only text normaliser."""

import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece as spm
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

from xsent.errors import DataError
from xsent.files.atomic import atomic_file
from xsent_train.data.corpus import Pair
from xsent_train.data.sampling import Cell

PAD, UNK, MASK, FIRST, LAST = 0, 1, 2, 3, 4
MASK_PIECE = "[MASK]"

# A model's file as a protobuf message, to read and to change its pieces. Made while it is imported: no type is known.
ModelProto: Any = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
SentencePiece = ModelProto.SentencePiece


def sample_text(
    pairs: Iterable[Pair], counts: Mapping[Cell, int], shares: Mapping[Cell, float], sentences: int
) -> Iterator[str]:
    """About so many sentences to train a vocabulary on, drawn per cell in proportion to its share.

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

    It has `size` pieces. Where the text is too small for so many, that is a DataError, or there are fewer if it need
    not be `exact`.
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
        raise DataError(f"no vocabulary of {size} pieces could be trained: {error}") from error
    with atomic_file(path) as file:
        file.write(model.getvalue())


def is_text(processor: spm.SentencePieceProcessor, piece: int) -> bool:
    """Whether a piece is text: no byte, no control symbol, not the unknown one."""
    return not (processor.is_byte(piece) or processor.is_control(piece) or processor.is_unknown(piece))


def maskable_pieces(processor: spm.SentencePieceProcessor) -> NDArray[np.bool_]:
    """Which pieces may be masked: words and parts of words, never punctuation, bytes or control symbols [V]."""
    texts = (processor.id_to_piece(i) if is_text(processor, i) else "" for i in range(len(processor)))
    return np.array([any(unicodedata.category(c)[0] in "LN" for c in text) for text in texts])
