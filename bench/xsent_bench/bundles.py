"""The bundles that are measured: given ones at each of their depths, and what is made of them in other forms."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import xsent_export
from xsent.backends.openvino import FILES, FOLDER, import_openvino
from xsent.bundle import Bundle, builtin_path, file_digest
from xsent.errors import BundleError, DataError
from xsent_bench.texts import sentences
from xsent_export.export import export as write_export
from xsent_export.options import ExportOptions, Format, Precision

OPENVINO = f"{FOLDER}/{FILES[0]}"
PAIRS = 8  # a language, for the export's gate, which need not be passed, and for OpenVINO's calibration

Kind = tuple[int, str]  # layers and precision


@dataclass
class Bundles:
    """Bundles by layers and precision, each opened for its layers."""

    work: Path  # folder for those that are made; kept, and used again; it must exist
    given: Mapping[Kind, Bundle]  # see `trained`

    @property
    def depths(self) -> list[int]:
        """The numbers of layers that there are."""
        return sorted({layers for layers, _ in self.given})

    def open(self, layers: int, precision: Precision, *, openvino: bool = False) -> Bundle:
        """The bundle to measure, with OpenVINO's files where asked for, which are of all its layers.

        The given one if it is so; else it is made of the first that has so many layers, unless it is there.
        """
        found = self.given.get((layers, precision))
        if found and (not openvino or (OPENVINO in found.files and layers == found.num_layers)):
            return found
        source = found or next(bundle for (depth, _), bundle in self.given.items() if depth == layers)
        path = self.work / f"{source.fingerprint}-{precision}{f'-openvino-{layers}' * openvino}"
        mark, folder = path.with_suffix(".made-by"), Path(xsent_export.__file__).parent
        code = sha256("".join(map(file_digest, sorted(folder.glob("*.py")))).encode()).hexdigest()
        with suppress(BundleError):  # damaged, or not there
            made = Bundle.open(path, layers)
            if mark.is_file() and mark.read_text() == code:
                return made
        write_as(source, precision, path, layers if openvino else None)
        mark.write_text(code)
        return Bundle.open(path, layers)


def trained(paths: Sequence[Path], note: Callable[[str], None] = lambda _: None) -> dict[Kind, Bundle]:
    """Bundles by layers and precision, each depth that they have; of the built-in one those that no other has.

    A report is told which they are. A DataError where two have the same.
    """
    found: dict[Kind, Bundle] = {}
    for bundle in (bundle for path in paths for bundle in at_each_depth(path)):
        kind = bundle.layers, bundle.precision
        if kind in found:
            alike = f"{bundle.path} and {found[kind].path}: both are {kind[0]} layers in {kind[1]}"
            raise DataError(f"{alike}; give one of them")
        found[kind] = bundle
    for bundle in at_each_depth(builtin_path()):
        found.setdefault((bundle.layers, bundle.precision), bundle)
    for path in dict.fromkeys(bundle.path for bundle in found.values()):
        forget(path)
        here = [bundle for bundle in found.values() if bundle.path == path]
        layers, one = ", ".join(str(bundle.layers) for bundle in here), here[0]
        note(f"{layers} layers in {one.precision}: {one.name}, {one.vocab_size:,} pieces, {one.dim} dimensions.")
    note("All layers are trained; other precisions, and OpenVINO's files that lack, are made of the same bundles.")
    return found


def at_each_depth(path: Path) -> list[Bundle]:
    """A bundle, opened for each number of layers that it has."""
    return [Bundle.open(path, depth) for depth in Bundle.open(path).depths]


def write_as(source: Bundle, precision: Precision, path: Path, openvino: int | None) -> None:
    """Write a bundle in another precision, or as many of its layers as are asked for with OpenVINO's files.

    What is lost makes no difference here.
    """
    if openvino is not None:
        import_openvino("bench")  # before all the work
    shutil.rmtree(path, ignore_errors=True)
    with TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.tsv"
        texts = zip(sentences(PAIRS, "en"), sentences(PAIRS, "fr"), strict=True)
        lines = [f"made-up\t{language}\t{a}\t{b}\n" for a, b in texts for language in source.languages]
        pairs.write_text("".join(lines), encoding="utf-8")
        kind: Format = "bundle" if openvino is None else "openvino"
        loose = ExportOptions(kind, precision, num_layers=openvino, gate_data=pairs, least_cosine=-2, tolerance=101)
        write_export(source.path, path, loose)
    forget(path)


def forget(folder: Path) -> None:
    """Have the system read files from the disk again, where it can be told to.

    A file that was just written lies in its cache in larger pieces than one that was read; mapped, these make a process
    look larger by megabytes that it never touched.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for path in (path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
