"""What an index keeps: its state, passages and documents."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from xsent.bundle import same_space, split_depth
from xsent.errors import FingerprintError


@dataclass(frozen=True)
class IndexState:
    """What an index says about itself, or a job that was stopped about what it has saved."""

    fingerprint: str  #: identity of the vector space
    dim: int  #: length of a vector (D)
    lines: int = 0  #: read, the empty ones too
    rows: int = 0  #: lines that have a vector
    start: int = 0  #: lines that were there before the last addition
    digest: str = ""  #: of the lines that the last addition has read
    graph: int = 0  #: rows that the graph holds; 0 without one
    graph_digest: str = ""  #: SHA-256 of its file

    @property
    def graph_file(self) -> str:
        """Name of the graph's file."""
        return f"graph-{self.graph}.usearch"

    def check_fingerprint(self, fingerprint: str, path: Path, *, grows: bool = False) -> None:
        """See whether vectors of a fingerprint fit the index; a FingerprintError names both.

        Queries may be of another depth; the vectors of an index that `grows` are all of one.
        """
        if fingerprint == self.fingerprint or (not grows and same_space(fingerprint, self.fingerprint)):
            return
        remedy = f"use the model of the index{' and its --space' * ('@' in self.fingerprint)}, or build the index again"
        if same_space(fingerprint, self.fingerprint):
            layers, others = split_depth(self.fingerprint)[1], split_depth(fingerprint)[1]
            same = f"give --layers {layers}" if layers else f"leave --layers {others} out"
            remedy = f"an index keeps to one depth, {same}, or build the index again"
        raise FingerprintError(f"{path} has vectors of {self.fingerprint}, the model makes {fingerprint}: {remedy}")


class Passage(NamedTuple):
    """A text and where it comes from."""

    source: str  # such as a file; empty if it is not known
    line: int  # from 1; of sources that were added one after the other, numbers go on
    text: str
    digest: bytes  # of all that, and of the vector

    @classmethod
    def of(cls, source: str, line: int, text: str, vector: bytes) -> "Passage":
        """A passage with its digest."""
        content = f"{line}\n{source}\n{text}".encode() + vector
        return cls(source, line, text, hashlib.blake2b(content, digest_size=16).digest())


class StoredDocument(NamedTuple):
    """What an index knows about a document."""

    name: str  # the source of its passages
    stamp: str  # of the version that is in the index; empty while it is not complete
    first: int  # row of its first passage
    passages: int  # how many it has
