"""From files of pairs to the data of a training: vocabulary, validation pairs, store; text for a new language."""

import hashlib
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from xsent.errors import DataError
from xsent.files.atomic import as_data_error, atomic_file, remove_folder, sweep
from xsent_train.checkpoint import read_about
from xsent_train.data.corpus import ALONE, ENGLISH, FEWEST, Corpus, L, Line, Pair, tally, write_pairs
from xsent_train.data.sampling import Cell, cell_shares
from xsent_train.data.store import ABOUT, Store
from xsent_train.data.vocabulary import sample_text, train_vocabulary
from xsent_train.recipe import CorpusConfig, Recipe

logger = logging.getLogger(__name__)

T = TypeVar("T")

TEXT = 50_000  # sentences that the vocabulary grows from
KEPT = 200_000  # sentences of the old languages whose pieces must not change
HELD_OUT = 1000  # pairs per old language
READING = 2  # version of how lines become text; data that were prepared by another are prepared again
EDGE = 1 << 20  # bytes at either end of a file that distinguish it from others of the same size


@dataclass(frozen=True)
class TrainingPairs:
    """The pairs of a corpus that are not held out; the split is a hash of the English side."""

    corpus: Corpus
    held_out_share: float

    def held_out(self, pair: Line) -> bool:
        """Whether a pair belongs to validation, as all translations of its English sentence then do."""
        # The low bits, because `sample_text` decides by the high ones.
        return (pair.digest & 0xFFFFFFFF) / 2**32 < self.held_out_share

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pair in self.corpus if not self.held_out(pair))


@dataclass(frozen=True)
class Prepared:
    """The data of a training: the pairs as text, and what preparation leaves in a folder."""

    pairs: TrainingPairs
    tokenizer: Path  # a SentencePiece model
    validation: Path  # held-out pairs, in the layout of a corpus
    store: Store  # tokenised training pairs


