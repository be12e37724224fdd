"""The data of a training: the pairs of each batch of a stage, and their teacher's vectors."""

import logging
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from lightning_fabric.utilities import move_data_to_device
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from xsent.files.atomic import atomic_file
from xsent.progress import Progress
from xsent_train.data.augmentation import Spellings, Swaps
from xsent_train.data.corpus import Pair, Passages, ScoredPairs, without_translation
from xsent_train.data.masking import MaskedPairs, hide
from xsent_train.data.passages import Asked, PassageBatches, queries
from xsent_train.data.preparation import prepare, prepare_other
from xsent_train.data.sampling import cell_shares, evenly, reweigh, shuffled, window_rows
from xsent_train.data.scored import ScoredBatch, ScoredBatches, sentences
from xsent_train.data.store import Store, chosen_pairs, kept_pairs
from xsent_train.data.versions import Rows, Versions
from xsent_train.data.vocabulary import maskable_pieces
from xsent_train.devices import first_rank_first
from xsent_train.model import Encoder
from xsent_train.recipe import PassagesConfig, Recipe, StageConfig
from xsent_train.teacher.cache import TeacherVectors, teacher_vectors
from xsent_train.teacher.open import TargetSource
from xsent_train.tokens import open_tokenizer

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHUNK = 16_384  # pairs encoded at a time
SAMPLE_PER_CLUSTER = 64  # pairs that the centroids are fitted on
ITERATIONS = 8
DIM = 128  # numbers of a vector that are compared, the first


class Batch(NamedTuple):
    """The pairs of one step, and other text."""

    hiding: MaskedPairs  # English and translation, whole and with hidden pieces
    group: Tensor  # identity of each English sentence, over the devices of all ranks [B]
    teacher: Tensor | None = None  # the teacher's vectors of this rank's pairs, without the copies [b - s, Dt]
    queue: Tensor | None = None  # the teacher's vectors of earlier batches, the latest last [Q, Dt]
    copied: Tensor | None = None  # the last s pairs are copies of these, with words swapped [s]
    scored: ScoredBatch | None = None
    asked: Asked | None = None

    def to(self, device: torch.device) -> "Batch":
        """The batch on another device."""
        return Batch(*move_data_to_device(tuple(self), device))


