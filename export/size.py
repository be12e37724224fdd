"""The best form of a bundle that is small enough."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from xsent.errors import DataError
from xsent.export.form import Form, Precision, trained_dims
from xsent.export.pieces import PieceCounts
from xsent.export.quantization import BLOCK
from xsent.export.storage import PAGE
from xsent.train.checkpoint import Checkpoint
from xsent.train.model import ModelConfig
from xsent.train.tokens import FRAME

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "KIB": 2**10, "MIB": 2**20}
SHARES = (1.0, 0.9999, 0.999, 0.997, 0.99, 0.98, 0.95)  # of a sample's tokens that keep their pieces
OVERHEAD = 70_000  # bytes of graph, manifest and card


@dataclass(frozen=True)
class Candidate:
    """A form, and how many of the pieces it keeps.

    Attributes:
        form: Layers, dimensions, precision.
        share: Share of the sample's tokens whose pieces are kept.
    """

    form: Form
    share: float = 1.0

    def __str__(self) -> str:
        share = f", the pieces of {self.share:.2%} of the sample" if self.share < 1 else ""
        return f"{self.form.precision}, {self.form.dim} dimensions{share}"


def parse_size(text: str) -> int:
    """A size such as 16MB, 15.5MiB or 16000000 in bytes.

    Raises:
        DataError: It is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in UNITS:
        raise DataError(f"--max-size {text!r} is no size; expected such as 16MB or 15.5MiB")
    return int(float(match[1]) * UNITS[match[2].upper()])


def candidates(
    checkpoint: Checkpoint, form: Form, *, precision: Precision | None, dim: int | None, counted: bool
) -> Iterator[Candidate]:
    """Forms to choose from, the best first: bits of the table go before rare pieces, these before dimensions.

    Args:
        checkpoint: What is exported.
        form: The form that is asked for.
        precision: The precision that is asked for; None leaves the choice.
        dim: The dimensions that are asked for; None leaves the choice. Under layers they do not make a table smaller.
        counted: Whether pieces are counted, so that rare ones can go.
    """
    dims = [form.dim] if dim is not None or form.num_layers else trained_dims(checkpoint)[::-1]
    precisions: tuple[Precision, ...] = (precision,) if precision else ("int8", "int4-table")
    for kept in dims:
        for share in SHARES if counted else SHARES[:1]:
            for bits in precisions if kept % 2 == 0 else precisions[:1]:
                yield Candidate(replace(form, dim=kept, precision=bits), share)


def fitting(
    limit: int, free: Iterable[Candidate], checkpoint: Checkpoint, counts: PieceCounts | None
) -> list[Candidate]:
    """The candidates that are no larger than a limit in bytes.

    Raises:
        DataError: None is; says how small the smallest is, and what of.
    """
    fits, sizes, config = [], {}, checkpoint.config
    whole = config.vocab_size, checkpoint.tokenizer.stat().st_size
    vocabulary = cache(counts.sizes) if counts is not None else lambda _: whole  # many candidates keep the same pieces
    for candidate in free:
        pieces, tokenizer = vocabulary(candidate.share)
        table, layers = table_bytes(candidate.form, config, pieces), layer_bytes(candidate.form, config)
        parts = {"table": table, "layers": layers, "tokenizer": tokenizer, "graph and manifest": OVERHEAD}
        sizes[candidate] = parts
        if sum(parts.values()) <= limit:
            fits.append(candidate)
    if fits:
        return fits
    smallest = min(sizes, key=lambda candidate: sum(sizes[candidate].values()))
    parts = sizes[smallest]
    listed = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in parts.items())
    raise DataError(
        f"{limit / 1e6:.1f} MB cannot be reached: the smallest is {sum(parts.values()) / 1e6:.1f} MB, {listed}; "
        "fewer --languages with a --sample, or fewer --layers, make it smaller"
    )


def table_bytes(form: Form, config: ModelConfig, pieces: int) -> int:
    """Size of a table with its scales."""
    width = config.dim if form.num_layers else form.dim
    row = {"float32": 4 * width, "int8": width + 4, "int4-table": width // 2 + 2 * -(-width // BLOCK)}
    return pieces * row[form.precision]


def layer_bytes(form: Form, config: ModelConfig) -> int:
    """Size of everything above the table; each array starts at a page."""
    if not form.num_layers:
        return 0
    dim, inner = config.dim, config.ffn_dim
    matrices = [(dim, 3 * dim), (dim, dim), (dim, inner), (inner, dim)]
    if form.precision == "float32":
        arrays = [4 * inputs * outputs for inputs, outputs in matrices]
    else:
        arrays = [size for inputs, outputs in matrices for size in (inputs * outputs, 4 * outputs)]  # with scales
        arrays += [4 * dim, 4 * dim, 4 * inner]  # smoothing
    arrays += [4 * outputs for _, outputs in matrices] + 4 * [4 * dim]  # biases, norms
    once = [4 * (config.max_length + FRAME) * dim, 4 * dim, 4 * dim]  # positions, norm of the table
    if config.readout and form.dim == dim:
        once += [4 * dim * dim, 4 * dim] if form.precision == "float32" else [dim * dim, 4 * dim, 4 * dim]
    return sum(-(-size // PAGE) * PAGE for size in form.num_layers * arrays + once)
