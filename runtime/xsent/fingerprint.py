"""Identities of vector spaces."""

import re


def split_depth(fingerprint: str) -> tuple[str, str]:
    """The space of a fingerprint, see `Bundle.fingerprint_of`, and its depth, such as "2"; "" for all layers."""
    space = re.sub(r"\.\d+$", "", fingerprint)
    return space, fingerprint[len(space) + 1 :]


def same_space(a: str, b: str) -> bool:
    """Whether vectors of two fingerprints can be compared: their depths may differ.

    Example:
        >>> same_space(encoder.fingerprint, SentenceEncoder(layers=2).fingerprint)
        True
    """
    return split_depth(a)[0] == split_depth(b)[0]
