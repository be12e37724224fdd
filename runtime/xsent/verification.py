"""Verification of a bundle on this machine: its files, its vectors against the golden ones, and company."""

import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xsent.backends.base import default_backend, open_backend
from xsent.bundle import Bundle, builtin_path
from xsent.cpu import instruction_set
from xsent.encoder import TOKENS_TOGETHER, SentenceEncoder, UnknownTextWarning
from xsent.errors import BundleError
from xsent.precision import Vectors
from xsent.progress import Progress

# Largest tolerance, in multiples of a number's typical size: unrelated vectors differ by more, rounded ones by less.
_MOST = 3


@dataclass(frozen=True)
class Verification:
    """Result of a verification."""

    path: str  # the bundle
    fingerprint: str  # identity of its vector space
    files: int  # files with the right checksum
    sentences: int  # golden sentences encoded
    difference: float  # largest difference of a number from the golden vectors
    tolerance: float  # difference allowed


def verify(path: str | Path | None = None, backend: str | None = None) -> Verification:
    """Check a bundle, by default the built-in one. Raises BundleError if its files or vectors are wrong."""
    bundle = Bundle.open(builtin_path() if path is None else path)
    bundle.verify()
    golden = bundle.golden
    allowed = golden.allowed(instruction_set())
    if not (golden.sentences and 0 <= allowed <= _MOST / math.sqrt(bundle.dim)):
        raise BundleError(
            f"{bundle.path}: {len(golden.sentences)} golden vectors that may differ by {allowed:.2g} prove nothing; "
            "copy or export the bundle again"
        )
    for layers in bundle.depths[:-1] if backend != "openvino" else ():  # it supports only all layers
        if not np.isfinite(_golden_vectors(bundle, layers, backend)).all():
            raise BundleError(f"{bundle.path}: layers={layers} gives NaN or infinity; copy or export the bundle again")
    difference = float(np.abs(_golden_vectors(bundle, None, backend) - np.array(golden.vectors)).max())
    if not difference <= allowed:  # so that NaN fails too
        raise BundleError(
            f"{bundle.path}: golden vectors differ by {difference:.2g}, allowed {allowed:.2g}; "
            "this CPU or onnxruntime computes differently; try another version of onnxruntime"
        )
    return Verification(
        str(bundle.path), bundle.fingerprint, len(bundle.files), len(golden.sentences), difference, allowed
    )


def verify_together(
    path: str | Path | None = None, backend: str | None = None, *, show_progress_bar: bool | None = False
) -> int:
    """Check that sentences get the same bits together as each by itself, at every depth and length.

    Takes a minute on a laptop. The number of sentences that run together is the largest that the encoder uses, and 2.

    Returns:
        The number of sentences compared.

    Raises:
        BundleError: A vector depends on the sentences beside it, on this CPU with this version of onnxruntime.
    """
    whole = Bundle.open(builtin_path() if path is None else path)
    depths = whole.depths if backend != "openvino" else whole.depths[-1:]
    rng, compared = np.random.default_rng(0), 0
    with Progress("lengths", len(depths) * whole.max_length, enabled=show_progress_bar) as progress:
        for layers in depths:
            embed = open_backend(backend or default_backend(), Bundle.open(whole.path, layers)).embed
            for length in range(1, whole.max_length + 1):
                ids = rng.integers(0, whole.vocab_size, (max(TOKENS_TOGETHER // length, 2), length))
                apart = np.concatenate([embed(one[None]) for one in ids])
                if not (np.array_equal(embed(ids), apart) and np.array_equal(embed(ids[:2]), apart[:2])):
                    raise BundleError(
                        f"{whole.path}: layers={layers}: sentences of {length} tokens get other bits together than "
                        "each by itself; please report it with the output of xsent doctor"
                    )
                compared += len(ids)
                progress.advance(1)
    return compared


def _golden_vectors(bundle: Bundle, layers: int | None, backend: str | None) -> Vectors:
    encoder = SentenceEncoder(bundle.path, layers=layers, backend=backend, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # golden sentences are of many scripts
        try:
            return encoder.encode(bundle.golden.sentences, on_long="error")
        except ValueError as error:
            raise BundleError(f"{bundle.path}: golden {error}; copy the whole bundle again") from error
