"""Compact cross-lingual sentence encoders that run offline on small devices.

Names load when they are first used, so that `import xsent` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xsent.bundle import Bundle as Bundle
    from xsent.encoder import SentenceEncoder as SentenceEncoder
    from xsent.errors import BackendError as BackendError
    from xsent.errors import BundleError as BundleError
    from xsent.errors import DataError as DataError
    from xsent.errors import FingerprintError as FingerprintError
    from xsent.errors import MissingExtraError as MissingExtraError
    from xsent.errors import ParityError as ParityError
    from xsent.errors import XsentError as XsentError
    from xsent.options import LongSentenceWarning as LongSentenceWarning
    from xsent.similarity import cosine_similarity as cosine_similarity
    from xsent.similarity import nearest as nearest

    __version__: str

_HOME = {
    "BackendError": "errors",
    "Bundle": "bundle",
    "BundleError": "errors",
    "DataError": "errors",
    "FingerprintError": "errors",
    "LongSentenceWarning": "options",
    "MissingExtraError": "errors",
    "ParityError": "errors",
    "SentenceEncoder": "encoder",
    "XsentError": "errors",
    "cosine_similarity": "similarity",
    "nearest": "similarity",
}

__all__ = [
    "BackendError",
    "Bundle",
    "BundleError",
    "DataError",
    "FingerprintError",
    "LongSentenceWarning",
    "MissingExtraError",
    "ParityError",
    "SentenceEncoder",
    "XsentError",
    "__version__",
    "cosine_similarity",
    "nearest",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name not in _HOME:
        raise AttributeError(f"module 'xsent' has no attribute {name!r}")
    value = getattr(import_module(f"xsent.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("xsent")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"
