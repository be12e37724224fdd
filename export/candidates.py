"""What may be made of a checkpoint, the best first, and the first of it that will do."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from xsent.bundle import TABLE, TOKENIZER, WEIGHTS
from xsent.errors import DataError, ParityError
from xsent.export.form import Form, Precision, trained_dims
from xsent.export.options import ExportOptions
from xsent.train.checkpoint import Checkpoint

logger = logging.getLogger(__name__)

SHARES = (1.0, 0.9999, 0.999, 0.997, 0.99, 0.98, 0.95)  # of a sample's tokens that keep their pieces

T = TypeVar("T")


class TooLargeError(DataError):
    """A bundle, whose files have these sizes, is larger than was asked for."""

    def __init__(self, sizes: Mapping[str, int], limit: int) -> None:
        self.bytes = sum(sizes.values())
        parts = {"table": sizes[TABLE], "layers and scales": sizes[WEIGHTS], "tokenizer": sizes[TOKENIZER]}
        parts["the rest"] = self.bytes - sum(parts.values())
        listed = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in parts.items())
        super().__init__(
            f"{limit / 1e6:.1f} MB cannot be reached: the smallest is {self.bytes / 1e6:.1f} MB, {listed}; "
            "fewer --languages with a --sample, or fewer --layers, make it smaller"
        )


@dataclass(frozen=True)
class Candidate:
    """A form, and the share of the sample's tokens whose pieces it keeps."""

    form: Form
    share: float = 1.0

    def __str__(self) -> str:
        share = f", the pieces of {self.share:.2%} of the sample" if self.share < 1 else ""
        return f"{self.form.precision}, {self.form.dim} dimensions{share}"


def candidates(checkpoint: Checkpoint, options: ExportOptions) -> Iterator[Candidate]:
    """What may be made: with `max_size`, bits of the table go before rare pieces, these before dimensions."""
    form = options.form(checkpoint)
    if options.max_size is None:
        yield Candidate(form)
        return
    # Under layers fewer dimensions do not make a table smaller.
    dims = [form.dim] if options.dim is not None or form.num_layers else trained_dims(checkpoint)[::-1]
    precisions: tuple[Precision, ...] = (options.precision,) if options.precision else ("int8", "int4-table")
    for dim in dims:
        for share in SHARES if options.languages else SHARES[:1]:
            for precision in precisions:
                if precision != "int4-table" or dim % 2 == 0:
                    yield Candidate(replace(form, dim=dim, precision=precision), share)


def first_good(choices: Sequence[Candidate], make: Callable[[Candidate], T]) -> T:
    """What is made of the first candidate that is small enough and passes its gate.

    Otherwise raises the ParityError of the last that is small enough, or the TooLargeError of the smallest.
    """
    failed: ParityError | None = None
    smallest: TooLargeError | None = None
    for choice in choices:
        try:
            return make(choice)
        except TooLargeError as error:
            logger.info("%s: %.1f MB are too much", choice, error.bytes / 1e6)
            smallest = min(smallest or error, error, key=lambda each: each.bytes)
        except ParityError as error:
            if choice is not choices[-1]:
                logger.warning("%s; tried again with less", error)
            failed = error
    worst = failed or smallest
    assert worst is not None
    raise worst
