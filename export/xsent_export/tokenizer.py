"""The tokenizer as a `tokenizer.json`, which Hugging Face `tokenizers` and transformers.js read.

The SentencePiece model is expressed in steps that both readers apply in the same way:

- Format characters are removed, as `xsent.tokenizer` does.
- Text is normalised in steps that both have. `tokenizers` applies SentencePiece's own map to one cluster of characters
  at a time, which loses accents that are separate characters; transformers.js does not read the map. So the map comes
  last, for rare characters, and only for `tokenizers`.
- Pieces are strings of bytes, each byte written as one character. transformers.js has no byte fallback for this kind
  of model, so single bytes are ordinary pieces here. The first byte of a character costs as much as an unknown
  character in SentencePiece, and the others cost nothing, so the best segmentation is the same.

NFKC considers all marks of a letter, SentencePiece a list of sequences. So there are still differences: a capital with
a mark for which only the small letter has a character (T + U+0308); two marks after a letter in an order that NFKC
changes (U+1E9B U+0323, U+03B1 U+0345 U+0301); U+0344 after a letter; and the characters U+FDD0 to U+FDD2. Without the
map, Cherokee and nine old forms of Cyrillic letters (U+1C80 to U+1C88) differ, too.
"""

import base64
from pathlib import Path
from typing import Any

from xsent.clean import FORMAT
from xsent.errors import DataError
from xsent.files.atomic import to_json
from xsent_train.data.vocabulary import ModelProto, SentencePiece
from xsent_train.model import ModelConfig
from xsent_train.tokens import FRAME

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
NORMALISATION = "nmt_nfkc_cf"
UNKNOWN_PENALTY = 10.0  # an unknown character's score in SentencePiece, below that of the least likely piece
# Characters that this normalisation removes, and those that it turns into spaces in addition to NFKC.
REMOVED = "[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]"
SPACES = "[\t\n\x0c\r\u1680\u2028\u2029\u2581\ufffd]"
# Characters that it keeps but NFKC or lowercasing would change; unassigned characters replace them in these steps.
KEPT = {"\u0130": "\ufdd0", "\uff5e": "\ufdd1"}
# Pairs of mark sets: NFKC would swap a mark of the first set and one of the second unless they are separated. Marks
# above and below a letter, then Arabic, then Hebrew.
UNSORTED = (
    ("\u0300-\u0314\u0340-\u0345", "\u0316-\u0333"),
    ("\u0651-\u0655\u0670\u06d6-\u06ed", "\u064b-\u0652\u0670"),
    ("\u05bc-\u05c2", "\u05b0-\u05bd\u05bf\u05c7"),
)
APART = "\ufdd2"
FOLDED = {"ς": "σ", "\u0345": "ι"}  # changed by case folding but not by lowercasing
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
LEADING_SPACE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}  # the space that is added before every text


def write_tokenizer(model: Path, folder: Path, config: ModelConfig, *, charsmap: bool = True) -> None:
    """Write a SentencePiece model as `tokenizer.json` and `tokenizer_config.json`.

    The encoder's shape determines the maximum length and, with layers or a readout, the first and the last token.
    `charsmap` adds SentencePiece's own map of characters, for readers that apply it. Raises DataError for other kinds
    of models.
    """
    proto = ModelProto.FromString(model.read_bytes())
    if reason := _unsupported(proto):
        raise DataError(f"{model}: {reason}; use --format onnx, which needs no tokenizer.json")
    names = _piece_names(proto)
    unknown = proto.trainer_spec.unk_id
    framed = config.num_layers or config.depths
    max_length = config.max_length + (FRAME if framed else 0)
    padding = names[proto.trainer_spec.pad_id if proto.trainer_spec.pad_id >= 0 else unknown]
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": max_length, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": [],  # so that no text can contain one
        "normalizer": _normalizer(proto.normalizer_spec.precompiled_charsmap if charsmap else b""),
        "pre_tokenizer": _sequence("pretokenizers", METASPACE, BYTE_LEVEL),
        "post_processor": _frame(names, config) if framed else None,
        "decoder": _sequence("decoders", BYTE_LEVEL, _replace({"String": "▁"}, " "), LEADING_SPACE),
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": [[name, score] for name, score in zip(names, piece_scores(proto), strict=True)],
            "byte_fallback": False,  # bytes are pieces
        },
    }
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": max_length,
        "pad_token": padding,
        "unk_token": names[unknown],
        "split_special_tokens": True,  # "<PAD>" in a text is ordinary text
        "clean_up_tokenization_spaces": False,
    }
    (folder / TOKENIZER_JSON).write_bytes(to_json(tokenizer))
    (folder / TOKENIZER_CONFIG).write_bytes(to_json(about))


