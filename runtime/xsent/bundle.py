"""A bundle: a model on disk, a folder of plain files with a manifest, `xsent.json`."""

import hashlib
import json
import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PureWindowsPath
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

from xsent.errors import BundleError, DataError, check_choice, whole_number
from xsent.files.atomic import read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Earlier versions: the graph takes one sentence, whose activations share one scale; in 2, all vectors are plain means.
FORMAT_VERSION, EARLIER_VERSIONS = 4, (2, 3)
MANIFEST = "xsent.json"
TOKENIZER = "sentencepiece.model"
GRAPH = "model.onnx"
TABLE = "embeddings.bin"
WEIGHTS = "weights.bin"

# Fields of the manifest that affect vectors, besides the files and the network.
_IDENTITY = ("format_version", "dim", "num_layers", "pooling", "normalisation", "precision", "max_length")
_WEIGHT_TYPES = ("float32", "float16", "int8", "uint8")
_LONGEST_NAME = 255  # bytes of a file name in the folder; most systems allow no more
_LARGEST = 2**53  # larger whole numbers are not exact as floats
OTHER = "other"  # CPUs that a tolerance does not name

Count = Annotated[int, 0]  # with its minimum
Size = Annotated[int, 1]


class FileEntry(NamedTuple):
    """A file's entry in the manifest."""

    sha256: str  # checksum in hex
    bytes: Count  # size


class Golden(NamedTuple):
    """Sentences and the vectors that an intact bundle gives them."""

    sentences: tuple[str, ...]  # n sentences
    vectors: tuple[tuple[float, ...], ...]  # their vectors [n, dim], of length 1
    # largest difference of a number that is allowed, by instruction set (`xsent.cpu.instruction_set`) or "other"
    tolerance: dict[str, float]

    def allowed(self, instructions: str) -> float:
        """The difference allowed on a CPU with this instruction set."""
        return self.tolerance.get(instructions, self.tolerance[OTHER])


class TensorEntry(NamedTuple):
    """The location of one weight's numbers."""

    file: str  # name of the file in the manifest
    offset: Count  # bytes before the first number
    dtype: str  # numpy's name of their type; little-endian
    shape: tuple[Size, ...]  # row by row


class Rounding(NamedTuple):
    """How the inputs of a linear layer are rounded to 8 bits: whole steps from 0, as unsigned numbers."""

    step: float  # size of a step; by token, the smallest size
    zero: Count  # number that stands for 0
    by_token: bool  # whether a token's step is its largest number (absolute) / (255 - zero)


class Network(NamedTuple):
    """The encoder for backends that do not read its graph."""

    heads: Size  # attention heads per layer
    activation: str  # of the feed-forward block: "gelu" or "silu"
    norm_eps: float  # added to the variance in layer norms
    first: Count  # piece that is added before every sentence
    last: Count  # piece that is added after it
    tensors: dict[str, TensorEntry]  # every weight, by its name in the graph
    rounding: dict[str, Rounding]  # of linear layers in 8 bits, by name; in earlier versions, none: by sentence


class Trained(NamedTuple):
    """Prefix sizes and depths that were trained, so that each can be exported by itself."""

    prefixes: tuple[int, ...] = ()
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of a bundle's manifest."""

    format_version: Size  # version of the folder layout
    name: str  # name of the model
    languages: tuple[str, ...]  # language codes it was trained for
    licence: str  # licence of the weights
    dim: Size  # length of a sentence vector (D)
    num_layers: Count  # layers above the token table; 0 is the static encoder
    vocab_size: Size  # rows of the token table (V)
    max_length: Size  # longest sentence in tokens, without the first and the last one
    pooling: str  # how tokens become a sentence: "mean", or "attention" where readouts weight them
    normalisation: str  # text normalisation inside the SentencePiece model
    precision: str  # of the weights: "int8", "int4-table" or "float32"
    target: str  # CPUs that the layers' weights are prepared for: "portable", "vnni" or "arm64"
    files: dict[str, FileEntry]  # every file of the folder except the manifest, by relative path
    fingerprint: str  # identity of the vector space, see `compute_fingerprint`
    golden: Golden  # sentences with their vectors
    parity: dict[str, Any]  # the export's measurements against the trained encoder
    network: Network  # the layers and where their weights are
    trained: Trained  # the smaller models that can be exported from it
    space: str | None  # another model whose vectors can be compared with its own; None for a space of its own
    depths: tuple[Count, ...]  # numbers of layers after which it has a vector, ascending, all layers last
    spaces: tuple[str, ...]  # other models into whose spaces it has a matrix [D, E], the weight `space.NAME`


