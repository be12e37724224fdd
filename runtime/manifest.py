"""The fields of `xsent.json`, read with their types checked.

Named tuples where they will do: Python takes a millisecond to make each data class, at every start.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from xsent.errors import BundleError

OTHER = "other"
_LARGEST = 2**53  # whole numbers above are no floats; far above they cannot be made one

Count = Annotated[int, 0]  # with the least that it may be
Size = Annotated[int, 1]


class FileEntry(NamedTuple):
    """What the manifest says about one file."""

    sha256: str  # checksum in hex
    bytes: Count  # size


class Golden(NamedTuple):
    """Sentences and the vectors that a healthy bundle gives them."""

    sentences: tuple[str, ...]  # n sentences
    vectors: tuple[tuple[float, ...], ...]  # their vectors [n, dim], of length 1
    # largest difference of a number that processors may cause, by their instructions (`xsent.probe.instruction_set`);
    # "other" is for those that are not named
    tolerance: dict[str, float]

    def allowed(self, instructions: str) -> float:
        """The difference allowed on a processor with some instructions."""
        return self.tolerance.get(instructions, self.tolerance[OTHER])


class TensorEntry(NamedTuple):
    """Where the numbers of one weight are."""

    file: str  # the file they are in, by its name in the manifest
    offset: Count  # bytes before them
    dtype: str  # their type, by numpy's name; little-endian
    shape: tuple[Size, ...]  # their shape, row by row


class Network(NamedTuple):
    """The encoder for backends that do not read its graph."""

    heads: Size  # attention heads of a layer
    activation: str  # of the feed-forward block: "gelu" or "silu"
    norm_eps: float  # what the norms add to a variance
    first: Count  # piece that the layers see before every sentence
    last: Count  # piece that they see behind it
    tensors: dict[str, TensorEntry]  # every weight, by its name in the graph


class Trained(NamedTuple):
    """What was trained to stand alone, so that export may cut it out: first numbers of a vector, first layers."""

    prefixes: tuple[int, ...] = ()
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says about itself."""

    format_version: Size  # version of the folder layout
    name: str  # name of the model
    languages: tuple[str, ...]  # language codes it was trained for
    licence: str  # licence of the weights
    dim: Size  # length of a sentence vector (D)
    num_layers: Count  # layers above the token table; 0 is the static encoder
    vocab_size: Size  # rows of the token table (V)
    max_length: Size  # longest sentence in tokens, the first and the last one not counted
    pooling: str  # how tokens become a sentence: "mean"
    normalisation: str  # text normalisation inside the SentencePiece model
    precision: str  # of the weights: "int8", "int4-table" or "float32"
    target: str  # processors that the layers' weights are made for: "portable", "vnni" or "arm64"
    files: dict[str, FileEntry]  # every file of the folder but the manifest, by relative path
    fingerprint: str  # identity of the vector space, see `xsent.bundle.compute_fingerprint`
    golden: Golden  # sentences with their vectors
    parity: dict[str, Any]  # what export measured against the trained encoder, as it wrote it
    network: Network  # the layers and where their weights are
    trained: Trained  # what may be cut out of it
    # the other model that its vectors can be compared with the vectors of; None for a space of its own
    space: str | None
    depths: tuple[Count, ...]  # numbers of layers after which it has a vector, ascending, all layers last
    spaces: tuple[str, ...]  # other models into whose spaces it has a matrix, the weight `space.NAME`


def parse_manifest(raw: dict[str, Any], source: Path) -> Manifest:
    """Turn the JSON object of a manifest into its typed form; a BundleError names the source and the field."""
    filled = {"target": "portable", "trained": {"prefixes": [], "layers": []}, "space": None, "spaces": [], **raw}
    filled.setdefault("depths", [raw.get("num_layers")])
    golden = filled.get("golden")
    if isinstance(golden, dict) and isinstance(golden.get("tolerance"), float):  # one for all
        filled["golden"] = {**golden, "tolerance": {OTHER: golden["tolerance"]}}
    manifest: Manifest = _read(Manifest, filled, str(source))
    if OTHER not in manifest.golden.tolerance:
        raise BundleError(f"{source}: golden: tolerance: no {OTHER!r}; export the bundle again")
    shape = [len(vector) for vector in manifest.golden.vectors]
    if shape != [manifest.dim] * len(manifest.golden.sentences):
        raise BundleError(f"{source}: golden needs one vector of {manifest.dim} numbers a sentence")
    depths, layers = manifest.depths, manifest.num_layers
    if sorted(set(depths)) != list(depths) or depths[-1:] != (layers,):
        raise BundleError(f"{source}: depths {list(depths)} do not ascend to all {layers} layers")
    for space in manifest.spaces:
        # An end such as ".2" is that of a depth in a vector's fingerprint, see `xsent.bundle.same_space`.
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", space) or re.search(r"\.\d+$", space):
            offered = "letters, digits, _ - and . alone, with nothing such as .2 at the end"
            raise BundleError(f"{source}: spaces: {space!r:.80} can be no name; expected {offered}")
        matrix = manifest.network.tensors.get(f"space.{space}")
        if matrix is None or matrix.shape != (manifest.dim, manifest.dim):
            raise BundleError(f"{source}: no matrix of {manifest.dim} x {manifest.dim} numbers for the space {space}")
    return manifest


def _read(kind: Any, value: Any, where: str, key: str = "") -> Any:  # noqa: ANN401  whatever a field may be
    """A JSON value as the type that a field has; `where` and `key` name it in messages."""
    if type(value) is kind or (value is None and get_origin(kind) is UnionType):
        return value
    expected, least, of = _form(kind)
    if expected is float and type(value) is int and abs(value) < _LARGEST:
        value = float(value)
    if type(value) is not expected:  # not isinstance: a JSON true is no number
        found = type(value).__name__
        raise BundleError(f"{where}: {key!r} is of type {found}, expected {expected.__name__}")
    if least is not None and value < least:
        raise BundleError(f"{where}: {key!r} is {value}, expected at least {least}")
    if expected is list:
        # Not all by a call: there are thousands of numbers in golden vectors, and a millisecond is seen at every start.
        return tuple([one if type(one) is of else _read(of, one, where, key) for one in value])
    inside = f"{where}: {key}" if key else where
    if isinstance(of, dict):
        fields: dict[str, Any] = of
        if missing := [name for name in fields if name not in value]:
            raise BundleError(f"{inside}: no {missing[0]!r}; export the bundle again")
        return kind(**{name: _read(one, value[name], inside, name) for name, one in fields.items()})
    return value if of in (None, Any) else {name: _read(of, one, inside, name) for name, one in value.items()}


@cache
def _form(kind: Any) -> tuple[Any, int | None, Any]:  # noqa: ANN401
    """How JSON has a type: as which of its own, the least number, and the type inside, or those of its fields."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return args[0], args[1], None
    if origin is UnionType:  # of something and None
        return _form(args[0])
    if origin in (tuple, dict):
        return (list, None, args[0]) if origin is tuple else (dict, None, args[1])
    fields = getattr(kind, "__annotations__", None)
    return (dict, None, fields) if fields else (kind, None, None)