def _piece_names(proto: Any) -> list[str]:  # noqa: ANN401  protobuf has no types
    """The name of each piece in `tokenizer.json`: its bytes, or a name that no text can contain."""
    # A byte is written as its own character if that is visible, else as one from U+0100 on.
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    alphabet = [chr(byte if byte in visible else next(others)) for byte in range(256)]
    ascii_pieces = {p.piece for p in proto.pieces if p.type == SentencePiece.NORMAL and p.piece.isascii()}
    names = []
    for piece in proto.pieces:
        if piece.type == SentencePiece.NORMAL:
            name = "".join(alphabet[byte] for byte in piece.piece.encode())
        elif piece.type == SentencePiece.BYTE and chr(byte := int(piece.piece[3:5], 16)) not in ascii_pieces:
            name = alphabet[byte]
        else:  # normalised text has no capitals
            name = piece.piece.upper()
        names.append(name)
    return names


def _unsupported(proto: Any) -> str | None:  # noqa: ANN401
    """The reason why a model cannot be expressed in these steps, or None."""
    trainer = proto.trainer_spec
    normalizer = proto.normalizer_spec
    if trainer.model_type != trainer.UNIGRAM or not trainer.byte_fallback:
        return "expected a unigram model with byte fallback"
    if normalizer.name != NORMALISATION:
        return f"expected normalisation {NORMALISATION}, got {normalizer.name or 'none'}"
    if not (normalizer.add_dummy_prefix and normalizer.remove_extra_whitespaces and normalizer.escape_whitespaces):
        return "expected escaped spaces, without extra ones, and one added before the text"
    if trainer.treat_whitespace_as_suffix or any(p.type == SentencePiece.USER_DEFINED for p in proto.pieces):
        return "expected neither user-defined symbols nor spaces after words"
    return None


def piece_scores(proto: Any) -> list[float]:  # noqa: ANN401
    """The score of each piece if single bytes are ordinary pieces."""
    unknown = min(p.score for p in proto.pieces if p.type == SentencePiece.NORMAL) - UNKNOWN_PENALTY
    scores = []
    for piece in proto.pieces:
        follows = piece.type == SentencePiece.BYTE and 0x80 <= int(piece.piece[3:5], 16) < 0xC0
        scores.append(piece.score if piece.type == SentencePiece.NORMAL else 0.0 if follows else unknown)
    return scores


def _normalizer(charsmap: bytes) -> dict[str, Any]:
    steps = [
        _replace({"Regex": FORMAT}, ""),
        _replace({"Regex": REMOVED}, ""),
        _replace({"Regex": SPACES}, " "),
        *(_replace({"String": kept}, stand_in) for kept, stand_in in KEPT.items()),
        _replace({"Regex": "|".join(f"(?<=[{first}])(?=[{second}])" for first, second in UNSORTED)}, APART),
        {"type": "NFKC"},
        _replace({"String": APART}, ""),
        {"type": "Lowercase"},
        *(_replace({"String": small}, folded) for small, folded in FOLDED.items()),
        *(_replace({"String": stand_in}, kept) for kept, stand_in in KEPT.items()),
    ]
    if charsmap:
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()})
    steps.append(_replace({"Regex": "^ +| +$| +(?= )"}, ""))
    return _sequence("normalizers", *steps)


def _frame(names: list[str], config: ModelConfig) -> dict[str, Any]:
    ends = [(names[piece], piece) for piece in (config.first, config.last)]
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name, _ in ends)
    text, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [first, text, last],
        "pair": [first, text, last, second, last],
        "special_tokens": {name: {"id": name, "ids": [piece], "tokens": [name]} for name, piece in ends},
    }


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _sequence(field: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", field: list(steps)}