@dataclass(frozen=True)
class Bundle(Manifest):
    """An opened bundle: its folder, its manifest and the depth that it was opened for.

    Example:
        >>> bundle = Bundle.open(builtin_path())
        >>> bundle.dim, bundle.num_layers, bundle.licence
        (384, 6, 'cc-by-sa-4.0')
    """

    path: Path  # the folder
    layers: int  # the depth

    @classmethod
    def open(cls, path: str | Path, layers: int | None = None) -> "Bundle":
        """Read and check a folder, for one of its depths; None means all layers.

        Raises BundleError if the folder is missing, damaged, of an unknown version or without that depth.
        """
        path = Path(path)
        raw = _read_manifest(path)
        manifest = parse_manifest(raw, path / MANIFEST)
        layers = manifest.num_layers if layers is None else whole_number("layers", layers, 0)
        if layers not in manifest.depths:
            *others, last = map(str, manifest.depths)
            known = f"depths {', '.join(others)} and {last}" if others else f"only depth {last}"
            raise BundleError(f"{path}: has {known}; layers={layers} is not among them")
        bundle = cls(path=path, layers=layers, **vars(manifest))
        bundle._check_files()
        computed = compute_fingerprint(raw)
        if bundle.fingerprint != computed:
            raise BundleError(
                f"{path / MANIFEST}: fingerprint {bundle.fingerprint} does not match its own fields ({computed}); "
                "export the bundle again"
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

    def fingerprint_of(self, space: str | None = None) -> str:
        """Identity of the vectors of its depth, mapped into another model's space if one is named.

        "8e9bea496fa558de" of all layers, "8e9bea496fa558de.2" of two layers, "8e9bea496fa558de@all-MiniLM-L6-v2" or
        "8e9bea496fa558de@all-MiniLM-L6-v2.2" mapped; "8e9bea496fa558de@my-model-0c1d2e3f" if the matrix has a file of
        its own, with the first digits of its SHA-256. The part before the depth is the space, see `same_space`. Vectors
        that are already in that space need no mapping. Raises ValueError if there is no such space.
        """
        weight = self.matrix_into(space)
        mapped = f"@{space}" if weight else ""
        if weight and space in added_spaces(self.spaces, self.files):
            mapped += f"-{self.files[matrix_file(space)].sha256[:8]}"
        depth = f".{self.layers}" if self.layers != self.num_layers else ""
        return f"{self.fingerprint}{mapped}{depth}"

    def matrix_into(self, space: str | None) -> str | None:
        """The weight that maps vectors into another model's space; None if they are already in it.

        Raises ValueError if there is no such space.
        """
        own = [] if self.space is None else [self.space.rpartition("/")[2], self.space]
        if space is None or space in own:
            return None
        if not own and not self.spaces:
            raise ValueError(f"space = {space!r:.80}: {self.path} cannot map into another model's space; omit it")
        check_choice("space", space, [*own[:1], *self.spaces])
        return f"space.{space}"

    def dim_of(self, space: str | None) -> int:
        """Length of vectors mapped into another model's space. Raises ValueError if there is no such space."""
        weight = self.matrix_into(space)
        return self.network.tensors[weight].shape[1] if weight else self.dim

    def mapped(self, weight: str) -> "NDArray[Any]":
        """A weight, by its name in the graph, memory-mapped: only the rows that are used are read."""
        import numpy as np  # here, not above: the manifest needs no arrays

        entry = self.network.tensors[weight]
        if entry.file not in self.files or entry.dtype not in _WEIGHT_TYPES:
            raise ValueError(f"{weight} is {entry.dtype} in {entry.file}")
        dtype = np.dtype(entry.dtype).newbyteorder("<")
        if entry.offset + dtype.itemsize * math.prod(entry.shape) > self.files[entry.file].bytes:
            raise ValueError(f"{weight} ends after {entry.file}")
        return np.asarray(np.memmap(self.path / entry.file, dtype, "r", entry.offset, entry.shape))

    def floats(self, weight: str) -> "NDArray[np.float32]":
        """A copy of a weight in memory."""
        return self.mapped(weight).astype("float32")

    def verify(self) -> None:
        """Raise BundleError if the checksum of a file is wrong; `xsent.verification` checks the vectors too."""
        for name in self.files:
            self._check_digest(name)

    def _check_files(self) -> None:
        graphs = [graph_name(depth, self.num_layers) for depth in self.depths]
        for name in (TOKENIZER, *graphs, TABLE, WEIGHTS):
            if name not in self.files:
                raise BundleError(f"{self.path / MANIFEST}: files has no {name!r}; export the bundle again")
        for name, entry in self.files.items():
            if not _stays_inside(name):
                raise BundleError(
                    f"{self.path / MANIFEST}: {name[:_LONGEST_NAME]!r} is not a valid file name in a bundle"
                )
            file = self.path / name
            if not file.is_file():
                raise BundleError(f"{file}: missing; copy the whole bundle again")
            if (size := file.stat().st_size) != entry.bytes:
                raise BundleError(f"{file}: {size:,} bytes, expected {entry.bytes:,}; copy the whole bundle again")
        for name in (TOKENIZER, self.graph.name):  # the small ones
            self._check_digest(name)

    def _check_digest(self, name: str) -> None:
        digest = file_digest(self.path / name)
        expected = self.files[name].sha256
        if digest != expected:
            raise BundleError(
                f"{self.path / name}: damaged (sha256 {digest[:12]}…, expected {expected[:12]}…); "
                "copy the whole bundle again"
            )


def builtin_path() -> Path:
    """The folder of the bundle that ships inside the package.

    Example:
        >>> (builtin_path() / "xsent.json").is_file()
        True
    """
    return Path(__file__).parent / "builtin"


def graph_name(depth: int, num_layers: int) -> str:
    """The file of the graph for the vector after `depth` layers."""
    return GRAPH if depth == num_layers else f"model.{depth}.onnx"


def matrix_file(space: str) -> str:
    """The file of a matrix into another model's space that was added to a finished model."""
    return f"space.{space}.bin"


def added_spaces(spaces: Iterable[str], files: Container[str]) -> list[str]:
    """The spaces of a bundle whose matrices have files of their own."""
    return [space for space in spaces if matrix_file(space) in files]


def file_digest(path: Path) -> str:
    """SHA-256 of a file in hex, in constant memory."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compute_fingerprint(manifest: Mapping[str, Any]) -> str:
    """Identity of a vector space: 16 digits of the SHA-256 of everything in a manifest that affects vectors.

    Matrices into other models' spaces in files of their own can be added later, so they are not part of it.
    """
    tensors = dict(manifest["network"]["tensors"])
    spaces = [*dict.fromkeys(manifest.get("spaces", []))]
    for added in added_spaces(spaces, manifest["files"]):
        spaces.remove(added)
        del tensors[f"space.{added}"]
    network = {**manifest["network"], "tensors": tensors}
    identity: list[object] = [manifest[key] for key in _IDENTITY]
    identity += [{"depths": manifest["depths"]}] if "depths" in manifest else []
    identity += [{"spaces": spaces}] if spaces else []
    graphs = [graph_name(depth, manifest["num_layers"]) for depth in manifest.get("depths", [])[:-1]]
    identity += [manifest["files"][name]["sha256"] for name in (*graphs, TOKENIZER, GRAPH, TABLE, WEIGHTS)]
    identity.append(network)  # describes the graph for backends that do not read it
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Add the checksums of the folder's files and the fingerprint to a manifest, and write it; returns it."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    entries = {
        file.relative_to(folder).as_posix(): {"sha256": file_digest(file), "bytes": file.stat().st_size}
        for file in files
    }
    manifest = {**manifest, "files": entries}
    manifest["fingerprint"] = compute_fingerprint(manifest)
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in manifest.items()]
    (folder / MANIFEST).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")  # one field per line
    return manifest


def parse_manifest(raw: dict[str, Any], source: Path) -> Manifest:
    """Parse the JSON object of a manifest; raises BundleError with the source and the field.

    A bundle with one depth has no `depths`, one without matrices no `spaces`, an earlier one no `rounding`.
    """
    if raw.get("format_version") in EARLIER_VERSIONS and isinstance(raw.get("network"), dict):
        raw = {**raw, "network": {**raw["network"], "rounding": {}}}
    manifest: Manifest = _parse(Manifest, {"depths": [raw.get("num_layers")], "spaces": [], **raw}, str(source))
    if OTHER not in manifest.golden.tolerance:
        raise BundleError(f"{source}: golden: tolerance: no {OTHER!r}; export the bundle again")
    lengths = [len(vector) for vector in manifest.golden.vectors]
    if lengths != [manifest.dim] * len(manifest.golden.sentences):
        raise BundleError(f"{source}: golden needs one vector of {manifest.dim} numbers per sentence")
    depths = list(manifest.depths)
    if sorted(set(depths)) != depths or depths[-1:] != [manifest.num_layers]:
        raise BundleError(f"{source}: depths {depths} do not ascend to all {manifest.num_layers} layers")
    for space in manifest.spaces:
        if problem := problem_of_name(space):
            raise BundleError(f"{source}: spaces: {problem}")
        matrix = manifest.network.tensors.get(f"space.{space}")
        if matrix is None or len(matrix.shape) != 2 or matrix.shape[0] != manifest.dim:
            raise BundleError(f"{source}: no matrix with {manifest.dim} rows for the space {space}")
        if matrix.file not in manifest.files or matrix.file not in (WEIGHTS, matrix_file(space)):
            raise BundleError(f"{source}: the matrix for the space {space} has no file; copy the whole bundle again")
    return manifest


def problem_of_name(space: str) -> str:
    """Why a space cannot have this name; empty if it can."""
    # In a fingerprint, a suffix such as ".2" is the depth.
    if re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", space) and not re.search(r"\.\d+$", space):
        return ""
    offered = "only letters, digits, _, - and ., and no suffix such as .2"
    return f"{space!r:.80} is not a valid name; expected {offered}"


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise BundleError(f"{path}: no such folder; expected a bundle, a folder with {MANIFEST}")
    file = path / MANIFEST
    if not file.is_file():
        raise BundleError(f"{path}: not a bundle, it has no {MANIFEST}; create one with xsent-export")
    try:
        raw = read_json(file, "copy the whole bundle again")
    except DataError as error:
        raise BundleError(str(error)) from error
    version = raw.get("format_version")
    if version not in (*EARLIER_VERSIONS, FORMAT_VERSION):
        earlier = ", ".join(map(str, EARLIER_VERSIONS))
        raise BundleError(
            f"{file}: format_version {version!r} is unknown, this xsent reads {earlier} and {FORMAT_VERSION}; "
            "upgrade xsent or export the bundle again"
        )
    return raw


def _stays_inside(name: str) -> bool:
    """Whether a file name of a manifest is a relative path inside the folder, on every system."""
    path = PureWindowsPath(name)  # handles / as well as \ and C:
    outside = path.anchor or ".." in path.parts or "\\" in name
    return not outside and name.isprintable() and len(name.encode()) <= _LONGEST_NAME


def _parse(kind: Any, value: Any, where: str, key: str = "") -> Any:  # noqa: ANN401  any type of a field
    """Convert a JSON value to the type of a field; `where` and `key` name it in messages."""
    if type(value) is kind or (value is None and get_origin(kind) is UnionType):
        return value
    expected, least, inner = _json_form(kind)
    if expected is float and type(value) is int and abs(value) < _LARGEST:
        value = float(value)
    if type(value) is not expected:  # not isinstance: a JSON true is not a number
        found = type(value).__name__
        raise BundleError(f"{where}: {key!r} is of type {found}, expected {expected.__name__}")
    if least is not None and value < least:
        raise BundleError(f"{where}: {key!r} is {value}, expected at least {least}")
    if expected is list:
        # No call if the type is right: golden vectors have thousands of numbers, and this runs at every start.
        return tuple([item if type(item) is inner else _parse(inner, item, where, key) for item in value])
    inside = f"{where}: {key}" if key else where
    if isinstance(inner, dict):
        if missing := [name for name in inner if name not in value]:
            raise BundleError(f"{inside}: no {missing[0]!r}; export the bundle again")
        return kind(**{name: _parse(field, value[name], inside, name) for name, field in inner.items()})
    return value if inner in (None, Any) else {name: _parse(inner, item, inside, name) for name, item in value.items()}


@cache
def _json_form(kind: Any) -> tuple[Any, int | None, Any]:  # noqa: ANN401
    """The JSON type of a field's type, its minimum, and the type of its items or the types of its fields."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return args[0], args[1], None
    if origin is UnionType:  # something or None
        return _json_form(args[0])
    if origin is tuple:
        return list, None, args[0]
    if origin is dict:
        return dict, None, args[1]
    fields = getattr(kind, "__annotations__", None)
    return (dict, None, fields) if fields else (kind, None, None)
