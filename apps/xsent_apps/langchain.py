"""LangChain: sentence vectors as its `Embeddings`."""

from pathlib import Path

from xsent import OnLong, SentenceEncoder
from xsent.errors import require_extra

with require_extra("langchain"):
    from langchain_core.embeddings import Embeddings


class XsentEmbeddings(Embeddings):
    """Queries and documents are encoded alike, in this process; the async methods do it on another thread.

    Args:
        path: A bundle folder; None is the bundle that ships with the package.
        layers: Layers to run, of those that the bundle has; None is all.
        truncate_dim: Keep only the first so many numbers of each vector.
        on_long: What happens to text that is too long, see `SentenceEncoder.encode`.
        threads: Sentences to encode at once; None takes every CPU.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        layers: int | None = None,
        truncate_dim: int | None = None,
        on_long: OnLong = "warn",
        threads: int | None = None,
    ) -> None:
        self.encoder = SentenceEncoder(path, layers=layers, threads=threads)
        self.truncate_dim = truncate_dim
        self.on_long = on_long

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of many texts."""
        vectors: list[list[float]] = self.encoder.encode(
            texts, truncate_dim=self.truncate_dim, on_long=self.on_long
        ).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]
