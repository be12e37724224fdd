"""Whether a bundle still is what was exported, on this machine."""

import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xsent.bundle import Bundle, builtin_path
from xsent.cpu import instruction_set
from xsent.encoder import SentenceEncoder, UnknownTextWarning
from xsent.errors import BundleError
from xsent.precision import Vectors

# Times the typical size of a number: what is unrelated differs by more, what rounding does by less.
_MOST = 3


@dataclass(frozen=True)
class Verification:
    """What was checked."""

    path: str  # the bundle
    fingerprint: str  # identity of its vector space
    files: int  # files whose checksum is right
    sentences: int  # golden sentences encoded
    difference: float  # largest difference of a number to the golden vectors
    tolerance: float  # difference allowed


def verify(path: str | Path | None = None, backend: str | None = None) -> Verification:
    """Check the files of a bundle, by default the built-in one, and its vectors; a BundleError says what is wrong."""
    bundle = Bundle.open(builtin_path() if path is None else path)
    bundle.verify()
    golden, allowed = bundle.golden, bundle.golden.allowed(instruction_set())
    if not (golden.sentences and 0 <= allowed <= _MOST / math.sqrt(bundle.dim)):
        raise BundleError(
            f"{bundle.path}: {len(golden.sentences)} golden vectors that may differ by {allowed:.2g} tell nothing; "
            "copy or export the bundle again"
        )
    for layers in bundle.depths[:-1] if backend != "openvino" else ():  # it has all layers alone
        if not np.isfinite(_golden_vectors(bundle, layers, backend)).all():
            raise BundleError(f"{bundle.path}: layers={layers} gives no numbers; copy or export the bundle again")
    difference = float(np.abs(_golden_vectors(bundle, None, backend) - np.array(golden.vectors)).max())
    if not difference <= allowed:  # so that NaN fails too
        raise BundleError(
            f"{bundle.path}: golden vectors differ by {difference:.2g}, allowed {allowed:.2g}; "
            "this CPU or onnxruntime computes otherwise, try another version of onnxruntime"
        )
    sizes = len(bundle.files), len(golden.sentences)
    return Verification(str(bundle.path), bundle.fingerprint, *sizes, difference, allowed)


def _golden_vectors(bundle: Bundle, layers: int | None, backend: str | None) -> Vectors:
    encoder = SentenceEncoder(bundle.path, layers=layers, backend=backend, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # they are of many scripts on purpose
        try:
            return encoder.encode(bundle.golden.sentences, on_long="error")
        except ValueError as error:
            raise BundleError(f"{bundle.path}: golden {error}; copy the whole bundle again") from error
