"""A vocabulary of another system's size that cuts our texts as ours does."""

from itertools import count, islice
from pathlib import Path

from xsent.train.sentencepiece_proto import ModelProto, SentencePiece

# Korean syllables: none of our texts has one, so that no piece made of them is ever used.
_FIRST, _SYLLABLES = ord("가"), 11_172


def fill_vocabulary(model: Path, size: int, path: Path) -> None:
    """Write a SentencePiece model with pieces added up to a size: it loads and weighs as one of that size does.

    Args:
        model: Ours; copied as it is where it is large enough.
        size: Pieces wanted.
        path: Where it is written.
    """
    proto = ModelProto.FromString(model.read_bytes())
    least = min(piece.score for piece in proto.pieces)
    have = {piece.piece for piece in proto.pieces}
    for text in islice((text for text in map(_piece, count()) if text not in have), max(0, size - len(have))):
        proto.pieces.append(SentencePiece(piece=text, score=least))
    path.write_bytes(proto.SerializeToString(deterministic=True))


def _piece(number: int) -> str:
    """Three syllables, as long in bytes as the pieces of a large multilingual vocabulary; no two numbers share one."""
    return "".join(chr(_FIRST + part % _SYLLABLES) for part in (number, 7919 * number, number // _SYLLABLES))
