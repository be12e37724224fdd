"""A GGUF file for llama.cpp and what is built on it: architecture `bert`, mean pooling.

llama.cpp has no linear map after the mean, so a readout becomes one more layer, see `xsent_export.readout`.

Its unigram tokenizer ("t5") reads SentencePiece's map of normalisation, but neither removes format characters nor
spells unknown characters as bytes. Both are expressed in the map, which is applied to the bytes of a text, the longest
key first:

- A format character becomes nothing. (A letter and an accent with one between them are not joined.)
- A character that is a piece becomes itself, and every single byte becomes a stand-in, which is its own piece. So only
  unknown characters are split into bytes. The first byte of one costs as much as an unknown character in SentencePiece,
  and the others cost nothing, so the best segmentation is the same.
"""

import logging
import struct
from collections.abc import Container, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from xsent.clean import remove_format
from xsent.errors import DataError, require_extra
from xsent.similarity import unit_rows
from xsent.tokenizer import Tokenizer
from xsent_export.hub import bert_weights
from xsent_export.options import BundleSpec
from xsent_export.readout import readout_as_layer
from xsent_export.tokenizer import piece_scores
from xsent_train.checkpoint import Checkpoint
from xsent_train.data.vocabulary import ModelProto, SentencePiece
from xsent_train.model import Encoder
from xsent_train.tokens import FRAME

if TYPE_CHECKING:
    from gguf import GGUFWriter

LARGE = 128.0  # ratio of a readout's output to the state that is added to it; a larger one loses more in 8 bits
# Types of the layers and of the table. Compared with 8 bits, a 5-bit table costs 0.0001 of the cosine and saves 5.8 MB
# of 33.9.
TYPES = {"float32": ("F16", "F16"), "int8": ("Q8_0", "Q5_1"), "int4-table": ("Q8_0", "Q4_0")}
STAND_IN = 0xF0000  # plus the byte: a private-use character
CODES = [*range(1, 0xD800), *range(0xE000, 0x110000)]  # all characters
_VALUE = 1 << 31
_WINDOW = 16 * 256  # number of last places that are searched for a node
NO_TEXT = "\ufdd0"  # prefix for pieces that are not text, because servers look for their names in texts


def write_gguf(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> "LlamaEncoder | None":
    """Write `NAME-TYPE.gguf` and a `Modelfile` for Ollama.

    TYPE is F16 for float32, else Q8_0 with a table of Q5_1, or Q4_0 if it has 4 bits. Raises DataError if llama.cpp
    cannot run such an encoder, or would produce other ids.
    """
    with require_extra("gguf"):
        import gguf
    logging.getLogger("gguf").setLevel(logging.ERROR)

    if "/" in checkpoint.name:
        raise DataError(f"{checkpoint.name!r} is not a valid file name; give the model another one with --name")
    encoder = checkpoint.load_encoder(spec.num_layers)
    if reason := _unsupported(encoder, spec):
        raise DataError(f"{checkpoint.path}: {reason}; or use --format onnx")
    encoder = readout_as_layer(encoder, LARGE)
    config = encoder.config
    model = unigram_model(checkpoint.tokenizer)
    kind, table = TYPES[spec.precision]
    name = f"{checkpoint.name}-{kind}.gguf"
    writer = gguf.GGUFWriter(folder / name, "bert")
    writer.add_name(checkpoint.name)
    writer.add_languages(checkpoint.languages)
    writer.add_license(checkpoint.licence)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind}"])
    _add_shape(writer, encoder)
    _add_tokenizer(writer, model, encoder)
    _add_weights(writer, encoder, kind, table)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (folder / "Modelfile").write_text(f"FROM ./{name}\nPARAMETER num_ctx {config.max_length + FRAME}\n")
    return LlamaEncoder(folder / name) if find_spec("llama_cpp") else None


def _unsupported(encoder: Encoder, spec: BundleSpec) -> str:
    """The reason why llama.cpp cannot run an encoder, or an empty string."""
    config = encoder.config
    if not config.num_layers:
        return "llama.cpp has no encoders without layers; export one with layers"
    if spec.dim < config.dim:
        return f"--dim {spec.dim}: llama.cpp returns all {config.dim} numbers; omit it and truncate the vectors"
    if config.activation != "gelu":
        return f"llama.cpp supports only GELU, but this encoder uses {config.activation}"
    return ""


