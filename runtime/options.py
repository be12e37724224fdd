"""How sentences are encoded: what happens to long and strange ones, and the form of the vectors."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from xsent.errors import check_choice, whole_number
from xsent.hamming import pack_signs

OnLong = Literal["warn", "error", "split"]
Precision = Literal["float32", "float16", "int8", "binary"]
Vectors: TypeAlias = NDArray[Any]  # of a type that `precision` says

_STORED_AS = {"float32": np.float32, "float16": np.float16, "int8": np.int8, "binary": np.uint8}

# A component of a unit vector is about 1 / sqrt(D), so 127 is four of its standard deviations: on held-out pairs
# factors of 8 to 42 find as many translations as float32, and at 32 cosines move least (0.0006 at D = 512).
_INT8_FACTOR = 32


class LongSentenceWarning(UserWarning):
    """Sentences were longer than the encoder reads and were cut; given once a call, with their number."""


class UnknownTextWarning(UserWarning):
    """Sentences were mostly of characters that the encoder does not know; given once a call, with their number."""


def stored_as(precision: str, dim: int) -> tuple[np.dtype[Any], int]:
    """Type and number of what is stored of a vector of `dim` numbers; a ValueError says that it cannot be so."""
    check_choice("precision", precision, list(_STORED_AS))
    if precision == "binary" and dim % 8:
        raise ValueError(f"truncate_dim = {dim} must be a multiple of 8 for binary vectors, eight numbers a byte")
    return np.dtype(_STORED_AS[precision]), dim // 8 if precision == "binary" else dim


def to_int8(vector: NDArray[np.float32]) -> NDArray[np.int8]:
    """A unit vector [D] in steps of 1 / (32 sqrt(D)), cut at 127 of them.

    The step depends on D alone, so that inner products agree between files: <a, b> is about 1024 D cos(a, b).
    """
    factor = np.float32(_INT8_FACTOR * math.sqrt(len(vector)))
    steps: NDArray[np.float32] = np.clip(np.rint(vector * factor), -127, 127)
    return steps.astype(np.int8)


@dataclass(frozen=True)
class EncodeOptions:
    """Checked options of one call."""

    dim: int  # length of the vectors (D); binary ones have D / 8 bytes
    normalize: bool  # whether vectors get length 1; the zero vector stays
    precision: Precision  # form of their numbers
    on_long: OnLong  # what to do with a sentence over `max_length` tokens
    matrix: NDArray[np.float32] | None = None  # into another model's space [D, D], for vectors of length 1

    @classmethod
    def check(
        cls,
        full_dim: int,
        normalize: bool,
        truncate_dim: int | None,
        precision: Precision,
        on_long: OnLong,
        matrix: NDArray[np.float32] | None = None,
    ) -> "EncodeOptions":
        """Check the arguments of `SentenceEncoder.encode`; a ValueError says what is offered."""
        dim = full_dim if truncate_dim is None else whole_number("truncate_dim", truncate_dim, most=full_dim)
        stored_as(precision, dim)
        if precision in ("int8", "binary") and not normalize:
            raise ValueError(f"precision = {precision!r} keeps no lengths; it needs normalised vectors")
        check_choice("on_long", on_long, get_args(OnLong))
        return cls(dim, normalize, precision, on_long, matrix)

    def empty(self, count: int) -> Vectors:
        """Room for so many vectors, [count, D] or [count, D / 8]."""
        dtype, width = stored_as(self.precision, self.dim)
        return np.empty((count, width), dtype)

    def finish(self, vector: NDArray[np.float32]) -> Vectors:
        """Bring a raw sentence vector into the form asked for, [D] or [D / 8]."""
        vector = vector[: self.dim]
        if self.matrix is not None:  # not by OpenBLAS: its threads would fight with ours
            vector = np.einsum("d,de->e", _unit(vector), self.matrix)
        if self.precision == "binary":
            return pack_signs(vector)
        if self.normalize:
            vector = _unit(vector)
        return to_int8(vector) if self.precision == "int8" else vector.astype(self.precision, copy=False)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """A vector at length 1; the zero vector stays."""
    # One vector at a time: a norm over a matrix may round otherwise, and company must change nothing.
    norm = math.sqrt(np.dot(vector, vector))
    return vector / np.float32(norm) if norm > 0 else vector


def refuse_foreign(*, arrays: bool, prompt: str | None) -> None:
    """Refuse what sentence-transformers offers and we do not; a ValueError says what to do instead."""
    if not arrays:
        raise ValueError("vectors come as NumPy arrays; torch.from_numpy makes a tensor of them without copying")
    if prompt:
        raise ValueError(f"prompt = {prompt!r}: the model was trained without prompts; leave it out")


@dataclass
class Remarks:
    """What a call has to say about its sentences once it has seen them all: one warning of a kind."""

    sentences: int = 0  # how many there were
    cut: int = 0  # those with more tokens than the encoder reads, cut
    unknown: int = 0  # those mostly of characters that no piece of the vocabulary has

    def add(self, other: "Remarks") -> None:
        """Count the sentences of another part too."""
        self.sentences += other.sentences
        self.cut += other.cut
        self.unknown += other.unknown

    def warn(self, max_length: int, languages: tuple[str, ...]) -> None:
        """Warn the caller of the function that calls this."""
        if self.cut:
            message = (
                f"{self.cut:,} of {self.sentences:,} sentences had more than {max_length} tokens and were cut; "
                "on_long='split' encodes all of them"
            )
            warnings.warn(message, LongSentenceWarning, stacklevel=3)
        if self.unknown:
            message = (
                f"{self.unknown:,} of {self.sentences:,} sentences are mostly of characters that this model does not "
                f"know, their vectors mean little; it was trained for {', '.join(languages)}"
            )
            warnings.warn(message, UnknownTextWarning, stacklevel=3)
