"""scikit-learn: sentence vectors as a step of a pipeline."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent import OnLong, SentenceEncoder
from xsent.errors import require_extra

with require_extra("sklearn"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted


class SentenceVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts to an array of float32 [n, D], rows of length 1; `fit` opens the encoder and learns nothing.

    Where it is pickled or sent to other processes, the path of the bundle travels, not its weights.

    Args:
        path: A bundle folder; None is the bundle that ships with the package.
        layers: Layers to run, of those that the bundle has; None is all.
        truncate_dim: Keep only the first so many numbers of each vector.
        on_long: What happens to text that is too long, see `SentenceEncoder.encode`.
        threads: Sentences to encode at once; 1 leaves the processors to `n_jobs`.
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
        self.path = path
        self.layers = layers
        self.truncate_dim = truncate_dim
        self.on_long = on_long
        self.threads = threads

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Open the encoder, `encoder_`; texts and labels are not looked at."""
        self.encoder_ = SentenceEncoder(self.path, layers=self.layers, threads=self.threads)
        self._n_features_out = self.truncate_dim or self.encoder_.dim
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Vectors [n, D] of n texts; a ValueError says that `X` is one text or a table."""
        check_is_fitted(self)
        shape = getattr(X, "shape", (0,))
        if isinstance(X, str) or len(shape) != 1:
            given = "one text" if isinstance(X, str) else f"a table of shape {list(shape)}"
            raise ValueError(f"expected a list or a column of texts, got {given}")
        return self.encoder_.encode(X, truncate_dim=self.truncate_dim, on_long=self.on_long)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn has no types
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
