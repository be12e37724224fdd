"""The bundles that are measured: given ones, and random weights of the true shape where none is given."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from xsent import export
from xsent.bench.texts import sentences
from xsent.bundle import TOKENIZER, Bundle, builtin_path, file_digest
from xsent.errors import BundleError, DataError
from xsent.export.bundle import export_bundle
from xsent.export.options import ExportOptions, Format, Precision
from xsent.openvino_backend import FILES, FOLDER, import_openvino
from xsent.train.checkpoint import VALIDATION, Checkpoint
from xsent.train.model import Encoder, ModelConfig

OPENVINO = f"{FOLDER}/{FILES[0]}"
LANGUAGES = "en", "fr"
PAIRS = 40  # for the export's gate, which random weights need not pass, and for OpenVINO's calibration

Kind = tuple[int, str]  # layers and precision


@dataclass
class Bundles:
    """Bundles by layers and precision."""

    work: Path  # folder for those that are made; kept, and used again; it must exist
    given: Mapping[Kind, Bundle] = field(default_factory=dict)  # each takes the place of a made one, see `trained`
    like: Path = field(default_factory=builtin_path)  # the bundle whose shape and tokenizer the made ones have

    def path(self, layers: int, precision: Precision, *, openvino: bool = False) -> Path:
        """The bundle to measure, with OpenVINO's files where asked for; made if it is neither given nor there."""
        found = self.given.get((layers, precision))
        if found is not None and (OPENVINO in found.files or not openvino):
            return found.path
        path = self.work / f"{layers}-layers-{precision}{'-openvino' * openvino}"
        mark, like = path.with_suffix(".made-of"), Bundle.open(self.like)
        code = "".join(file_digest(file) for file in sorted(Path(export.__file__).parent.glob("*.py")))
        made = hashlib.sha256(f"{like.fingerprint} {code}".encode()).hexdigest()
        with suppress(BundleError):  # damaged, or not there
            if Bundle.open(path) and mark.is_file() and mark.read_text() == made:
                return path
        write_random(like, layers, precision, path, openvino=openvino)
        mark.write_text(made)
        return path


def trained(paths: Sequence[Path], note: Callable[[str], None] = lambda _: None) -> dict[Kind, Bundle]:
    """Bundles by layers and precision, the built-in one too where none is like it; a report is told which they are."""
    found: dict[Kind, Bundle] = {}
    for bundle in map(Bundle.open, paths):
        kind = bundle.num_layers, bundle.precision
        if kind in found:
            alike = f"{bundle.path} and {found[kind].path}: both are {kind[0]} layers in {kind[1]}"
            raise DataError(f"{alike}; give one of them")
        found[kind] = bundle
    builtin = Bundle.open(builtin_path())
    found.setdefault((builtin.num_layers, builtin.precision), builtin)
    for bundle in found.values():
        forget(bundle.path)
    named = ", ".join(
        f"{layers} layers in {precision} ({b.name}, {b.vocab_size:,} pieces, {b.dim} dimensions)"
        for (layers, precision), b in found.items()
    )
    note(f"Trained bundles: {named}. All others have random weights in the shape of the built-in one.")
    return found


def write_random(like: Bundle, layers: int, precision: Precision, path: Path, *, openvino: bool) -> None:
    """Export an encoder with random weights, else like a bundle: what it says is nonsense, what it costs is not."""
    if openvino:
        import_openvino("bench")  # before all the work
    shutil.rmtree(path, ignore_errors=True)
    with TemporaryDirectory() as folder:
        # Random weights have nothing to lose.
        kind: Format = "openvino" if openvino else "bundle"
        options = ExportOptions(kind, precision, least_cosine=-2, tolerance=101)
        export_bundle(_random_checkpoint(like, layers, Path(folder)), path, options)
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


def _random_checkpoint(like: Bundle, layers: int, folder: Path) -> Checkpoint:
    network = like.network
    config = ModelConfig(
        vocab_size=like.vocab_size,
        dim=like.dim,
        num_layers=layers,
        num_heads=network.heads,
        ffn_dim=4 * like.dim,  # a BERT's
        max_length=like.max_length,
        activation=network.activation,
        norm_eps=network.norm_eps,
        first=network.first,
        last=network.last,
    )
    generator = torch.Generator().manual_seed(1)
    encoder = Encoder(config)
    for name, parameter in encoder.named_parameters():
        if "norm." not in name:
            torch.nn.init.normal_(parameter.data, std=0.02, generator=generator)
    shutil.copyfile(like.tokenizer_path, folder / TOKENIZER)
    english, other = (sentences(PAIRS, language) for language in LANGUAGES)
    lines = [f"made-up\t{LANGUAGES[1]}\t{a}\t{b}\n" for a, b in zip(english, other, strict=True)]
    (folder / VALIDATION).write_text("".join(lines), encoding="utf-8")
    about = {"name": f"random-{layers}", "languages": list(LANGUAGES), "licence": "CC0-1.0", "step": 0}
    weights = {f"encoder.{name}": weight for name, weight in encoder.state_dict().items()}
    return Checkpoint(folder, {**about, "model": asdict(config)}, weights)
