"""A model on disk: a folder of plain files with a manifest, `xsent.json`."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

from xsent.errors import BundleError, DataError, check_choice, whole_number
from xsent.files.atomic import read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    # largest difference of a number that processors may cause, by their instructions (`xsent.cpu.instruction_set`);
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


FORMAT_VERSION = 2
MANIFEST = "xsent.json"
TOKENIZER = "sentencepiece.model"
GRAPH = "model.onnx"
TABLE = "embeddings.bin"
WEIGHTS = "weights.bin"

_IDENTITY = ("format_version", "dim", "num_layers", "pooling", "normalisation", "precision", "max_length")
_LONGEST_NAME = 255  # bytes of a path in the folder, as many as most systems let a name have
_DTYPES = ("float32", "float16", "int8", "uint8")  # of weights


def builtin_path() -> Path:
    """The folder of the bundle that ships inside the package."""
    return Path(__file__).parent / "builtin"


def file_digest(path: Path) -> str:
    """SHA-256 of a file in hex, read in pieces: memory stays flat however large the file is."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compute_fingerprint(manifest: Mapping[str, Any]) -> str:
    """Identity of a vector space: the first 16 digits of a SHA-256 over everything in a manifest that moves vectors."""
    identity: list[object] = [manifest[key] for key in _IDENTITY]
    identity += [{key: manifest[key]} for key in ("depths", "spaces") if key in manifest]
    shallower = manifest.get("depths", [])[:-1]
    identity += [manifest["files"][graph_name(depth, manifest["num_layers"])]["sha256"] for depth in shallower]
    identity += [manifest["files"][name]["sha256"] for name in (TOKENIZER, GRAPH, TABLE, WEIGHTS)]
    identity.append(manifest["network"])  # says again what the graph says, to backends that do not read it
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def graph_name(depth: int, num_layers: int) -> str:
    """The file of the graph that gives a vector after some of the layers."""
    return GRAPH if depth == num_layers else f"model.{depth}.onnx"


def split_depth(fingerprint: str) -> tuple[str, str]:
    """The space of a fingerprint, see `Bundle.fingerprint_of`, and its depth, such as "2"; "" for all layers."""
    space = re.sub(r"\.\d+$", "", fingerprint)
    return space, fingerprint[len(space) + 1 :]


def same_space(a: str, b: str) -> bool:
    """Whether vectors of two fingerprints can be compared: their depths may differ."""
    return split_depth(a)[0] == split_depth(b)[0]


