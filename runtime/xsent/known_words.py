"""What a model knows about words: how rare one is, and how near words are to each other, whatever their language."""

from collections.abc import Iterable, Sequence

import numpy as np

from xsent.backends.numpy import Table
from xsent.backends.threads import ONE_THREAD
from xsent.bundle import Bundle
from xsent.errors import BundleError
from xsent.similarity import Floats, unit_rows
from xsent.tokenizer import Tokenizer

_MOST = 64  # pieces; a longer query is a text in itself, not a search for words
_UNRELATED = 0.3  # mean cosine that one of seven unrelated passages reaches
_READ = 20_000  # characters of a text


class KnownWords:
    """The words of a bundle's languages, by its tokenizer and the rows of its table.

    Raises BundleError if the table cannot be read.
    """

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        try:
            self._table = Table(bundle)
        except (LookupError, ValueError) as error:
            raise BundleError(f"{bundle.path}: its table cannot be read ({error}); export the bundle again") from error

    def rarity(self, keys: Iterable[str]) -> float:
        """How rare a word with these keys (`xsent.words`) is in the model's languages: 0 for "the", 1 for a name."""
        return self._tokenizer.rarity(keys)

    def nearness(self, query: str, texts: Sequence[str]) -> Floats:
        """How near the words of each text [n] are to those of a query: 0 for unrelated ones, 1 for the same.

        For each piece of the query, the cosine of its row in the table with that of the text's nearest piece, so that
        "bike" is near to "Fahrrad"; their mean, weighted by how rare the pieces are. This is late interaction
        (Khattab & Zaharia 2020, ColBERT, equation 3) without layers.
        """
        rarities = {piece: self._tokenizer.piece_rarity(piece) for piece in self._tokenizer.encode(query)}
        weights = {piece: rarity for piece, rarity in rarities.items() if rarity}
        read = [np.unique(np.array(self._tokenizer.encode(text[:_READ]), np.int64)) for text in texts]
        if not 0 < len(weights) <= _MOST or not any(map(len, read)):
            return np.zeros(len(texts), np.float32)
        pieces, places = np.unique(np.concatenate(read), return_inverse=True)
        with ONE_THREAD:
            asked, found = (unit_rows(self._table(ids)) for ids in (np.array([*weights], np.int64), pieces))
            cosines = asked @ found.T  # [query's pieces, pieces of all texts]
        weight = np.array([*weights.values()], np.float32)
        ends = np.cumsum([len(ids) for ids in read])[:-1]
        means = [weight @ cosines[:, own].max(axis=1) if len(own) else 0 for own in np.split(places, ends)]
        nearness: Floats = (np.array(means, np.float32) / weight.sum() - _UNRELATED) / (1 - _UNRELATED)
        return nearness.clip(0, 1)
