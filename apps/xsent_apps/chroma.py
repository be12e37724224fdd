"""Chroma: sentence vectors as an embedding function that a collection finds again when it is opened."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from xsent import FingerprintError, OnLong, SentenceEncoder
from xsent.errors import require_extra

with require_extra("chroma"):
    from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
    from chromadb.utils.embedding_functions import register_embedding_function


class XsentEmbeddingFunction(EmbeddingFunction[Documents]):
    """Texts and queries are encoded alike, in this process; distances are 1 - cosine.

    The collection keeps the settings with the fingerprint; where the bundle is another one by then, it refuses to
    encode. Open it without naming a function: of one that is named, Chroma checks the name alone.

    Args:
        path: A bundle folder; None is the bundle that ships with the package.
        layers: Layers to run, of those that the bundle has; None is all.
        truncate_dim: Keep only the first so many numbers of each vector.
        on_long: What happens to text that is too long, see `SentenceEncoder.encode`.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        layers: int | None = None,
        truncate_dim: int | None = None,
        on_long: OnLong = "warn",
    ) -> None:
        self.path = None if path is None else str(Path(path).absolute())  # the collection may be opened from elsewhere
        self.layers = layers
        self.truncate_dim = truncate_dim
        self.on_long = on_long
        self.encoder = _open(self.path, layers)

    def __call__(self, input: Documents) -> Embeddings:
        """Vectors of texts, a list of arrays of float32 [D]."""
        return list(self.encoder.encode(input, truncate_dim=self.truncate_dim, on_long=self.on_long))

    @staticmethod
    def name() -> str:
        """The name it is stored under."""
        return "xsent"

    def default_space(self) -> Space:
        """How vectors are compared unless the collection says otherwise."""
        return "ip"  # of length 1 as they are, the same as "cosine", for which Chroma would round them once more

    def get_config(self) -> dict[str, Any]:
        """What the collection keeps."""
        settings = {name: getattr(self, name) for name in ("path", "layers", "truncate_dim", "on_long")}
        return {**settings, "fingerprint": self.encoder.fingerprint}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> "XsentEmbeddingFunction":
        """The function that a collection kept; a FingerprintError says that its bundle is another one now."""
        kept = dict(config)
        expected = kept.pop("fingerprint")
        function = XsentEmbeddingFunction(**kept)
        _same(expected, function.encoder.fingerprint)
        return function

    def validate_config_update(self, old_config: dict[str, Any], new_config: dict[str, Any]) -> None:
        """See whether vectors stay comparable; a FingerprintError or ValueError says that they do not."""
        _same(old_config["fingerprint"], new_config["fingerprint"])
        old, new = old_config["truncate_dim"], new_config["truncate_dim"]
        if old != new:
            raise ValueError(f"the collection has truncate_dim = {old}, not {new}: make a new one")


register_embedding_function(XsentEmbeddingFunction)


@lru_cache(maxsize=4)  # Chroma builds the function for every query again
def _open(path: str | None, layers: int | None) -> SentenceEncoder:
    return SentenceEncoder(path, layers=layers)


def _same(expected: str, found: str) -> None:
    if found != expected:
        raise FingerprintError(
            f"the collection was made with the encoder {expected}, this one is {found}: open the bundle that made it, "
            "or make the collection again"
        )