@dataclass(frozen=True)
class Bundle(Manifest):
    """An opened bundle: its folder and what its manifest says."""

    path: Path  # the folder
    layers: int  # the depth that it was opened for

    @classmethod
    def open(cls, path: str | Path, layers: int | None = None) -> "Bundle":
        """Read and check a folder, for one of its depths, or all its layers where None is named.

        A BundleError says that it is missing, damaged, of an unknown version or without that depth.
        """
        path = Path(path)
        raw = _read_manifest(path)
        manifest = parse_manifest(raw, path / MANIFEST)
        layers = manifest.num_layers if layers is None else whole_number("layers", layers, 0)
        if layers not in manifest.depths:
            *others, last = map(str, manifest.depths)
            known = f"depths {', '.join(others)} and {last}" if others else f"depth {last} alone"
            raise BundleError(f"{path}: has {known}; layers={layers} is not among them")
        bundle = cls(path=path, layers=layers, **vars(manifest))
        bundle._check_files()
        if bundle.fingerprint != compute_fingerprint(raw):
            raise BundleError(
                f"{path / MANIFEST}: fingerprint {bundle.fingerprint} does not match its own fields "
                f"({compute_fingerprint(raw)}); export the bundle again"
            )
        return bundle

    @property
    def tokenizer_path(self) -> Path:
        """The SentencePiece model."""
        return self.path / TOKENIZER

    @property
    def graph(self) -> Path:
        """The graph of its depth."""
        return self.path / graph_name(self.layers, self.num_layers)

    @property
    def graph_weights(self) -> list[str]:
        """The names of the weights that the graph of its depth reads."""
        others = {f"layer{number}" for number in range(self.layers, self.num_layers)} | {"space"}
        others |= {f"readout{depth}" for depth in self.depths if depth != self.layers}
        return [name for name in self.network.tensors if name.partition(".")[0] not in others]

    def fingerprint_of(self, space: str | None = None) -> str:
        """What identifies vectors of its depth, maybe mapped into another model's space.

        "0518157de647885c" of all layers, "0518157de647885c.2" of two of them, and "0518157de647885c@all-MiniLM-L6-v2"
        or "0518157de647885c@all-MiniLM-L6-v2.2" mapped. What stands before the depth is the space, see `same_space`.
        Vectors that lie in that space as they are need no mapping. A ValueError says which spaces there are.
        """
        mapped = f"@{space}" if self.matrix_into(space) else ""
        return f"{self.fingerprint}{mapped}" + (f".{self.layers}" if self.layers != self.num_layers else "")

    def matrix_into(self, space: str | None) -> str | None:
        """The weight that maps vectors into another model's space; None where they lie in it as they are.

        A ValueError says which spaces there are.
        """
        own = [] if self.space is None else [self.space.rpartition("/")[2], self.space]
        if space is None or space in own:
            return None
        if not own and not self.spaces:
            raise ValueError(f"space = {space!r:.80}: {self.path} has no other model's space; leave it out")
        check_choice("space", space, [*own[:1], *self.spaces])
        return f"space.{space}"

    def mapped(self, weight: str) -> "NDArray[Any]":
        """A weight, by its name in the graph, as it lies on the disk; only what is used of it is read."""
        import numpy as np  # here, not above: what a bundle says about itself needs no arrays

        entry = self.network.tensors[weight]
        if entry.file not in self.files or entry.dtype not in _DTYPES:
            raise ValueError(f"{weight} is {entry.dtype} in {entry.file}")
        dtype = np.dtype(entry.dtype).newbyteorder("<")
        if entry.offset + dtype.itemsize * math.prod(entry.shape) > self.files[entry.file].bytes:
            raise ValueError(f"{weight} ends after {entry.file}")
        return np.asarray(np.memmap(self.path / entry.file, dtype, "r", entry.offset, entry.shape))

    def floats(self, weight: str) -> "NDArray[np.float32]":
        """A weight in memory."""
        numbers: NDArray[np.float32] = self.mapped(weight).astype("float32")  # a copy
        return numbers

    def verify(self) -> None:
        """Read every file and compare it with its checksum; a BundleError names one that differs."""
        for name in self.files:
            self._check_digest(name)

    def _check_files(self) -> None:
        graphs = [graph_name(depth, self.num_layers) for depth in self.depths]
        for name in (TOKENIZER, *graphs, TABLE, WEIGHTS):
            if name not in self.files:
                raise BundleError(f"{self.path / MANIFEST}: files has no {name!r}; export the bundle again")
        for name, entry in self.files.items():
            if not _stays_inside(name):
                raise BundleError(f"{self.path / MANIFEST}: {name[:_LONGEST_NAME]!r} can be no file in the folder")
            file = self.path / name
            if not file.is_file():
                raise BundleError(f"{file}: missing; copy the whole bundle again")
            if (size := file.stat().st_size) != entry.bytes:
                raise BundleError(f"{file}: {size:,} bytes, expected {entry.bytes:,}; copy the whole bundle again")
        for name in (TOKENIZER, self.graph.name):  # the small ones
            self._check_digest(name)

    def _check_digest(self, name: str) -> None:
        digest = file_digest(self.path / name)
        if digest != self.files[name].sha256:
            raise BundleError(
                f"{self.path / name}: damaged (sha256 {digest[:12]}…, expected "
                f"{self.files[name].sha256[:12]}…); copy the whole bundle again"
            )


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise BundleError(f"{path}: no such folder; expected a bundle, a folder with {MANIFEST}")
    file = path / MANIFEST
    if not file.is_file():
        raise BundleError(f"{path}: not a bundle, it has no {MANIFEST}; make one with xsent-export")
    try:
        raw = read_json(file, "copy the whole bundle again")
    except DataError as error:
        raise BundleError(str(error)) from error
    version = raw.get("format_version")
    if version != FORMAT_VERSION:
        reason, remedy = "unknown", "upgrade xsent or export the bundle again"
        if version == 1 and version is not True:
            reason = "from before the encoder was a BERT"
            remedy = "take the built-in model, or train yours again and export it"
        what = f"format_version {version!r} is {reason}"
        raise BundleError(f"{file}: {what}, this xsent reads {FORMAT_VERSION}; {remedy}")
    return raw


def _stays_inside(name: str) -> bool:
    """Whether a file name of a manifest can be one in its folder, on this system and on others."""
    path = PurePosixPath(name)
    windows = PureWindowsPath(name)
    outside = path.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\\" in name
    return not outside and name.isprintable() and len(name.encode()) <= _LONGEST_NAME
