"""LangChain: sentence vectors as its `Embeddings`."""

from xsent.errors import require_extra
from xsent_apps.integration import Integration

with require_extra("langchain"):
    from langchain_core.embeddings import Embeddings


class XsentEmbeddings(Integration, Embeddings):
    """Encodes queries and documents alike, in this process; the async methods do it on another thread.

    The arguments are those of `Integration`.

    Example:
        >>> len(XsentEmbeddings(layers=2).embed_query("Where is the station?"))
        384
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of many texts."""
        vectors: list[list[float]] = self._encode(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]
