"""Language-independent document vectors (LAWDR, Gong et al. 2021).

A document is split into sentences, the sentences are encoded, and the subspace of the language is removed from their
vectors. The document's vector is the sum of these, weighted by how rare each sentence is.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Self

import numpy as np

from xsent.documents.centering import (
    Density,
    DocumentSpace,
    LanguageSpace,
    LanguageSurvey,
    RankChoice,
    choose_rank,
    survey,
)
from xsent.documents.sentences import TextOrSentences, sentences_of
from xsent.encoder import SentenceEncoder
from xsent.errors import whole_number
from xsent.fingerprint import split_depth
from xsent.progress import Progress
from xsent.similarity import Floats

_HELD_OUT = 5  # every fifth document is held out to test the rank: 8 : 2, as in section 2


class DocumentEncoder:
    """Encodes documents of the languages that it was fitted on into one vector space.

    Args:
        encoder: The sentence encoder; sentences that are too long for it are split.
        weighted: Weight sentences by how rare they are in the corpus, for documents that share boilerplate; otherwise
            all have the same weight.

    Example:
        >>> documents = DocumentEncoder(encoder).fit({"en": NOTES})
        >>> documents.encode(["The cat needs food. It is at home."], "en").shape
        (1, 384)
    """

    def __init__(self, encoder: SentenceEncoder, *, weighted: bool = False) -> None:
        self._encoder = encoder
        self._weighted = weighted
        self._space: DocumentSpace | None = None

    @property
    def dim(self) -> int:
        """Length of a document vector (D)."""
        return self._encoder.dim

    @property
    def space(self) -> DocumentSpace:
        """The fitted space: the removed directions, and why. Raises ValueError before `fit` or `load`."""
        if self._space is None:
            raise ValueError("nothing was fitted; call fit or load first")
        return self._space

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the fitted languages."""
        return tuple(self.space.languages)

    @property
    def fingerprint(self) -> str:
        """Identity of the document vectors, from the sentence encoder, its depth and the fitted space."""
        depth = split_depth(self._encoder.fingerprint)[1]
        return self.space.fingerprint + (f".{depth}" if depth else "")

    def fit(
        self,
        documents: Mapping[str, Sequence[TextOrSentences]],
        *,
        rank: int | None = None,
        show_progress_bar: bool | None = False,
    ) -> Self:
        """Fit the languages' subspaces and densities on documents, replacing an earlier fit.

        Args:
            documents: Documents by language code. A document is a text, which needs the extra `documents`, or a list of
                sentences; documents without a sentence are ignored.
            rank: Number of directions to remove (m), 0 for none. None follows the paper: the fewest after whose removal
                a linear classifier cannot tell the languages apart, and none with one language.
            show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.

        Raises:
            ValueError: A language has too little text, or `rank` is not less than D.
            MissingExtraError: A text must be split and sentencex is not installed.
        """
        if not isinstance(documents, Mapping) or not documents:
            raise ValueError('no language to fit; expected documents by language code, such as {"en": documents}')
        rank = None if rank is None else whole_number("rank", rank, 0, self.dim - 1)
        surveys: dict[str, LanguageSurvey] = {}
        densities: dict[str, Density | None] = {}
        with Progress("sentences", enabled=show_progress_bar) as progress:
            for language, texts in documents.items():
                try:
                    surveys[language] = self._survey(_split(texts, language), progress)
                    densities[language] = Density.fit(surveys[language].sample) if self._weighted else None
                except ValueError as error:
                    raise ValueError(f"language {language!r}: {error}") from error
        choice = self._choose(surveys, rank)
        fitted = {
            language: LanguageSpace((found.train + found.held_out).directions(choice.rank), densities[language])
            for language, found in surveys.items()
        }
        self._space = DocumentSpace(self._encoder.fingerprint, fitted, choice)
        return self

    def encode(
        self,
        documents: Sequence[TextOrSentences],
        language: str,
        *,
        normalize_embeddings: bool = True,
        show_progress_bar: bool | None = False,
    ) -> Floats:
        """Encode documents of one language to vectors [n, D]; a vector does not depend on the other documents.

        Args:
            documents: Texts or lists of sentences, see `fit`. One without a sentence gets the zero vector.
            language: Code of their language.
            normalize_embeddings: Scale vectors to length 1; otherwise they are the sums of equation 3.
            show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.
        """
        languages = self.space.languages
        if language not in languages:
            raise ValueError(
                f"language = {language!r} was not fitted; fitted languages: {', '.join(map(repr, languages))}"
            )
        texts = _split(documents, language)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        with Progress("documents", len(texts), enabled=show_progress_bar) as progress:
            stream = self._encoder.encode_iter(chain.from_iterable(texts), on_long="split")
            for row, sentences in enumerate(texts):
                if sentences:
                    vectors[row] = languages[language].document(np.stack(list(islice(stream, len(sentences)))))
                    if normalize_embeddings and (norm := np.linalg.norm(vectors[row])) > 0:
                        vectors[row] /= norm
                progress.advance()
            next(stream, None)  # the encoder warns at its end
        return vectors

    def save(self, path: str | Path) -> None:
        """Write the fitted space to a new folder, without the sentence encoder."""
        self.space.save(Path(path))

    @classmethod
    def load(cls, path: str | Path, encoder: SentenceEncoder) -> Self:
        """Open a folder that `save` wrote. Raises FingerprintError if it was fitted with another sentence encoder."""
        loaded = cls(encoder)
        loaded._space = DocumentSpace.load(Path(path), encoder.fingerprint)
        return loaded

    def _survey(self, texts: Sequence[Sequence[str]], progress: Progress) -> LanguageSurvey:
        held_out = np.array(
            [number % _HELD_OUT == _HELD_OUT - 1 for number, sentences in enumerate(texts) for _ in sentences], bool
        )
        if not len(held_out):
            raise ValueError(f"no sentence in {len(texts):,} documents; expected text to fit on")
        stream = self._encoder.encode_iter(chain.from_iterable(texts), on_long="split")
        return survey(progress.count(stream), held_out, self.dim)

    def _choose(self, surveys: Mapping[str, LanguageSurvey], rank: int | None) -> RankChoice:
        if rank is not None:
            return RankChoice(rank, ())
        for language, found in surveys.items():
            if len(surveys) > 1 and not (found.train.count and len(found.held_out_sample)):
                raise ValueError(
                    f"language {language!r}: too few documents to choose the rank, which tests on every "
                    f"{_HELD_OUT}th; fit on at least {_HELD_OUT}, or set the rank (--rank 1)"
                )
        return choose_rank([s.train for s in surveys.values()], [s.held_out_sample for s in surveys.values()])


def _split(documents: Sequence[TextOrSentences], language: str) -> list[list[str]]:
    if isinstance(documents, str):
        raise TypeError("expected documents, got one str; put it in a list")
    return [sentences_of(document, language) for document in documents]
