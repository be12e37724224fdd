"""What the stages of a training read: the batches, and what its teacher says of their pairs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import sentencepiece as spm
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from xsent.errors import DataError
from xsent.files import atomic_file, sweep
from xsent.train.checkpoint import read_about
from xsent.train.config import Recipe, StageConfig
from xsent.train.data.batching import Batches
from xsent.train.data.clusters import cluster_pairs
from xsent.train.data.corpus import Corpus, Pair, without_translation
from xsent.train.data.preparation import TrainingPairs, preparation_key, prepare
from xsent.train.data.sampling import cell_shares, evenly, reweigh
from xsent.train.data.store import Store, chosen_pairs, kept_pairs
from xsent.train.data.swaps import Swaps
from xsent.train.data.teacher_vectors import TeacherVectors, Teaches, teacher_vectors
from xsent.train.data.vocabulary import maskable_pieces
from xsent.train.model import Encoder


class Feed:
    """The data of a training."""

    def __init__(
        self,
        recipe: Recipe,
        files: Sequence[Path],
        run: Path,
        fabric: Fabric,
        *,
        threads: int,
        prepared: Path | None = None,
        vocabulary: Path | None = None,
    ) -> None:
        """Prepare the data of files of pairs for a training in the folder `run`; a DataError where it cannot be used.

        Vocabulary, held-out pairs and store lie in `prepared`, which runs may share, or else in the run's own folder.
        A SentencePiece model, `vocabulary`, is used as it is; None trains one.
        """
        self._recipe, self._run, self._fabric, self._prepared = recipe, run, fabric, prepared or run
        with fabric.rank_zero_first():
            if fabric.is_global_zero:
                refuse_other_data(run, self._prepared, preparation_key(recipe, files, vocabulary))
            self.data = prepare(recipe, files, self._prepared, threads=threads, vocabulary=vocabulary)
        run.mkdir(parents=True, exist_ok=True)  # what was prepared may lie elsewhere
        corpus, store = recipe.corpus, self.data.store
        self._pairs = TrainingPairs(Corpus(files, frozenset(recipe.languages)), corpus.validation_share)
        self.processor = spm.SentencePieceProcessor(model_file=str(self.data.tokenizer))
        self.maskable = torch.from_numpy(maskable_pieces(self.processor))  # which pieces may be hidden [V]
        if corpus.most:
            store.limit(corpus.most)
        sizes = dict(zip(store.cells, np.diff(store.cell_starts).tolist(), strict=True))
        shares = cell_shares(sizes, temperature=corpus.temperature, weights=corpus.weights)
        self._shares = np.array([shares[cell] for cell in store.cells])

    def drawn(self, number: int, stage: StageConfig) -> NDArray[np.int64]:
        """The pairs that a stage, by its number and settings, will draw; each once, in order."""
        return self._draw(number, stage)().drawn()

    def batches(
        self,
        number: int,
        stage: StageConfig,
        encoder: Encoder,
        teacher: TeacherVectors | None,
        *,
        before: Tensor | None,
        resumed: bool,
    ) -> Batches:
        """The batches of a stage, in the order that its encoder saw in the pairs at its start if it wants that.

        `before` is the table that the stage starts from, which says what words translate each other.
        """
        with self._fabric.rank_zero_first():
            clusters = self._clusters(number, stage, encoder, resumed=resumed)
        swaps = Swaps(before, self.processor) if stage.swapped and before is not None else None
        return self._draw(number, stage)(teacher=teacher, clusters=clusters, swaps=swaps)

    def teacher_vectors(self, number: int, stage: StageConfig, teacher: Teaches) -> TeacherVectors:
        """What a teacher says of the pairs of a stage; kept on disk."""
        # The first rank makes it; the others find it there.
        with self._fabric.rank_zero_first():
            needed, key = self.drawn(number, stage), self.data.store.key
            return teacher_vectors(teacher, self._kept(), needed, self.teacher_folder, key=key)

    @property
    def teacher_folder(self) -> Path:
        """Where teachers' vectors are kept."""
        return self._prepared / "teachers"

    def text(self, numbers: NDArray[np.int64]) -> Iterator[Pair]:
        """Those pairs of the store that have the given numbers, which are sorted; reads the corpus no further."""
        return chosen_pairs(self._kept(), numbers)

    def sample(self, count: int) -> NDArray[np.int64]:
        """Pairs that are ever drawn, about so many, spread evenly over them, in order."""
        store = self.data.store
        return np.sort(store.pairs(evenly(int(store.cell_starts[-1]), count)))

    def _kept(self) -> Iterator[Pair]:
        return kept_pairs(self._pairs, self.data.tokenizer)

    def _draw(self, number: int, stage: StageConfig) -> Callable[..., Batches]:
        store, shares = self.data.store, self._shares
        if not stage.objectives.takes_english_alone:
            paired = shares * [not without_translation(language) for _, language in store.cells]
            shares = paired / paired.sum() if (paired != shares).any() else shares
        return partial(
            Batches,
            store,
            reweigh(shares, store.cells, stage.weights),
            stage,
            seed=self._recipe.seed + 1000 * number,
            maskable=self.maskable,
            rank=(self._fabric.global_rank, self._fabric.world_size),
            max_length=self._recipe.max_length,
        )

    def _clusters(
        self, number: int, stage: StageConfig, encoder: Encoder, *, resumed: bool
    ) -> NDArray[np.uint16] | None:
        """The cluster of each pair, as the encoder sees them at the start of the stage; kept for a resume."""
        if stage.order != "cluster" or not stage.steps:
            return None
        path = self._run / f"clusters-{stage.name}.u16"
        if self._fabric.is_global_zero and not (resumed and path.exists()):
            encoder, seed = encoder.to(self._fabric.device), self._recipe.seed + number
            with atomic_file(path) as file:
                for chunk in cluster_pairs(self.data.store, encoder, clusters=stage.clusters, seed=seed):
                    file.write(chunk.tobytes())
        return np.memmap(path, np.uint16, "r")


def refuse_other_data(run: Path, prepared: Path, key: str) -> None:
    """Sweep up after killed runs; a DataError before anything that was made of other data would be overwritten."""
    sweep(run)
    sweep(run / "checkpoints")
    for folder in sorted(run.glob("checkpoints/*")):
        if read_about(folder).get("preparation_key") != key:
            raise DataError(f"{folder} was trained on another corpus or vocabulary; name another --out")
    if prepared != run and (prepared / "store" / "store.json").exists() and Store(prepared / "store").key != key:
        raise DataError(f"{prepared} was prepared for another corpus, vocabulary or languages; name another folder")
