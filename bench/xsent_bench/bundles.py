"""The bundles to measure: the given ones at each depth, copies in other precisions, and their sizes."""

import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import xsent_export
from xsent.backends.openvino import FILES, FOLDER, import_openvino
from xsent.bundle import GRAPH, MANIFEST, WEIGHTS, Bundle, file_digest, graph_name
from xsent.errors import BundleError
from xsent.files.atomic import atomic_file
from xsent_bench import OURS
from xsent_bench.results import Measurement, named
from xsent_bench.texts import sentences
from xsent_export.export import export as write_export
from xsent_export.graph import PAGE
from xsent_export.options import ExportOptions, Format, Precision
from xsent_train.data.corpus import Pair, write_pairs

OPENVINO = f"{FOLDER}/{FILES[0]}"
PAIRS = 8  # per language, for the parity gate, which lets everything pass, and for OpenVINO's calibration

Depth = tuple[str, int]  # the name of a bundle, see `named`, and layers


@dataclass
class Bundles:
    """Bundles, each opened for its layers."""

    work: Path  # existing folder of the copies; they are reused
    given: Mapping[Depth, Bundle]  # see `open_given`

    def open(self, system: str, layers: int, precision: Precision, *, openvino: bool = False) -> Bundle:
        """The bundle to measure; `openvino` asks for OpenVINO's files, which exist only for all layers of a bundle.

        The given one if it matches, else a copy of it, written if it is missing.
        """
        source = self.given[system, layers]
        ready = not openvino or (OPENVINO in source.files and layers == source.num_layers)
        if source.precision == precision and ready:
            return source
        path = self.work / f"{source.fingerprint}-{precision}{f'-openvino-{layers}' * openvino}"
        mark = path.with_suffix(".made-by")
        files = sorted(Path(xsent_export.__file__).parent.rglob("*.py"))
        code = sha256("".join(map(file_digest, files)).encode()).hexdigest()
        with suppress(BundleError):  # damaged or missing
            made = Bundle.open(path, layers)
            if mark.is_file() and mark.read_text() == code:
                return made
        write_copy(source, precision, path, layers if openvino else None)
        with atomic_file(mark) as file:
            file.write(code.encode())
        return Bundle.open(path, layers)


def open_given(paths: Sequence[Path], note: Callable[[str], None] = lambda _: None) -> dict[Depth, Bundle]:
    """The bundles at each of their depths, under their names; `note` gets a line about each."""
    found: dict[Depth, Bundle] = {}
    for name, path in named(paths).items():
        depths = at_each_depth(path)
        found |= {(name, bundle.layers): bundle for bundle in depths}
        drop_from_cache(path)
        layers = ", ".join(str(bundle.layers) for bundle in depths)
        one = depths[0]
        about = f"{one.name}, {one.vocab_size:,} pieces, {one.dim} dimensions."
        noun = "layer" if layers == "1" else "layers"
        note(f"{name}, {layers} {noun} in {one.precision}: {about}")
    note("All layers are trained; other precisions and missing files for OpenVINO are made from the same bundles.")
    return found


def at_each_depth(path: Path) -> list[Bundle]:
    """A bundle, opened for each of its depths."""
    return [Bundle.open(path, depth) for depth in Bundle.open(path).depths]


def size(bundle: Bundle, system: str = OURS) -> Measurement:
    """The bytes of a bundle and of each of its files, except those for more layers than it was opened for.

    The files for OpenVINO are optional and do not count.
    """
    graphs = {graph_name(depth, bundle.num_layers): depth for depth in bundle.depths}
    files = {GRAPH: 0, MANIFEST: (bundle.path / MANIFEST).stat().st_size}
    for name, entry in bundle.files.items():
        if not name.startswith(f"{FOLDER}/") and graphs.get(name, 0) <= bundle.layers:
            place = GRAPH if name in graphs else name
            files[place] = files.get(place, 0) + entry.bytes
    beyond = {f"layer{number}" for number in range(bundle.layers, bundle.num_layers)}
    beyond |= {f"readout{depth}" for depth in bundle.depths if depth > bundle.layers}
    tensors = (tensor for name, tensor in bundle.network.tensors.items() if name.partition(".")[0] in beyond)
    pages = (math.ceil(math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize / PAGE) for tensor in tensors)
    files[WEIGHTS] -= PAGE * sum(pages)
    figures = {"bytes": sum(files.values()), **{f"{name}_bytes": count for name, count in files.items()}}
    return Measurement("size", {"system": system, "layers": bundle.layers, "precision": bundle.precision}, figures)


def write_copy(source: Bundle, precision: Precision, path: Path, openvino: int | None) -> None:
    """Write a bundle in another precision, or its first `openvino` layers with the files for OpenVINO.

    The parity gate lets everything pass: the loss makes no difference here.
    """
    if openvino is not None:
        import_openvino("bench")  # first: fails before the work
    shutil.rmtree(path, ignore_errors=True)
    with TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.tsv"
        texts = zip(sentences(PAIRS, "en"), sentences(PAIRS, "fr"), strict=True)
        write_pairs(pairs, (Pair("synthetic", language, a, b) for a, b in texts for language in source.languages))
        kind: Format = "bundle" if openvino is None else "openvino"
        loose = ExportOptions(kind, precision, num_layers=openvino, gate_data=pairs, least_cosine=-2, tolerance=101)
        write_export(source.path, path, loose)
    drop_from_cache(path)


def drop_from_cache(folder: Path) -> None:
    """Drop files from the system's cache, where possible, so that they are read from the disk again.

    A file that was just written has larger pages in the cache than one that was read. Mapped, they would count
    megabytes that the process never touched.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for path in (path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
