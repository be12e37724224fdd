"""Sentences to vectors.

Each sentence runs through the graph alone, so its vector never depends on its company; sentences run in
parallel, one thread each. Shapes: n sentences, T tokens, D dimensions.
"""

import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.backends import open_backend
from xsent.bundle import Bundle, builtin_path
from xsent.errors import BundleError
from xsent.options import EncodeOptions, LongSentenceWarning, OnLong, Precision, Vectors
from xsent.parallel import ordered_map
from xsent.progress import Progress
from xsent.similarity import cosine_similarity
from xsent.threads import available_cpus
from xsent.tokenizer import Tokenizer

# Sentences handed to a thread at once: enough to make the hand-over free, few enough to keep all busy.
_CHUNK = 16

_Chunk: TypeAlias = tuple[int, list[str]]  # number of its first sentence, sentences


class SentenceEncoder:
    """Encodes sentences of any of its languages into one vector space.

    Safe to share between threads.

    Args:
        path: A bundle folder; None is the bundle that ships with the package.
        backend: What runs the graph: "onnx", or "openvino" for bundles that were exported with its files.
        threads: Sentences to encode at once; None takes every CPU this process may use.

    Raises:
        BundleError: The bundle is missing, damaged or of an unknown version.
        BackendError: There is no such backend.
        MissingExtraError: The backend's package is not installed.
        ValueError: `threads` is less than 1.
    """

    def __init__(self, path: str | Path | None = None, *, backend: str = "onnx", threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads = {threads} must be at least 1")
        self.threads = threads or available_cpus()
        self.bundle = Bundle.open(builtin_path() if path is None else path)
        self._tokenizer = Tokenizer(self.bundle.tokenizer_path)
        if self._tokenizer.vocab_size != self.bundle.vocab_size:
            raise BundleError(
                f"{self.bundle.path}: the tokenizer has {self._tokenizer.vocab_size:,} pieces, the table "
                f"{self.bundle.vocab_size:,} rows; export the bundle again"
            )
        self._backend = open_backend(backend, self.bundle)

    def __repr__(self) -> str:
        return f"SentenceEncoder({str(self.bundle.path)!r}, name={self.bundle.name!r}, dim={self.dim})"

    @property
    def dim(self) -> int:
        """Length of a sentence vector (D)."""
        return self.bundle.dim

    @property
    def max_length(self) -> int:
        """Longest sentence in tokens; `on_long` says what happens beyond it."""
        return self.bundle.max_length

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages it was trained for."""
        return self.bundle.languages

    @property
    def fingerprint(self) -> str:
        """Identity of the vector space: vectors of different fingerprints cannot be compared."""
        return self.bundle.fingerprint

    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: Precision = "float32",
        on_long: OnLong = "warn",
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Encode sentences.

        Args:
            sentences: One sentence, or any number of them. An empty sentence gets the zero vector.
            normalize_embeddings: Give vectors length 1, so that their inner product is their cosine.
            truncate_dim: Keep only the first so many numbers of each vector.
            precision: Type of the numbers: "float32" or "float16".
            on_long: For a sentence over `max_length` tokens: "warn" cuts it and warns once with the count,
                "error" raises, "split" encodes it in windows and takes their mean weighted by length.
            show_progress_bar: Report progress on standard error.

        Returns:
            [D] for one sentence, else [n, D]; [0, D] for none.

        Raises:
            TypeError: A sentence is not a str.
            ValueError: An argument is not offered, or a sentence is too long and `on_long` is "error".
        """
        options = EncodeOptions.check(self.dim, normalize_embeddings, truncate_dim, precision, on_long)
        texts = [sentences] if isinstance(sentences, str) else list(sentences)
        vectors = np.empty((len(texts), options.dim), options.dtype)
        done = too_long = 0
        with Progress("sentences", len(texts), enabled=show_progress_bar) as progress:
            for rows, long in self._stream(texts, options, min(self.threads, -(-len(texts) // _CHUNK) or 1)):
                vectors[done : done + len(rows)] = rows
                done += len(rows)
                too_long += long
                progress.advance(len(rows))
        self._warn_of(too_long, done)
        return vectors[0] if isinstance(sentences, str) else vectors

    def encode_iter(
        self,
        sentences: Iterable[str],
        *,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: Precision = "float32",
        on_long: OnLong = "warn",
    ) -> Iterator[Vectors]:
        """Encode a stream in constant memory.

        Args:
            sentences: Any number of sentences; read a few dozen ahead of the vectors.
            normalize_embeddings: See `encode`, like the rest.
            truncate_dim: Keep only the first so many numbers of each vector.
            precision: Type of the numbers: "float32" or "float16".
            on_long: What to do with a sentence over `max_length` tokens.

        Returns:
            The vectors [D], in the order of the sentences.

        Raises:
            TypeError: A sentence is not a str, or `sentences` is one.
            ValueError: An argument is not offered, or a sentence is too long and `on_long` is "error".
        """
        options = EncodeOptions.check(self.dim, normalize_embeddings, truncate_dim, precision, on_long)
        if isinstance(sentences, str):
            raise TypeError("encode_iter takes sentences, not one str; use encode for one sentence")
        return self._iterate(sentences, options)

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float32]:
        """Cosine of every vector of `a` with every vector of `b`, see `xsent.cosine_similarity`."""
        return cosine_similarity(a, b)

    def _iterate(self, sentences: Iterable[str], options: EncodeOptions) -> Iterator[Vectors]:
        done = too_long = 0
        for rows, long in self._stream(sentences, options, self.threads):
            done += len(rows)
            too_long += long
            yield from rows
        self._warn_of(too_long, done)

    def _stream(self, sentences: Iterable[str], options: EncodeOptions, threads: int) -> Iterator[tuple[Vectors, int]]:
        """Vectors [chunk, D] with the number of long sentences among them, in order."""
        return ordered_map(partial(self._encode_chunk, options), _chunks(sentences), threads)

    def _encode_chunk(self, options: EncodeOptions, chunk: _Chunk) -> tuple[Vectors, int]:
        first, sentences = chunk
        rows = np.empty((len(sentences), options.dim), options.dtype)
        too_long = 0
        for row, text in enumerate(sentences):
            try:
                ids = self._token_ids(text, options)
            except (TypeError, ValueError) as error:
                raise type(error)(f"sentence {first + row + 1} (counted from 1): {error}") from error
            too_long += options.on_long == "warn" and len(ids) > self.max_length
            rows[row] = options.finish(self._embed(ids, split=options.on_long == "split"))
        return rows, too_long

    def _token_ids(self, text: str, options: EncodeOptions) -> NDArray[np.int64]:
        """Piece ids of a whole sentence [T]."""
        ids = np.array(self._tokenizer.encode(text), dtype=np.int64)
        if options.on_long == "error" and len(ids) > self.max_length:
            raise ValueError(
                f"{len(ids):,} tokens, at most {self.max_length} fit; shorten it, or use on_long='split' or 'warn'"
            )
        return ids

    def _embed(self, ids: NDArray[np.int64], *, split: bool) -> NDArray[np.float32]:
        """Raw vector [D] of the first `max_length` ids, or of all in windows of that size."""
        if not len(ids):  # the mean of nothing
            return np.zeros(self.dim, np.float32)
        if len(ids) <= self.max_length or not split:
            return self._backend.embed(ids[: self.max_length])
        total = np.zeros(self.dim)
        for start in range(0, len(ids), self.max_length):
            window = ids[start : start + self.max_length]
            total += len(window) * self._backend.embed(window).astype(np.float64)
        return (total / len(ids)).astype(np.float32)

    def _warn_of(self, too_long: int, total: int) -> None:
        if too_long:
            message = (
                f"{too_long:,} of {total:,} sentences had more than {self.max_length} tokens and were cut; "
                "on_long='split' encodes all of them"
            )
            warnings.warn(message, LongSentenceWarning, stacklevel=3)


def _chunks(sentences: Iterable[str]) -> Iterator[_Chunk]:
    source = iter(sentences)
    first = 0
    while chunk := list(islice(source, _CHUNK)):
        yield first, chunk
        first += len(chunk)
