"""scikit-learn: sentence vectors as a step of a pipeline."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent.errors import require_extra
from xsent_apps.integration import Integration

with require_extra("sklearn"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted


class SentenceVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Integration, BaseEstimator):
    """Turns texts into an array of float32 [n, D], rows of length 1; `fit` opens the encoder and learns nothing.

    A pickle contains the path of the bundle, not its weights. The arguments are those of `Integration`; if you use
    `n_jobs`, set `threads=1`.

    Example:
        >>> SentenceVectorizer(layers=2).fit_transform(["The cat sleeps.", "Le chat dort."]).shape
        (2, 384)
    """

    def _open(self) -> None:
        """Do nothing yet: in scikit-learn a constructor only keeps its arguments."""

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Open the encoder; texts and labels are ignored."""
        super()._open()
        self.encoder_ = self.encoder
        self._n_features_out = self.truncate_dim or self.encoder.dim_of(self.space)
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Vectors [n, D] of n texts. Raises ValueError if `X` is one text or a table."""
        check_is_fitted(self)
        shape = getattr(X, "shape", (0,))
        if isinstance(X, str) or len(shape) != 1:
            given = "one text" if isinstance(X, str) else f"a table of shape {list(shape)}"
            raise ValueError(f"expected a list or a column of texts, got {given}")
        return self._encode(X)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn has no types
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
