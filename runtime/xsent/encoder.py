"""The sentence encoder: sentences to vectors."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from pathlib import Path
from typing import cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.backends.base import default_backend, open_backend
from xsent.backends.threads import available_cpus, ordered_map
from xsent.bundle import Bundle, builtin_path
from xsent.encode_options import EncodeOptions, OnLong
from xsent.errors import BundleError, FingerprintError, check_choice, warn, whole_number
from xsent.known_words import KnownWords
from xsent.precision import Precision, Vectors, binary_similarity, stored_as
from xsent.progress import Progress
from xsent.similarity import cosine_similarity, row_cosines
from xsent.tasks import FEWEST, Item, Task, each_sentence, each_text, tasks
from xsent.tokenizer import MEASURED, Tokenizer, expected_tokens, seems_foreign


class LongSentenceWarning(UserWarning):
    """Sentences were longer than `max_length` and were truncated; one warning per call gives their number."""


class UnknownTextWarning(UserWarning):
    """Sentences were mostly in characters or words that the encoder does not know; one warning of each per call."""


# Warn when more than this share of sentences looks foreign; in text in the model's languages hardly any does.
_FOREIGN = 0.1
_FEW = 4  # sentences; among more, one that looks foreign is a list of names
TOKENS_TOGETHER = 256  # most tokens that run together; with more, their states no longer stay in the processor's cache
# Most tokens per window of a text that is too long. Layers are trained on short text, and vectors of longer windows
# are worse (docs/contributing/findings.md).
WINDOW = 128


class SentenceEncoder:
    """Encodes sentences of any of its languages into one vector space.

    Safe to share between threads.

    Args:
        path: A bundle folder; None opens the bundle that ships with the package.
        layers: Number of layers to run, one of `bundle.depths`; fewer are faster, None runs all of them.
            Vectors of different depths can be compared.
        backend: "onnx", "numpy", or "openvino" for bundles that were exported with its files; None means onnx, or
            numpy if onnxruntime is not installed.
        threads: Sentences to encode at once; None means one per CPU that this process may use, or one in total for a
            model without layers, whose sentences finish before a second thread gets the interpreter.
        clean: Strip e-mail, chat, log and OCR noise before encoding, see `xsent.clean.clean_text`.

    Raises:
        BundleError: The bundle is missing, damaged, of an unknown version or without that depth.
        BackendError: The backend does not exist or does not support that depth.
        MissingExtraError: The backend's package is not installed.
        ValueError: `threads` is less than 1.

    Example:
        >>> encoder = SentenceEncoder(layers=2)
        >>> encoder.encode(["Where is the station?", "Où est la gare ?"]).shape
        (2, 384)
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        layers: int | None = None,
        backend: str | None = None,
        threads: int | None = None,
        clean: bool = False,
    ) -> None:
        threads = None if threads is None else whole_number("threads", threads)
        self.clean = clean
        self.bundle = Bundle.open(builtin_path() if path is None else path, layers)
        self._tokenizer = Tokenizer(self.bundle.tokenizer_path, clean=clean)
        if self._tokenizer.vocab_size != self.bundle.vocab_size:
            raise BundleError(
                f"{self.bundle.path}: the tokenizer has {self._tokenizer.vocab_size:,} pieces, the table "
                f"{self.bundle.vocab_size:,} rows; export the bundle again"
            )
        self._backend = open_backend(backend or default_backend(), self.bundle)
        self._matrix = cache(self.bundle.floats)  # into another space, loaded at first use
        self._opened_as = (None if path is None else self.bundle.path.absolute(), layers, backend, threads, clean)
        self.threads = threads or (available_cpus() if self.layers else 1)

    def __repr__(self) -> str:
        return f"SentenceEncoder({str(self.bundle.path)!r}, name={self.bundle.name!r}, dim={self.dim})"

    def __reduce__(self) -> tuple[object, ...]:
        # For process pools, joblib and Spark: pickles the path, not the weights.
        return _open_again, (*self._opened_as, self.fingerprint)

    @property
    def layers(self) -> int:
        """Number of layers that it runs."""
        return self.bundle.layers

    @property
    def dim(self) -> int:
        """Length of a sentence vector (D)."""
        return self.bundle.dim

    @property
    def max_length(self) -> int:
        """Longest sentence in tokens; `on_long` sets what happens to longer ones."""
        return self.bundle.max_length

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages it was trained for."""
        return self.bundle.languages

    @property
    def fingerprint(self) -> str:
        """Identity of its vectors; `xsent.fingerprint.same_space` returns whether two can be compared."""
        return self.bundle.fingerprint_of()

    def fingerprint_of(self, space: str | None = None) -> str:
        """Identity of its vectors mapped into another model's space, see `encode`."""
        return self.bundle.fingerprint_of(space)

    def dim_of(self, space: str | None) -> int:
        """Length of its vectors mapped into another model's space, see `encode`."""
        return self.bundle.dim_of(space)

    @property
    def space(self) -> str | None:
        """Another model whose vectors can be compared with these, such as "sentence-transformers/all-MiniLM-L6-v2".

        None for a space of its own; `bundle.spaces` lists the spaces that `encode` can map its vectors into.
        `xsent.evaluation.translation.space` measures how well the two models agree.
        """
        return self.bundle.space

    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: Precision = "float32",
        on_long: OnLong = "warn",
        space: str | None = None,
        show_progress_bar: bool | None = False,
        batch_size: int | None = None,
        device: object = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> Vectors:
        """Encode sentences.

        Args:
            sentences: One sentence, or any number of them, such as a list or a column of pandas or Arrow. An empty
                sentence gets the zero vector.
            normalize_embeddings: Scale vectors to length 1, so that their inner product is their cosine.
            truncate_dim: Keep only the first `truncate_dim` numbers of each vector.
            precision: Form of the numbers: "float32", "float16", "int8" (rounded to steps of a fixed size, see
                `xsent.precision.to_int8`) or "binary" (one bit per number, eight per byte, see
                `xsent.precision.pack_signs`; D must be a multiple of 8). The last two do not keep lengths.
            on_long: For a sentence over `max_length` tokens: "warn" truncates it and warns once with the count,
                "error" raises, "split" encodes it in windows of at most 128 tokens and averages them.
            space: Map vectors into another model's space, one of `bundle.spaces`, such as "all-MiniLM-L6-v2", to
                compare them with its own. Vectors that are already in it, see the property `space`, do not change.
                Cannot be combined with `truncate_dim`: in that space the first numbers mean nothing by themselves.
            show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.
            batch_size: Accepted for compatibility with sentence-transformers; ignored: sentences with equally many
                tokens run together, which does not change their vectors.
            device: Accepted for compatibility; ignored, it runs on the CPU.
            convert_to_numpy: False raises ValueError: vectors are always arrays.
            convert_to_tensor: True raises ValueError: `torch.from_numpy` turns an array into a tensor without copying.
            prompt: Raises ValueError: the model was trained without prompts.
            prompt_name: Raises ValueError too.

        Returns:
            [D] for one sentence, otherwise [n, D]; [0, D] for none. Binary vectors have D / 8 bytes.

        Raises:
            TypeError: A sentence is not a str.
            ValueError: An argument is invalid, or a sentence is too long and `on_long` is "error".

        Example:
            >>> encoder.encode("Il neige.", truncate_dim=128, precision="int8").shape
            (128,)
        """
        if convert_to_tensor or not convert_to_numpy:
            raise ValueError("vectors are NumPy arrays; torch.from_numpy turns them into a tensor without copying")
        if asked := prompt or prompt_name:
            raise ValueError(f"prompt = {asked!r}: the model was trained without prompts; omit it")
        options = self._options(normalize_embeddings, truncate_dim, precision, on_long, space)
        if isinstance(sentences, str | bytes):  # bytes are one sentence, too, so that they are rejected
            _, rows, seen = self._encode_task(options, (0, [sentences], [sentences]))
            self._warn(seen)
            return cast(Vectors, rows[0])
        texts = list(each_sentence(sentences))
        vectors = options.empty(len(texts))
        with Progress("sentences", len(texts), enabled=show_progress_bar) as progress:
            done, threads = 0, min(self.threads, -(-len(texts) // FEWEST) or 1)
            for _, rows in self._iterate(tasks(texts, threads=threads, total=len(texts)), options, threads):
                vectors[done : done + len(rows)] = rows
                done += len(rows)
                progress.advance(len(rows))
        return vectors

    encode_query = encode  #: same as `encode`: the model treats questions and passages alike
    encode_document = encode  #: same as `encode`

    def encode_iter(
        self,
        sentences: Iterable[str],
        *,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: Precision = "float32",
        on_long: OnLong = "warn",
        space: str | None = None,
    ) -> Iterator[Vectors]:
        """Encode a stream in constant memory, see `encode`; yields a vector [D] per sentence.

        It reads ahead: a few dozen sentences at first, later up to a thousand per thread, fewer from a slow source. A
        vector may come only after later sentences were read; to answer each at once, call `encode` with it.
        Raises what `encode` raises.
        """
        options = self._options(normalize_embeddings, truncate_dim, precision, on_long, space)
        todo = tasks(each_text(sentences), threads=self.threads)
        return (vector for _, vectors in self._iterate(todo, options, self.threads) for vector in vectors)

    def encode_items(
        self,
        items: Iterable[Item],
        text: Callable[[Item], str] | None = None,
        *,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: Precision = "float32",
        on_long: OnLong = "warn",
        space: str | None = None,
        start: int = 0,
    ) -> Iterator[tuple[Item, Vectors]]:
        """Yield every item with the vector [D] of its sentence, `text(item)` or the item itself; see `encode_iter`.

        `start` is the number of sentences encoded earlier; errors count them, too.

        Iterate to the end: warnings about long and unknown sentences come only then. Raises what `encode` raises.

        Example:
            >>> [(row, vector.shape) for row, vector in encoder.encode_items([(7, "Hello.")], lambda row: row[1])]
            [((7, 'Hello.'), (384,))]
        """
        options = self._options(normalize_embeddings, truncate_dim, precision, on_long, space)
        if text is None:
            items = cast(Iterable[Item], each_text(items))
        todo = tasks(items, text, whole_number("start", start, 0), threads=self.threads)
        return (pair for done in self._iterate(todo, options, self.threads) for pair in zip(*done, strict=True))

    def count_tokens(self, sentence: str) -> int:
        """Number of tokens of a sentence; up to `max_length` are read at once. 0 for an empty sentence."""
        return len(self._tokenizer.encode(sentence))

    @cached_property
    def words(self) -> KnownWords:
        """What it knows about words, by which a search by words works in all of its languages."""
        return KnownWords(self.bundle, self._tokenizer)

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float32]:
        """Cosines [n, m] between the vectors of `a` and `b`, of any precision; for binary vectors, of their signs."""
        left = np.asarray(a)
        right = np.asarray(b)
        binary = np.uint8 in (left.dtype, right.dtype)
        return binary_similarity(left, right) if binary else cosine_similarity(left, right)

    def similarity_pairwise(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float32]:
        """Cosines [n] between each vector of `a` [n, D] and the vector of `b` in the same row; not for binary ones."""
        return row_cosines(a, b)

    def get_sentence_embedding_dimension(self) -> int:
        """Length of a sentence vector (D), as in sentence-transformers."""
        return self.dim

    @property
    def max_seq_length(self) -> int:
        """The same as `max_length`, as in sentence-transformers, but read-only."""
        return self.max_length

    def _options(
        self, normalize: bool, truncate_dim: int | None, precision: Precision, on_long: OnLong, space: str | None
    ) -> EncodeOptions:
        """Check the arguments of `encode`; raises ValueError if one is invalid."""
        weight = self.bundle.matrix_into(space)
        if space is not None and truncate_dim is not None:
            raise ValueError(f"truncate_dim = {truncate_dim} cannot be combined with space; omit one of them")
        whole = self.bundle.dim_of(space)
        dim = whole if truncate_dim is None else whole_number("truncate_dim", truncate_dim, most=whole)
        stored_as(precision, dim)
        if precision in ("int8", "binary") and not normalize:
            raise ValueError(f"precision = {precision!r} does not keep lengths; it needs normalised vectors")
        check_choice("on_long", on_long, get_args(OnLong))
        return EncodeOptions(dim, normalize, precision, on_long, None if weight is None else self._matrix(weight))

    def _iterate(
        self, todo: Iterable[Task[Item]], options: EncodeOptions, threads: int
    ) -> Iterator[tuple[list[Item], Vectors]]:
        """Yield the items of every task and their vectors, in order; at the end, warn the code that iterates."""
        total = Counter[str]()
        for items, rows, seen in ordered_map(partial(self._encode_task, options), todo, threads):
            total.update(seen)
            yield items, rows
        self._warn(total)

    def _warn(self, seen: Counter[str]) -> None:
        """Warn once about each kind of sentence whose vectors are less meaningful than they should be."""
        every = f"of {seen['sentences']:,} sentences"
        advice = f"had more than {self.max_length} tokens and were cut; on_long='split' encodes all of them"
        trained = f"it was trained for {', '.join(self.languages)}"
        strange = f"this model does not know, so their vectors mean little; {trained}"
        if seen["cut"]:
            warn(f"{seen['cut']:,} {every} {advice}", LongSentenceWarning)
        if seen["unknown"]:
            warn(f"{seen['unknown']:,} {every} are mostly of characters that {strange}", UnknownTextWarning)
        if seen["foreign"] > max(_FOREIGN * seen["sentences"], seen["sentences"] > _FEW):
            warn(f"{seen['foreign']:,} {every} seem to be in a language that {strange}", UnknownTextWarning)

    def _encode_task(self, options: EncodeOptions, task: Task[Item]) -> tuple[list[Item], Vectors, Counter[str]]:
        first, items, sentences = task
        read, seen = self._read(options, first, sentences)
        rows = options.empty(len(sentences))
        for row, vector in enumerate(self._embed(read, split=options.on_long == "split")):
            rows[row] = options.finish(vector)
        return items, rows, seen

    def _read(
        self, options: EncodeOptions, first: int, sentences: list[str]
    ) -> tuple[list[NDArray[np.int64]], Counter[str]]:
        """The ids of sentences, and how many of them there are of each kind that warnings count."""
        every, seen = [], Counter[str]()
        for row, text in enumerate(sentences):
            try:
                read, pieces = self._tokenizer.read(text)
                ids = np.array(pieces, dtype=np.int64)
                if options.on_long == "error" and len(ids) > self.max_length:
                    advice = "shorten it, use on_long='split', or on_long='warn'"
                    raise ValueError(f"{len(ids):,} tokens, at most {self.max_length} fit; {advice}")
            except (TypeError, ValueError) as error:
                raise type(error)(f"sentence {first + row + 1} (counted from 1): {error}") from error
            seen["sentences"] += bool(len(ids))
            unknown = self._tokenizer.mostly_unknown(ids)
            seen["unknown"] += unknown
            seen["foreign"] += not unknown and seems_foreign(read, len(ids)) and self._measured
            seen["cut"] += options.on_long == "warn" and len(ids) > self.max_length
            every.append(ids)
        return every, seen

    @cached_property
    def _measured(self) -> bool:
        """Whether token counts can detect languages that this model does not know."""
        texts = self.bundle.golden.sentences
        tokens = sum(map(self.count_tokens, texts))
        return set(self.languages) <= MEASURED and 0 < tokens < 1.2 * sum(map(expected_tokens, texts))

    def _embed(self, sentences: list[NDArray[np.int64]], *, split: bool) -> Iterator[NDArray[np.float32]]:
        """Raw vectors [D] of the first `max_length` ids of each sentence, or the means over windows of equal size."""
        windows = [self._windows(ids, split=split) for ids in sentences]
        vectors = iter(self._embed_windows([window for parts in windows for window in parts]))
        for ids, parts in zip(sentences, windows, strict=True):
            if len(parts) == 1:
                yield next(vectors)
                continue
            total = np.zeros(self.dim)
            for window in parts:
                total += len(window) * next(vectors).astype(np.float64)
            yield (total / max(len(ids), 1)).astype(np.float32)

    def _windows(self, ids: NDArray[np.int64], *, split: bool) -> list[NDArray[np.int64]]:
        """The parts of a sentence that are encoded: none, one or, of a long one, several."""
        if len(ids) <= self.max_length or not split:
            return [ids[: self.max_length]] if len(ids) else []
        return np.array_split(ids, -(-len(ids) // min(self.max_length, WINDOW)))

    def _embed_windows(self, windows: list[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Raw vectors [n, D]; windows with equally many ids run together, without padding."""
        if len(windows) == 1:
            return self._backend.embed(windows[0][None])
        groups: dict[int, list[int]] = {}
        for place, window in enumerate(windows):
            groups.setdefault(len(window), []).append(place)
        vectors = np.empty((len(windows), self.dim), np.float32)
        for length, places in groups.items():
            count = max(TOKENS_TOGETHER // length, 1)
            for start in range(0, len(places), count):
                together = places[start : start + count]
                vectors[together] = self._backend.embed(np.array([windows[place] for place in together]))
        return vectors


def _open_again(
    path: Path | None, layers: int | None, backend: str | None, threads: int | None, clean: bool, fingerprint: str
) -> SentenceEncoder:
    encoder = SentenceEncoder(path, layers=layers, backend=backend, threads=threads, clean=clean)
    if encoder.fingerprint != fingerprint:
        raise FingerprintError(
            f"{encoder.bundle.path} has fingerprint {encoder.fingerprint}, the pickled encoder had {fingerprint}; "
            "put the same bundle there"
        )
    return encoder
