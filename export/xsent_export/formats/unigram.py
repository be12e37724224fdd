"""Our tokenizer in what llama.cpp's unigram tokenizer ("t5" in GGUF) has: pieces, scores, and a map of characters.

That tokenizer reads SentencePiece's map of normalisation as it is, but neither removes format characters nor spells
unknown characters as bytes. Both are expressed in the map, which is applied to the bytes of a text, the longest key
first:

- A format character becomes nothing. (Where one stands between a letter and its accent, these are not joined.)
- A character that is a piece becomes itself, and every single byte a stand-in, a piece of its own. So only unknown
  characters fall into bytes. The first byte of one costs as much as an unknown character in SentencePiece, the others
  nothing, so that the best segmentation stays the same.
"""

import struct
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from xsent.clean import remove_format
from xsent.errors import DataError
from xsent.tokenizer import Tokenizer
from xsent_export.formats.tokenizer import piece_scores
from xsent_train.data.vocabulary import ModelProto, SentencePiece

STAND_IN = 0xF0000  # and the byte: a character for private use
CODES = [*range(1, 0xD800), *range(0xE000, 0x110000)]  # of characters
_VALUE = 1 << 31
_WINDOW = 16 * 256  # last places that are looked at for a node


def unigram_model(path: Path) -> Any:  # noqa: ANN401  protobuf has no types
    """A SentencePiece model that gives the same ids with what llama.cpp has.

    Raises DataError with the number of pieces and odd strings whose ids differ, if there are any.
    """
    proto = ModelProto.FromString(path.read_bytes())
    _express(proto)
    expressed = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    ours = Tokenizer(path)
    samples = [*(piece.piece.replace("▁", " ") for piece in proto.pieces), *odd_strings()]
    ids = expressed.encode(samples)
    differing = sum(found != list(ours.encode(text)) for text, found in zip(samples, ids, strict=True))
    if differing:
        reason = f"llama.cpp would give other ids for {differing:,} of {len(samples):,} sample strings"
        raise DataError(f"{path}: {reason}; use --format onnx")
    return proto


def odd_strings() -> Iterator[str]:
    """Characters of all scripts, some of which no vocabulary has, alone and beside letters."""
    for code in CODES[:0x1F000:53]:
        yield f"a{chr(code)}b  {chr(code)}{chr(code | 1)}É"


def _express(proto: Any) -> None:  # noqa: ANN401
    """Change a model as the head of this file says."""
    normal = [piece for piece in proto.pieces if piece.type == SentencePiece.NORMAL]
    known = {piece.piece for piece in normal if len(piece.piece) == 1} | {" "}
    rules = read_charsmap(proto.normalizer_spec.precompiled_charsmap)
    rules = {key: value for key, value in rules.items() if remove_format(key.decode()) == key.decode()}
    rules |= {chr(code).encode(): b"" for code in CODES if not remove_format(chr(code))}
    if proto.trainer_spec.byte_fallback:
        rules = {key: _spell(value.decode(), known).encode() for key, value in rules.items()}
        rules = {c.encode(): c.encode() for c in known if not c.isascii()} | rules
        bytes_left = (byte for byte in range(1, 256) if byte >= 128 or chr(byte) not in known)
        rules = {bytes([byte]): _stand_in(byte).encode() for byte in bytes_left} | rules
        for piece in normal:
            piece.piece = _spell(piece.piece, known)
        for piece, score in zip(proto.pieces, piece_scores(proto), strict=True):
            if piece.type == SentencePiece.BYTE:
                piece.piece = _stand_in(int(piece.piece[3:5], 16))
                piece.score = score
                piece.type = SentencePiece.NORMAL
        proto.trainer_spec.byte_fallback = False
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    proto.trainer_spec.treat_whitespace_as_suffix = False
    proto.normalizer_spec.precompiled_charsmap = write_charsmap(rules)


def _stand_in(byte: int) -> str:
    return chr(STAND_IN + byte)


def _spell(text: str, known: Container[str]) -> str:
    """A text with stand-ins for the bytes of unknown characters."""
    return "".join(c if c in known else "".join(map(_stand_in, c.encode())) for c in text)


def read_charsmap(charsmap: bytes) -> dict[bytes, bytes]:
    """The rules of SentencePiece's map: a double array of darts-clone, then the texts that its values point to."""
    if not charsmap:
        return {}
    (size,) = struct.unpack_from("<I", charsmap)
    units = np.frombuffer(charsmap, "<u4", size // 4, 4)
    texts = charsmap[4 + size :]
    labels = np.arange(256)

    @cache
    def children(base: int) -> list[int]:
        block = base & ~0xFF
        found = units[block : block + 256] & (_VALUE | 0xFF)
        return [label for label in (np.flatnonzero(found == (labels ^ base & 0xFF)) ^ base & 0xFF).tolist() if label]

    rules = {}
    stack = [(0, b"")]
    while stack:
        place, key = stack.pop()
        unit = int(units[place])
        base = place ^ (unit >> 10) << ((unit & 1 << 9) >> 6)
        if unit >> 8 & 1:
            start = int(units[base]) & ~_VALUE
            rules[key] = texts[start : texts.index(b"\0", start)]
        stack += [(base ^ label, key + bytes([label])) for label in children(base)]
    return rules


def write_charsmap(rules: dict[bytes, bytes]) -> bytes:
    """The opposite of `read_charsmap`."""
    texts = bytearray()
    places: dict[bytes, int] = {}
    trie: dict[int, Any] = {}
    for key, text in sorted(rules.items()):
        if text not in places:
            places[text] = len(texts)
            texts += text + b"\0"
        node = trie
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = places[text]
    units = _double_array(trie).astype("<u4").tobytes()
    return struct.pack("<I", len(units)) + units + bytes(texts)


def _double_array(trie: dict[int, Any]) -> NDArray[np.uint32]:
    """The units of a trie of bytes, whose 0 leads to a value; equal branches are there once."""
    branches: dict[tuple[tuple[int, int], ...], int] = {}

    def number(node: dict[int, Any]) -> int:
        content = ((label, below if label == 0 else number(below)) for label, below in node.items())
        return branches.setdefault(tuple(sorted(content)), len(branches))

    root = number(trie)
    nodes = list(branches)
    units = np.zeros(256, np.uint32)
    free = np.arange(256) > 0
    untaken = free.copy()  # bases: no two nodes share one, so that a label tells its parent; 0 is none
    bases: dict[int, int] = {}  # by node
    stack = [(0, root)]
    while stack:
        place, node = stack.pop()
        labels = np.array([label for label, _ in nodes[node]])
        is_new = node not in bases
        if is_new:
            window = max(0, len(units) - _WINDOW)
            found = (window + np.flatnonzero(free[window:])) ^ labels[0]
            for label in labels:
                found = found[free[found ^ label]]
            found = found[untaken[found]]
            if not len(found):
                found = np.array([len(units) ^ labels[0]])
                units = np.concatenate([units, np.zeros(256, np.uint32)])
                free, untaken = (np.concatenate([flags, np.ones(256, bool)]) for flags in (free, untaken))
            bases[node] = int(found[0])
            untaken[bases[node]] = False
        base = bases[node]
        units[place] |= (place ^ base) << 10 | int(labels[0] == 0) << 8
        for label, below in nodes[node] if is_new else ():
            free[base ^ label] = False
            units[base ^ label] = below | _VALUE if label == 0 else label
            if label:
                stack.append((base ^ label, below))
    return units
