"""The common base of the classes for other tools."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from xsent import OnLong


@dataclass(eq=False, repr=False)
class Integration:
    """Base of the classes for other tools: an encoder, opened with options that all of them accept.

    Args:
        path: A bundle folder; None opens the bundle that ships with the package.
        layers: Number of layers to run, one of the bundle's depths; None runs all.
        truncate_dim: Keep only the first numbers of each vector.
        on_long: What happens to text that is too long, see `SentenceEncoder.encode`.
        threads: Texts to encode at once; None means one per CPU.
        space: Another model's space to map vectors into, see `SentenceEncoder.encode`.
    """

    path: str | Path | None = None
    _: KW_ONLY
    layers: int | None = None
    truncate_dim: int | None = None
    on_long: "OnLong" = "warn"
    threads: int | None = None
    space: str | None = None

    def __post_init__(self) -> None:
        self._open()

    def _open(self) -> None:
        from xsent import SentenceEncoder  # imports numpy, which `xsent web --help` does not need

        self.encoder = SentenceEncoder(self.path, layers=self.layers, threads=self.threads)

    def _encode(self, texts: Any, **options: Any) -> "NDArray[Any]":  # noqa: ANN401  as `SentenceEncoder.encode` takes them
        options = {"truncate_dim": self.truncate_dim, "on_long": self.on_long, "space": self.space, **options}
        return self.encoder.encode(texts, **options)
