"""Whether a bundle still is what was exported, on this machine."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xsent.bundle import Bundle, builtin_path
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError
from xsent.options import UnknownTextWarning
from xsent.probe import instruction_set


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
    golden = bundle.golden
    difference = 0.0
    if golden.sentences:
        encoder = SentenceEncoder(bundle.path, backend=backend, threads=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownTextWarning)  # they are of many scripts on purpose
            vectors = encoder.encode(golden.sentences, on_long="error")
        difference = float(np.abs(vectors - np.array(golden.vectors)).max())
    allowed = golden.allowed(instruction_set())
    if not difference <= allowed:  # so that NaN fails too
        raise BundleError(
            f"{bundle.path}: golden vectors differ by {difference:.2g}, allowed {allowed:.2g}; "
            "this CPU or onnxruntime computes otherwise, try another version of onnxruntime"
        )
    sizes = len(bundle.files), len(golden.sentences)
    return Verification(str(bundle.path), bundle.fingerprint, *sizes, difference, allowed)
