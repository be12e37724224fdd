"""The fields of `xsent.json`, read with their types checked.

Named tuples where they will do: Python takes a millisecond to make each data class, at every start.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from xsent.errors import BundleError

T = TypeVar("T")

OTHER = "other"


class FileEntry(NamedTuple):
    """What the manifest says about one file."""

    sha256: str  # checksum in hex
    bytes: int  # size


class Golden(NamedTuple):
    """Sentences and the vectors that a healthy bundle gives them."""

    sentences: tuple[str, ...]  # n sentences
    vectors: tuple[tuple[float, ...], ...]  # their vectors [n, dim], of length 1
    # largest difference of a number that processors may cause, by their instructions (see `xsent.instruction_set`);
    # "other" is for those that are not named
    tolerances: dict[str, float]

    def tolerance(self, instructions: str) -> float:
        """The difference allowed on a processor with some instructions."""
        return self.tolerances.get(instructions, self.tolerances[OTHER])


class TensorEntry(NamedTuple):
    """Where the numbers of one weight are."""

    file: str  # the file they are in, by its name in the manifest
    offset: int  # bytes before them
    dtype: str  # their type, by numpy's name; little-endian
    shape: tuple[int, ...]  # their shape, row by row


class Network(NamedTuple):
    """The encoder for backends that do not read its graph."""

    heads: int  # attention heads of a layer
    activation: str  # of the feed-forward block: "gelu" or "silu"
    norm_eps: float  # what the norms add to a variance
    first: int  # piece that the layers see before every sentence
    last: int  # piece that they see behind it
    tensors: dict[str, TensorEntry]  # every weight, by its name in the graph


class Trained(NamedTuple):
    """What was trained to stand alone, so that export may cut it out: first numbers of a vector, first layers."""

    prefixes: tuple[int, ...] = ()
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says about itself."""

    format_version: int  # version of the folder layout
    name: str  # name of the model
    languages: tuple[str, ...]  # language codes it was trained for
    licence: str  # licence of the weights
    dim: int  # length of a sentence vector (D)
    num_layers: int  # layers above the token table; 0 is the static encoder
    vocab_size: int  # rows of the token table (V)
    max_length: int  # longest sentence in tokens, the first and the last one not counted
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


def parse_manifest(raw: dict[str, Any], source: Path) -> Manifest:
    """Turn the JSON object of a manifest, read from a file, into its typed form.

    Raises:
        BundleError: A field is missing or of the wrong type.
    """
    fields = _Fields(raw, str(source))
    files = fields.inner("files")
    manifest = Manifest(
        format_version=fields.whole("format_version"),
        name=fields.get("name", str),
        languages=fields.tuple_of("languages", str),
        licence=fields.get("licence", str),
        dim=fields.whole("dim"),
        num_layers=fields.whole("num_layers", least=0),
        vocab_size=fields.whole("vocab_size"),
        max_length=fields.whole("max_length"),
        pooling=fields.get("pooling", str),
        normalisation=fields.get("normalisation", str),
        precision=fields.get("precision", str),
        target=fields.get("target", str) if "target" in raw else "portable",
        files={name: _file_entry(files.inner(name)) for name in files.raw},
        fingerprint=fields.get("fingerprint", str),
        golden=_golden(fields.inner("golden")),
        parity=fields.get("parity", dict),
        network=_network(fields.inner("network")),
        trained=_trained(fields.inner("trained")) if "trained" in raw else Trained(),
        space=fields.get("space", str) if raw.get("space") is not None else None,
    )
    shape = [len(vector) for vector in manifest.golden.vectors]
    if shape != [manifest.dim] * len(manifest.golden.sentences):
        raise BundleError(f"{source}: golden needs one vector of {manifest.dim} numbers a sentence")
    return manifest


class _Fields(NamedTuple):
    """A JSON object whose fields are read with their types checked."""

    raw: dict[str, Any]
    where: str

    def get(self, key: str, kind: type[T]) -> T:
        if key not in self.raw:
            raise BundleError(f"{self.where}: no {key!r}; export the bundle again")
        return self._checked(key, self.raw[key], kind)

    def whole(self, key: str, least: int = 1) -> int:
        value = self.get(key, int)
        if value < least:
            raise BundleError(f"{self.where}: {key!r} is {value}, expected at least {least}")
        return value

    def inner(self, key: str) -> "_Fields":
        return _Fields(self.get(key, dict), f"{self.where}: {key}")

    def tuple_of(self, key: str, kind: type[T]) -> tuple[T, ...]:
        return tuple(self._checked(key, value, kind) for value in self.get(key, list))

    def _checked(self, key: str, value: object, kind: type[T]) -> T:
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:  # not isinstance: a JSON true is no number
            found = type(value).__name__
            raise BundleError(f"{self.where}: {key!r} is of type {found}, expected {kind.__name__}")
        return value


def _file_entry(fields: _Fields) -> FileEntry:
    return FileEntry(fields.get("sha256", str), fields.whole("bytes", least=0))


def _network(fields: _Fields) -> Network:
    tensors = fields.inner("tensors")
    return Network(
        heads=fields.whole("heads"),
        activation=fields.get("activation", str),
        norm_eps=fields.get("norm_eps", float),
        first=fields.whole("first", least=0),
        last=fields.whole("last", least=0),
        tensors={name: _tensor_entry(tensors.inner(name)) for name in tensors.raw},
    )


def _trained(fields: _Fields) -> Trained:
    return Trained(fields.tuple_of("prefixes", int), fields.tuple_of("layers", int))


def _tensor_entry(fields: _Fields) -> TensorEntry:
    offset, shape = fields.whole("offset", least=0), fields.tuple_of("shape", int)
    if min(shape, default=1) < 1:
        raise BundleError(f"{fields.where}: 'shape' is {list(shape)}, expected numbers from 1")
    return TensorEntry(fields.get("file", str), offset, fields.get("dtype", str), shape)


def _golden(fields: _Fields) -> Golden:
    rows = fields.tuple_of("vectors", list)
    vectors = tuple(_Fields({"vectors": row}, fields.where).tuple_of("vectors", float) for row in rows)
    return Golden(fields.tuple_of("sentences", str), vectors, _tolerances(fields))


def _tolerances(fields: _Fields) -> dict[str, float]:
    if not isinstance(fields.raw.get("tolerance"), dict):  # one for all
        return {OTHER: fields.get("tolerance", float)}
    inner = fields.inner("tolerance")
    inner.get(OTHER, float)
    return {name: inner.get(name, float) for name in inner.raw}
