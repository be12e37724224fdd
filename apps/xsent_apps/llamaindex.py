"""LlamaIndex: sentence vectors as its `BaseEmbedding`."""

import asyncio
from pathlib import Path

from xsent import FingerprintError, OnLong, SentenceEncoder
from xsent.errors import require_extra

with require_extra("llamaindex"):
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from pydantic import ConfigDict, Field, PrivateAttr


class XsentEmbedding(BaseEmbedding):
    """Encodes queries and texts alike, in this process; the async methods do it on another thread.

    `to_dict` stores the fingerprint; `from_dict` raises FingerprintError if the bundle has changed.

    Example:
        >>> len(XsentEmbedding(layers=2).get_query_embedding("Where is the station?"))
        384
    """

    model_config = ConfigDict(extra="forbid")  # a misspelt option must not be ignored silently

    path: str | None = Field(None, description="A bundle folder; none: the bundle that ships with xsent.")
    layers: int | None = Field(None, description="Number of layers to run; none: all.")
    truncate_dim: int | None = Field(None, description="Keep only the first numbers of each vector.")
    on_long: OnLong = Field("warn", description="What happens to text that is too long.")
    threads: int | None = Field(None, description="Texts to encode at once; none: one per CPU.")
    space: str | None = Field(None, description="Another model's space to map vectors into.")
    fingerprint: str | None = Field(None, description="The expected vector space; none: the bundle's.")

    _encoder: SentenceEncoder = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Open the bundle. Raises FingerprintError if it is not the expected one."""
        super().model_post_init(context)
        self._encoder = SentenceEncoder(self.path, layers=self.layers, threads=self.threads)
        bundle = self._encoder.bundle
        found = self._encoder.fingerprint_of(self.space)
        if self.fingerprint not in (None, found):
            raise FingerprintError(
                f"{bundle.path} has fingerprint {found}, expected {self.fingerprint}; open the bundle "
                "that the texts were encoded with, or encode them again"
            )
        self.path = None if self.path is None else str(Path(self.path).absolute())  # it may be opened from elsewhere
        self.fingerprint = found
        self.model_name = bundle.name

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex stores."""
        return "XsentEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._encoder.encode(
            texts, truncate_dim=self.truncate_dim, on_long=self.on_long, space=self.space
        ).tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._aget_text_embedding(query)