@dataclass
class Batches:
    """All batches of a stage; batch number i is a pure function of recipe, store and i."""

    store: Store
    shares: NDArray[np.float64]  # of the store's cells
    stage: StageConfig
    _: KW_ONLY
    seed: int
    maskable: Tensor  # which pieces may be hidden [V]
    max_length: int  # maximum tokens of a joined pair
    clusters: NDArray[np.uint16] | None = None  # a number for each pair, for `order = "cluster"`
    teacher: TeacherVectors | None = None
    swaps: Swaps | None = None
    spellings: Spellings | None = None
    scored: ScoredBatches | None = None
    asked: PassageBatches | None = None
    rank: tuple[int, int] = (0, 1)  # this process, which reads its part of every batch, and their number
    readers: int = 0  # processes that read batches; 0: a thread of this one
    _cuts: dict[int, Rows] = field(default_factory=dict, init=False)  # the batches of the latest windows

    def since(self, step: int) -> Iterator[Batch]:
        """The batches from `step` to the end of the stage."""
        steps = range(step, self.stage.steps)
        if not self.readers:
            return ahead(self[now] for now in steps)
        return iter(
            DataLoader(
                self,  # type: ignore[arg-type]  # anything with __getitem__ will do
                sampler=steps,
                batch_size=None,
                num_workers=self.readers,
                collate_fn=lambda batch: batch,  # a step's pairs are already a batch
                worker_init_fn=ignore_interruption,
                multiprocessing_context="fork",
            )
        )

    def drawn(self) -> Rows:
        """All pairs that the stage will draw, each once, in order."""
        drawn = np.zeros(len(self.store), np.bool_)
        for window in range((self.stage.steps - 1) // self.stage.window + 1):
            drawn[self._window(window)] = True
        return drawn.nonzero()[0]

    def _window(self, window: int) -> Rows:
        """The pairs of a window, in random order."""
        starts, size = self.store.cell_starts, self.stage.batch_size * self.stage.window
        return self.store.pairs(window_rows(starts, self.shares, size, seed=self.seed, window=window))

    def _pairs(self, step: int) -> Rows:
        """The pairs of a step, over all ranks."""
        window = step // self.stage.window
        if window not in self._cuts:
            self._cuts[window] = self._order(window)
        pairs: Rows = self._cuts[window][step % self.stage.window]
        return pairs

    def _order(self, window: int) -> Rows:
        pairs = self._window(window)
        if self.clusters is not None:
            pairs = pairs[np.argsort(self.clusters[pairs], kind="stable")]
        elif self.stage.order == "length":
            lengths = self.store.lengths(pairs, 0) + self.store.lengths(pairs, 1)
            pairs = pairs[np.argsort(lengths, kind="stable")]
        cut = pairs.reshape(self.stage.window, self.stage.batch_size)
        return shuffled(cut, seed=self.seed, window=window) if self.stage.shuffle else cut

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step."""
        stage = self.stage
        rank, world = self.rank
        pairs = self._pairs(step)
        here = np.split(pairs, world)[rank]
        sides = self.store.tokens(here, 0, stage.max_tokens), self.store.tokens(here, 1, stage.max_tokens)
        group = torch.from_numpy(self.store.group[pairs].astype(np.int64))
        self.store.release_pages()
        copied = None
        if self.swaps is not None:
            languages, limit = self.store.languages[here].astype(np.int64), round(stage.swapped * len(pairs))
            sides, copied = self.swaps.replace_last(sides, languages, limit)
            here = here[: len(here) - len(copied)]
            group[len(here) :] = ~group[copied]
        if self.spellings is not None:
            first, second = sides
            seed = [self.seed, step, rank]
            sides = self.spellings.respell(first, [*seed, 0]), self.spellings.respell(second, [*seed, 1])
        if self.swaps is not None or self.spellings is not None:  # a number or a typing error may add pieces
            sides = sides[0].cut(self.max_length), sides[1].cut(self.max_length)
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step * world + rank)
        hiding = hide(sides, stage.objectives, self.maskable, min(2 * stage.max_tokens, self.max_length), generator)
        for old in [window for window in self._cuts if (window + 1) * stage.window <= earliest_step(stage, step)]:
            del self._cuts[old]
        vectors = queue = None
        if self.teacher is not None:
            vectors = torch.from_numpy(self.teacher.rows(here))
            queue = self._queue(step, self.teacher)
        scored = self.scored[step] if self.scored is not None else None
        asked = self.asked[step] if self.asked is not None else None
        return Batch(hiding, group, vectors, queue, copied, scored, asked)

    def _queue(self, step: int, teacher: TeacherVectors) -> Tensor | None:
        """The content of a first-in-first-out queue before a step: a function of the step, so it is never saved."""
        if self.stage.objectives.contrastive_distil is None:
            return None
        earlier = map(self._pairs, range(earliest_step(self.stage, step), step))
        pairs = np.concatenate([np.zeros(0, np.int64), *earlier])
        return torch.from_numpy(teacher.rows(pairs[-self.stage.objectives.contrastive_distil.queue :]))


def earliest_step(stage: StageConfig, step: int) -> int:
    """The first step whose pairs are needed at a step: the step itself, or the start of its queue."""
    co = stage.objectives.contrastive_distil
    return max(0, step - -(-co.queue // stage.batch_size)) if co else step


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yields the items; each is prepared in a thread while the previous one is in use."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, iterator, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, iterator, None)
            yield item


def ignore_interruption(_: int) -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal: the training handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class TrainingData:
    """The data of a training."""

    def __init__(
        self,
        recipe: Recipe,
        files: Sequence[Path],
        run: Path,
        fabric: Fabric,
        *,
        threads: int,
        scored: Sequence[Path] = (),
        passages: Sequence[Path] = (),
        prepared: Path | None = None,
        vocabulary: Path | None = None,
    ) -> None:
        """Prepare the data from files of pairs for a training in the folder `run`.

        There may also be files of scored pairs, and of queries with passages.
        Vocabulary, held-out pairs and store are in `prepared`, which runs may share, or else in the run's own folder.
        `vocabulary`, a SentencePiece model, is used unchanged; None trains one. Raises DataError if the data cannot be
        used.
        """
        self._recipe = recipe
        self._fabric = fabric
        self._run = run
        # A GPU would have to wait for a single reader, and it leaves the other cores idle.
        self._readers = threads if fabric.device.type == "cuda" else 0
        self._folder = prepared or run
        self.teacher_folder = self._folder / "teachers"  # where their vectors are kept
        with first_rank_first(fabric):
            own = run if fabric.is_global_zero else None  # one process cleans it up
            self.prepared = prepare(recipe, files, self._folder, threads=threads, vocabulary=vocabulary, run=own)
        run.mkdir(parents=True, exist_ok=True)  # the prepared data may be elsewhere
        corpus = recipe.corpus
        self.store = store = self.prepared.store
        self._scored = ScoredPairs(scored, frozenset(recipe.languages))
        self._passages = Passages(passages, frozenset(recipe.languages))
        make = partial(prepare_other, recipe=recipe, tokenizer=self.prepared.tokenizer, threads=threads)
        with first_rank_first(fabric):
            self.scored = make(self._scored, scored, folder=self._folder / "scored") if scored else None
            self.passages = make(self._passages, passages, folder=self._folder / "passages") if passages else None
        self.processor = open_tokenizer(self.prepared.tokenizer)
        self.maskable = torch.from_numpy(maskable_pieces(self.processor))  # which pieces may be hidden [V]
        if corpus.most:
            store.limit(corpus.most)
        sizes = dict(zip(store.cells, np.diff(store.cell_starts).tolist(), strict=True))
        shares = cell_shares(sizes, temperature=corpus.temperature, weights=corpus.weights)
        self._shares = np.array([shares[cell] for cell in store.cells])

    @property
    def sources(self) -> list[str]:
        """The sources of all text, as its first column names them."""
        stores = filter(None, (self.store, self.scored, self.passages))
        return list(dict.fromkeys(source for store in stores for source, _ in store.cells))

    def batches(
        self,
        number: int,
        stage: StageConfig,
        encoder: Encoder,
        teacher: TargetSource | None,
        *,
        table: Tensor | None,
        passages: PassagesConfig | None,
        resumed: bool,
    ) -> Batches:
        """The batches of a stage: pairs, its other text, and its teacher's vectors of both, which are kept on disk.

        On request, pairs are ordered by the clusters that the stage's encoder finds at the start. `table` is the token
        table that the stage starts from; it shows which words translate each other.
        """
        draw, vectors = self.draw(number, stage), None
        if teacher is not None:
            vectors = self._vectors(teacher, self._kept(), draw.drawn(), "", self.store)
        with first_rank_first(self._fabric):
            clusters = self._clusters(number, stage, encoder, resumed=resumed)
        swaps = Swaps(table, self.processor, self.maskable.numpy()) if stage.swapped and table is not None else None
        spellings = Spellings(self.processor, stage.respelled, stage.max_tokens) if stage.respelled else None
        taught = teacher if stage.objectives.distil else None
        scored = self._scored_batches(number, stage, taught)
        asked = self._passage_batches(number, stage, taught, passages, table)
        return replace(
            draw, teacher=vectors, clusters=clusters, swaps=swaps, spellings=spellings, scored=scored, asked=asked
        )

    def _scored_batches(self, number: int, stage: StageConfig, teacher: TargetSource | None) -> ScoredBatches | None:
        """The scored pairs of a stage, if it uses any; with a teacher's vectors, kept on disk."""
        wanted, store = stage.objectives.similarity, self.scored
        if wanted is None or store is None:
            return None
        batches = ScoredBatches(store, Versions(store), wanted, self._seed(number), stage.max_tokens, self._rank)
        if teacher is None:
            return batches
        sides = [batches.rows(step) for step in range(stage.steps)]
        needed = np.concatenate([2 * rows + side for both in sides for side, rows in enumerate(both)])
        pairs = sentences(list(kept_pairs(self._scored, self.processor)))
        return replace(batches, teacher=self._vectors(teacher, pairs, needed, "scored", store))

    def _passage_batches(
        self,
        number: int,
        stage: StageConfig,
        teacher: TargetSource | None,
        settings: PassagesConfig | None,
        table: Tensor | None,
    ) -> PassageBatches | None:
        """The queries of a stage, if it uses any; with a teacher's vectors of them, kept on disk."""
        wanted, store = stage.objectives.retrieve, self.passages
        if wanted is None or store is None or settings is None:
            return None
        arguments = Versions(store), settings, wanted, self._seed(number), stage.max_tokens, table, self._rank
        batches = PassageBatches(store, *arguments)
        if teacher is not None:
            needed = np.concatenate([batches.rows(step)[0] for step in range(stage.steps)])
            pairs = queries(kept_pairs(self._passages, self.processor))
            batches.teacher = self._vectors(teacher, pairs, needed, "passages", store)
        return batches

    def _vectors(
        self, teacher: TargetSource, pairs: Iterable[Pair], needed: Rows, kind: str, store: Store
    ) -> TeacherVectors:
        # The first rank computes them; the others then read them.
        with first_rank_first(self._fabric):
            return teacher_vectors(teacher, pairs, needed, self.teacher_folder / kind, key=store.key)

    def sample(self, count: int) -> NDArray[np.int64]:
        """About `count` of the pairs that are ever drawn, evenly spaced, in order."""
        store = self.store
        return np.sort(store.pairs(evenly(int(store.cell_starts[-1]), count)))

    def text(self, count: int) -> list[Pair]:
        """The text of the pairs of `sample`; takes one pass over the corpus."""
        return list(chosen_pairs(self._kept(), self.sample(count)))

    def translations(self, count: int) -> NDArray[np.int64]:
        """At most `count` pairs of each language, evenly spaced among those that are ever drawn."""
        store, found = self.store, []
        for language in self._recipe.languages:
            spans = zip(store.cells, store.cell_starts, store.cell_starts[1:], strict=False)
            parts = [np.arange(start, end) for (_, code), start, end in spans if code == language]
            entries = np.concatenate(parts)
            found.append(store.pairs(entries[evenly(len(entries), count)]))
        return np.concatenate(found)

    def _kept(self) -> Iterator[Pair]:
        return kept_pairs(self.prepared.pairs, self.processor)

    def draw(self, number: int, stage: StageConfig) -> Batches:
        """The batches of a stage, without teacher, clusters, swapped words and other spellings."""
        shares = self._shares
        if not stage.objectives.takes_english_alone:
            paired = shares * [not without_translation(language) for _, language in self.store.cells]
            shares = paired / paired.sum() if (paired != shares).any() else shares
        return Batches(
            self.store,
            reweigh(shares, self.store.cells, stage.weights),
            stage,
            seed=self._seed(number),
            maskable=self.maskable,
            max_length=self._recipe.max_length,
            rank=self._rank,
            readers=self._readers,
        )

    @property
    def _rank(self) -> tuple[int, int]:
        return self._fabric.global_rank, self._fabric.world_size

    def _seed(self, number: int) -> int:
        return self._recipe.seed + 1000 * number

    def _clusters(
        self, number: int, stage: StageConfig, encoder: Encoder, *, resumed: bool
    ) -> NDArray[np.uint16] | None:
        """The cluster of each pair, by the encoder at the start of the stage; kept on disk to resume from."""
        if stage.order != "cluster" or not stage.steps:
            return None
        path = self._run / f"clusters-{stage.name}.u16"
        if self._fabric.is_global_zero and not (resumed and path.exists()):
            encoder, seed = encoder.to(self._fabric.device), self._recipe.seed + number
            with atomic_file(path) as file:
                for chunk in cluster_pairs(self.store, encoder, clusters=stage.clusters, seed=seed):
                    file.write(chunk.tobytes())
        return np.memmap(path, np.uint16, "r")


@torch.inference_mode()
def cluster_pairs(store: Store, encoder: Encoder, *, clusters: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    """Yields the cluster of every pair of a store, in chunks; 0 for pairs that are never drawn."""
    rng = np.random.default_rng((seed, 3))
    drawn = np.sort(store.pairs(np.arange(store.cell_starts[-1])))
    sample = np.unique(drawn[rng.integers(len(drawn), size=SAMPLE_PER_CLUSTER * clusters)])
    parts = (sample[start : start + CHUNK] for start in range(0, len(sample), CHUNK))
    vectors = torch.cat([english_means(store, encoder, part) for part in parts])
    common = vectors.mean(dim=0)
    vectors = F.normalize(vectors - common, dim=1)
    first = rng.choice(len(sample), min(clusters, len(sample)), replace=False)
    centroids = vectors[torch.from_numpy(first)]
    for _ in range(ITERATIONS):  # move to the direction of the mean of each cluster; empty ones stay
        assigned = nearest_centroid(vectors, centroids)
        sums = torch.zeros_like(centroids).index_add_(0, assigned, vectors)
        empty = torch.bincount(assigned, minlength=len(centroids)) == 0
        centroids = F.normalize(torch.where(empty[:, None], centroids, sums), dim=1)
    centroids = chained(centroids)
    with Progress("pairs in clusters", len(store)) as progress:
        for start in range(0, len(store), CHUNK):
            numbers = np.zeros(min(CHUNK, len(store) - start), np.uint16)
            rows = drawn[slice(*np.searchsorted(drawn, [start, start + CHUNK]))]
            found = nearest_centroid(english_means(store, encoder, rows) - common, centroids)
            numbers[rows - start] = found.cpu().numpy()
            yield numbers
            progress.advance(len(numbers))
    logger.info("%d pairs in %d clusters", len(drawn), len(centroids))


def english_means(store: Store, encoder: Encoder, rows: NDArray[np.int64]) -> Tensor:
    """The mean rows of the English sides of some pairs [rows, DIM]."""
    tokens = store.tokens(rows, 0, encoder.config.max_length).to(encoder.table.weight.device)
    return encoder.static(tokens)[:, :DIM]


def nearest_centroid(vectors: Tensor, centroids: Tensor) -> Tensor:
    """The centroid with the largest cosine for each vector [n]."""
    return torch.cat([(part @ centroids.T).argmax(dim=1) for part in torch.split(vectors, CHUNK)])


def chained(centroids: Tensor) -> Tensor:
    """Order the centroids as a walk that always continues at the nearest one not visited yet."""
    similar = centroids @ centroids.T
    path = [0]
    for _ in range(len(centroids) - 1):
        similar[:, path[-1]] = -torch.inf
        path.append(int(similar[path[-1]].argmax()))
    return centroids[path]
