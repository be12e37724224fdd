"""Errors that a caller can act on.

XsentError
├── BundleError        a bundle is missing, damaged or of an unknown version
├── FingerprintError   vectors or heads that belong to another encoder
├── BackendError       the backend asked for is not available
├── DataError          a line of input that cannot be read
├── ParityError        an exported encoder that differs too much from the trained one
└── MissingExtraError  an optional dependency that is not installed (also an ImportError)

Wrong arguments stay `ValueError` and `TypeError`.
"""


class XsentError(Exception):
    """Base of every error that xsent raises on purpose; its text is one line for people."""


class BundleError(XsentError):
    """A bundle is missing, damaged or of an unknown version; the text names the path."""


class FingerprintError(XsentError):
    """Vectors or heads were made by another encoder; the text names both fingerprints."""


class BackendError(XsentError):
    """The backend asked for is not available; the text says which are."""


class DataError(XsentError):
    """Input that cannot be read; the text names file and line."""


class ParityError(XsentError):
    """An exported encoder differs too much from the trained one; the text has the measured numbers."""


class MissingExtraError(XsentError, ImportError):
    """An optional dependency is missing; the text has the pip line that installs it."""
