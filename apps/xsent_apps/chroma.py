"""Chroma: sentence vectors as an embedding function that a collection finds again when it is opened."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from xsent import FingerprintError, SentenceEncoder
from xsent.errors import require_extra
from xsent_apps.integration import Integration

with require_extra("chroma"):
    from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
    from chromadb.utils.embedding_functions import register_embedding_function


class XsentEmbeddingFunction(Integration, EmbeddingFunction[Documents]):
    """Encodes texts and queries alike, in this process; distances are 1 - cosine.

    The collection stores the arguments, those of `Integration`, and the fingerprint. It refuses to encode with another
    bundle. Open it without passing a function: if you pass one, Chroma checks only its name.

    Example:
        >>> XsentEmbeddingFunction(layers=2)(["Where is the station?"])[0].shape
        (384,)
    """

    def _open(self) -> None:
        self.path = None if self.path is None else str(Path(self.path).absolute())  # it may be opened from elsewhere
        self.encoder = _encoder(self.path, self.layers, self.threads)
        self._fingerprint = self.encoder.fingerprint_of(self.space)

    def __call__(self, input: Documents) -> Embeddings:
        """Vectors of texts, a list of arrays of float32 [D]."""
        return list(self._encode(input))

    @staticmethod
    def name() -> str:
        """The name that Chroma stores."""
        return "xsent"

    def default_space(self) -> Space:
        """The default way to compare vectors."""
        return "ip"  # same as "cosine" for vectors of length 1, which Chroma would normalize again

    def get_config(self) -> dict[str, Any]:
        """The configuration that the collection stores."""
        names = ("path", "layers", "truncate_dim", "on_long", "threads", "space")
        return {**{name: getattr(self, name) for name in names}, "fingerprint": self._fingerprint}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> "XsentEmbeddingFunction":
        """The function that a collection stores. Raises FingerprintError if its bundle has changed."""
        kept = dict(config)
        expected = kept.pop("fingerprint")
        function = XsentEmbeddingFunction(**kept)
        _check_fingerprint(expected, function._fingerprint)
        return function

    def validate_config_update(self, old_config: dict[str, Any], new_config: dict[str, Any]) -> None:
        """Raise FingerprintError or ValueError if vectors would not stay comparable."""
        _check_fingerprint(old_config["fingerprint"], new_config["fingerprint"])
        old = old_config["truncate_dim"]
        new = new_config["truncate_dim"]
        if old != new:
            raise ValueError(f"the collection has truncate_dim = {old}, not {new}; create a new one")


register_embedding_function(XsentEmbeddingFunction)


@lru_cache(maxsize=4)  # Chroma builds the function again for every query
def _encoder(path: str | None, layers: int | None, threads: int | None) -> SentenceEncoder:
    return SentenceEncoder(path, layers=layers, threads=threads)


def _check_fingerprint(expected: str, found: str) -> None:
    if found != expected:
        raise FingerprintError(
            f"the collection was created with the encoder {expected}, this one is {found}; open the bundle that it was "
            "created with, or create the collection again"
        )