def _add_shape(writer: "GGUFWriter", encoder: Encoder) -> None:
    from gguf import PoolingType

    config = encoder.config
    writer.add_block_count(config.num_layers)
    writer.add_context_length(config.max_length + FRAME)
    writer.add_embedding_length(config.dim)
    writer.add_feed_forward_length(config.ffn_dim)
    writer.add_head_count(config.num_heads)
    writer.add_layer_norm_eps(config.norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(PoolingType.MEAN)


def _add_tokenizer(writer: "GGUFWriter", proto: Any, encoder: Encoder) -> None:  # noqa: ANN401
    config = encoder.config
    types = [int(piece.type) for piece in proto.pieces]  # GGUF uses the numbers of SentencePiece
    text = (SentencePiece.NORMAL, SentencePiece.USER_DEFINED)
    names = [piece.piece if piece.type in text else NO_TEXT + piece.piece for piece in proto.pieces]
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(names)
    writer.add_token_scores([piece.score for piece in proto.pieces])
    writer.add_token_types(types)
    writer.add_token_type_count(1)
    writer.add_bos_token_id(config.first)
    writer.add_eos_token_id(config.last)
    writer.add_unk_token_id(proto.trainer_spec.unk_id)
    writer.add_pad_token_id(max(proto.trainer_spec.pad_id, 0))
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_add_space_prefix(bool(proto.normalizer_spec.add_dummy_prefix))
    writer.add_remove_extra_whitespaces(bool(proto.normalizer_spec.remove_extra_whitespaces))
    writer.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)


def _add_weights(writer: "GGUFWriter", encoder: Encoder, kind: str, table: str) -> None:
    """Add the weights of a BERT by their names in llama.cpp: matrices as `kind`, the table as `table`."""
    from gguf import MODEL_ARCH, GGMLQuantizationType, get_tensor_name_map, quantize

    names = get_tensor_name_map(MODEL_ARCH.BERT, encoder.config.num_layers)
    for name, weight in bert_weights(encoder).items():
        if name.startswith("pooler"):
            continue
        values = weight[: 1 if "token_type" in name else None].numpy()  # there is only one type
        of = "F32" if values.ndim == 1 or "token_type" in name else table if "word_embeddings" in name else kind
        of = "Q4_0" if of != "F32" and not values.any() else of  # smaller, for a matrix of zeros
        if of != "F32" and values.shape[1] % 32:
            of = "F16"  # blocks are 32 numbers of a row
        stored = GGMLQuantizationType[of]
        writer.add_tensor(str(names.get_name(name, (".weight", ".bias"))), quantize(values, stored), raw_dtype=stored)


def unigram_model(path: Path) -> Any:  # noqa: ANN401  protobuf has no types
    """A SentencePiece model that gives the same ids but only needs what llama.cpp has.

    Raises DataError if ids differ, with the number of pieces and odd strings for which they do.
    """
    proto = ModelProto.FromString(path.read_bytes())
    _express(proto)
    expressed = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    original = Tokenizer(path)
    samples = [*(piece.piece.replace("▁", " ") for piece in proto.pieces), *odd_strings()]
    ids = expressed.encode(samples)
    differing = sum(own != list(original.encode(text)) for text, own in zip(samples, ids, strict=True))
    if differing:
        reason = f"llama.cpp would produce other ids for {differing:,} of {len(samples):,} sample strings"
        raise DataError(f"{path}: {reason}; use --format onnx")
    return proto


def odd_strings() -> Iterator[str]:
    """Characters of all scripts, including some that no vocabulary has, on their own and next to letters."""
    for code in CODES[:0x1F000:53]:
        yield f"a{chr(code)}b  {chr(code)}{chr(code | 1)}É"


def _express(proto: Any) -> None:  # noqa: ANN401
    """Change a model as described at the top of this file."""
    normal = [piece for piece in proto.pieces if piece.type == SentencePiece.NORMAL]
    known = {piece.piece for piece in normal if len(piece.piece) == 1} | {" "}
    rules = read_charsmap(proto.normalizer_spec.precompiled_charsmap)
    rules = {key: value for key, value in rules.items() if remove_format(key.decode()) == key.decode()}
    kept = {*remove_format("".join(map(chr, CODES)))}
    rules |= {chr(code).encode(): b"" for code in CODES if chr(code) not in kept}
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
    """The rules in SentencePiece's map: a double array of darts-clone, then the texts that its values point to."""
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
    """The inverse of `read_charsmap`."""
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
    """The units of a trie of sorted bytes, in which 0 leads to a value; equal branches are stored once."""
    branches: dict[tuple[tuple[int, int], ...], int] = {}

    def number(node: dict[int, Any]) -> int:
        content = tuple((label, below if label == 0 else number(below)) for label, below in node.items())
        return branches.setdefault(content, len(branches))

    root = number(trie)
    nodes = list(branches)
    units = np.zeros(256, np.uint32)
    free = np.arange(256) > 0
    untaken = free.copy()  # bases: nodes do not share any, so a label identifies its parent; 0 is not a base
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


class LlamaEncoder:
    """Runs a GGUF file with llama.cpp."""

    def __init__(self, file: Path) -> None:
        from llama_cpp import Llama

        self._model = Llama(str(file), embedding=True, n_ctx=0, n_threads=1, n_threads_batch=1, verbose=False)

    def ids(self, sentence: str) -> list[int]:
        """The ids of a sentence, including the first and the last one."""
        return list(self._model.tokenize(sentence.encode()))

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, D]."""
        return unit_rows(np.array(self._model.embed(list(sentences)), np.float32))