class Sample(Generic[T]):
    """Keeps the `limit` items with the smallest rank. Ranks are hashes, so every run keeps the same items."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[tuple[int, ...], T] = {}

    def add(self, rank: tuple[int, ...], item: T) -> None:
        """Add an item, or replace the one with the same rank."""
        self._items[rank] = item
        if len(self._items) >= 2 * self._limit:
            self._trim()

    def items(self) -> list[T]:
        """The sampled items, by rank."""
        self._trim()
        return list(self._items.values())

    def _trim(self) -> None:
        self._items = dict(sorted(self._items.items(), key=itemgetter(0))[: self._limit])


class CorpusSurvey:
    """One pass over a corpus: how many pairs each cell has, and a bounded sample of the held-out ones."""

    def __init__(self, pairs: TrainingPairs, limit: int) -> None:
        self.counts = Counter[Cell]()
        self.english_alone = 0  # lines
        self._limit = limit
        self._held_out = defaultdict[Cell, Sample[Pair]](partial(Sample, limit))
        for number, pair in enumerate(pairs.corpus):
            self.english_alone += pair.alone and pair.language == ENGLISH
            if pairs.held_out(pair):
                self._held_out[pair.cell].add((pair.digest, number), pair)
            else:
                self.counts[pair.cell] += 1

    def shares(self, corpus: CorpusConfig) -> dict[Cell, float]:
        """The share of each cell in training. Raises DataError if the recipe weighs a source that no pair has."""
        if count := self.english_alone:
            logger.info("%s lines have two fields, or en and no translation: read as plain English", f"{count:,}")
        sources = {source for source, _ in self.counts}
        if unknown := sorted(set(corpus.weights) - sources):
            known = ", ".join(sorted(sources))
            raise DataError(f"weights name sources that no pair has: {', '.join(unknown)}; there are {known}")
        return cell_shares(self.counts, temperature=corpus.temperature, weights=corpus.weights)

    def validation(self, languages: Sequence[str], shares: dict[Cell, float]) -> Iterator[Pair]:
        """Up to `limit` held-out pairs per language, sources as in training. Raises DataError if there are too few."""
        sizes: list[str] = []
        for language in languages:
            cells = [cell for cell in sorted(self._held_out.keys() & shares.keys()) if cell[1] == language]
            total = sum(share for cell, share in shares.items() if cell[1] == language)
            counts = [round(self._limit * shares[cell] / total) for cell in cells]
            found = [pair for cell, n in zip(cells, counts, strict=True) for pair in self._held_out[cell].items()[:n]]
            if len(found) < 2:
                raise DataError(self._too_few(language, len(found)))
            sizes.append(f"{language} {len(found):,}")
            yield from found
        logger.info("held out: %s", ", ".join(sizes))

    def _too_few(self, language: str, held_out: int) -> str:
        """Why a language has not enough pairs to measure on, and what to do."""
        lines = Counter[str]()
        for (_, code), count in self.counts.items():
            lines[code] += count
        if count := held_out + lines[language]:
            if (sources := sum(code == language for _, code in self.counts)) > max(count // 2, FEWEST):
                return (
                    f"{sources:,} sources in {count:,} lines in {language!r}, too many to measure; the first column is "
                    "the same in all lines of one origin, such as own"
                )
            return (
                f"{held_out} held-out pairs of {count:,} in {language!r}, too few; add text or raise validation_share"
            )
        if count := lines[language + ALONE]:
            return (
                f"the {count:,} lines in {language!r} have three columns, a sentence without translation; expected "
                "source, language, English, translation"
            )
        hint = "; lines of two columns are source and English, not a translation" if self.english_alone else ""
        return f"no pair in {language!r}; the text has {tally(lines) or 'no usable pair'}{hint}"


def prepare(
    recipe: Recipe,
    files: Sequence[Path],
    folder: Path,
    *,
    threads: int,
    vocabulary: Path | None = None,
    run: Path | None = None,
) -> Prepared:
    """Build vocabulary, validation pairs and store in a folder if they are missing or out of date.

    A given SentencePiece model is used unchanged; else one is trained. `run` is the training that will use the data:
    its checkpoints must be of the same data, and in a folder that it shares with other runs, nothing is replaced.
    Raises DataError if the run or the folder belongs to other data, or if a file is missing, or has no pair to train
    or to validate on.
    """
    key = preparation_key(recipe, files, vocabulary)
    if run is not None:
        refuse_other_data(run, key)
    pairs = TrainingPairs(Corpus(files, frozenset(recipe.languages)), recipe.corpus.validation_share)
    tokenizer, validation = folder / "sentencepiece.model", folder / "validation.tsv"

    def split() -> TrainingPairs:
        """Write the held-out pairs and the vocabulary; returns the pairs to train on."""
        if run not in (None, folder) and (folder / "store" / ABOUT).exists():
            other = "another corpus, vocabulary or languages, or by an earlier version"
            raise DataError(f"{folder} was prepared for {other}; name another folder")
        if (folder / "store").exists():  # first: an old store must not be found beside other held-out pairs
            remove_folder(folder / "store")
        folder.mkdir(parents=True, exist_ok=True)
        logger.info("reading %s", ", ".join(str(file) for file in files))
        survey = CorpusSurvey(pairs, recipe.corpus.validation_pairs)
        shares = survey.shares(recipe.corpus)
        write_pairs(validation, survey.validation(recipe.languages, shares))
        if vocabulary is not None:
            pieces = vocabulary.read_bytes()
        else:
            logger.info("training a vocabulary of %d pieces", recipe.vocabulary.size)
            text = sample_text(pairs, survey.counts, shares, recipe.vocabulary.sentences)
            pieces = train_vocabulary(text, size=recipe.vocabulary.size, threads=threads)
        with atomic_file(tokenizer) as file:
            file.write(pieces)
        logger.info("tokenising %d pairs", survey.counts.total())
        return pairs

    store = Store.open_or_build(
        folder / "store", key, split, tokenizer=tokenizer, max_length=recipe.max_length, threads=threads
    )
    return Prepared(pairs, tokenizer, validation, store)


def refuse_other_data(run: Path, key: str) -> None:
    """Clean up after killed runs. Raises DataError if the run has checkpoints from other data."""
    sweep(run)
    sweep(run / "checkpoints")
    for folder in sorted(run.glob("checkpoints/[!.]*")):
        if read_about(folder).get("preparation_key") != key:
            other = "another corpus or vocabulary, or by an earlier version"
            raise DataError(f"{folder} was trained on {other}; name another folder for the run")


def prepare_other(
    text: Iterable[L], files: Sequence[Path], recipe: Recipe, folder: Path, *, tokenizer: Path, threads: int
) -> Store:
    """The store for text other than pairs, from these files, built if it is missing or out of date.

    Raises DataError if a file is missing or has no line of that kind.
    """
    key = files_key(
        [READING, recipe.languages, recipe.max_length, hashlib.sha256(tokenizer.read_bytes()).hexdigest()], files
    )

    def read() -> Iterable[L]:
        logger.info("reading %s", ", ".join(str(file) for file in files))
        return text

    return Store.open_or_build(folder, key, read, tokenizer=tokenizer, max_length=recipe.max_length, threads=threads)


def preparation_key(recipe: Recipe, files: Sequence[Path], vocabulary: Path | None = None) -> str:
    """Identity of everything that preparation depends on: files, languages, split, sampling, vocabulary."""
    pieces: object = recipe.vocabulary.model_dump()
    if vocabulary is not None:
        pieces = hashlib.sha256(vocabulary.read_bytes()).hexdigest()
    corpus = recipe.corpus.model_dump(exclude={"most"})  # it only changes which pairs are drawn
    return files_key([READING, recipe.languages, corpus, pieces, recipe.max_length], files)


def files_key(parts: Sequence[object], files: Sequence[Path]) -> str:
    """Identity of files, by their sizes and both ends, and of other parts."""
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for path in files:
        with as_data_error(path, "name the data folder with --data"), open(path, "rb") as file:
            size = path.stat().st_size
            digest.update(f"{size}".encode() + file.read(EDGE))
            file.seek(max(size - EDGE, 0))
            digest.update(file.read())
    return digest.hexdigest()[:16]


class NewLanguage(NamedTuple):
    """The text of a file for an encoder that learns a language, as bounded samples."""

    found: int  # pairs and plain sentences of the new language
    plain: int  # those of them without translation
    text: list[str]  # sentences of the new language to train on
    kept: list[Pair]  # single sentences of the old languages, including English
    held_out: list[Pair]  # pairs of the old languages, without an English sentence that is trained on


def read_new_language(path: Path, language: str, known: Sequence[str], held_out_share: float) -> NewLanguage:
    """Read a file of text in a new language and in old ones, in one pass; other languages are skipped.

    Raises DataError if it has no text in the new language, or cannot be read.
    """
    pairs, counts, plain = TrainingPairs(Corpus([path]), held_out_share), Counter[str](), 0
    samples = {code: Sample[Pair](KEPT // len(known)) for code in known} | {language: Sample[Pair](TEXT)}
    held_out = {code: Sample[Pair](HELD_OUT) for code in known}
    for pair in pairs.corpus:
        digest, code = pair.digest, pair.language
        counts[code] += 1
        plain += pair.alone and code == language
        if code in samples and not pairs.held_out(pair):
            first = pair if pair.alone else Pair(pair.source, ENGLISH, pair.english, "")
            samples[first.language].add((digest,), first)
            if not pair.alone:
                samples[code].add((digest,), Pair(pair.source, code, pair.translation, ""))
        elif code in held_out and not pair.alone:
            # By the bits that decide what is held out, because every training holds out the lowest, whatever its share.
            held_out[code].add((digest & 0xFFFFFFFF,), pair)
    if not counts[language]:
        there = ", ".join(f"{code} {count:,}" for code, count in counts.most_common(20))
        raise DataError(f"{path}: no text in {language!r}; it has {there}")
    text = [sentence.english for sentence in samples.pop(language).items()]
    kept = [sentence for sample in samples.values() for sentence in sample.items()]
    apart = [pair for sample in held_out.values() for pair in sample.items()]
    return NewLanguage(counts[language], plain, text, kept, apart)
