"""The scale of an ablation: the data, the sizes and the budget that all of its rows share."""

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from xsent.errors import DataError
from xsent.files import atomic_file
from xsent.train.config import CorpusConfig, Recipe, StageConfig, VocabularyConfig
from xsent.train.data.corpus import Corpus, Pair

logger = logging.getLogger(__name__)

PLAN = "plan.json"


@dataclass(frozen=True)
class Plan:
    """What every row of an ablation has in common.

    Attributes:
        data: Folder with `train/pairs.tsv` (or packed) and the test sets under `eval`.
        teacher: Folder of the model to distil from; empty is the built-in one.
        pairs: Pairs that a row sees.
        table_pairs: Pairs that the table sees which warm rows start from.
        languages: Languages beside English.
        characters: Longest sentence, on either side, that is kept of the corpus.
        vocabulary: Pieces.
        dim: Dimension, unless a row is about it.
        max_tokens: Tokens read of a sentence in training.
        batch_size: Pairs in a step, unless a row is about it.
        clusters: Clusters that batches of hard negatives are cut along.
        validation_share: Share of English sentences held out.
        validation_pairs: Pairs a language held out.
        distractors: Further candidates of the retrieval test.
        threads: Threads of a row.
    """

    data: str
    teacher: str = ""
    pairs: int = 64_000
    table_pairs: int = 1_024_000
    languages: tuple[str, ...] = ("fr", "de")
    characters: int = 120
    vocabulary: int = 8_000
    dim: int = 128
    max_tokens: int = 32
    batch_size: int = 128
    clusters: int = 1024
    validation_share: float = 0.005
    validation_pairs: int = 1000
    distractors: int = 20_000
    threads: int = 1

    def recipe(self, name: str, stage: StageConfig, *, dim: int, seed: int) -> Recipe:
        """The recipe of one row; all rows prepare the same vocabulary, validation pairs and store."""
        corpus = CorpusConfig(
            files=("corpus.tsv",),
            validation_share=self.validation_share,
            validation_pairs=self.validation_pairs,
            temperature=0.5,
        )
        return Recipe(
            name=name,
            languages=self.languages,
            corpus=corpus,
            stages=(stage,),
            dim=dim,
            num_heads=max(1, dim // 64),
            ffn_dim=2 * dim,
            max_length=2 * self.max_tokens,
            seed=seed,
            checkpoint_minutes=60,
            vocabulary=VocabularyConfig(size=self.vocabulary, sentences=300_000),
        )

    @property
    def source(self) -> Path:
        """The file of pairs.

        Raises:
            DataError: There is none.
        """
        found = sorted((Path(self.data) / "train").glob("pairs.tsv*"))
        if not found:
            raise DataError(f"{self.data}: no train/pairs.tsv, .gz or .xz in this folder; name the data folder")
        return found[0]

    @property
    def tests(self) -> Path:
        """The folder of the test sets.

        Raises:
            DataError: There is none.
        """
        folder = Path(self.data) / "eval"
        if not folder.is_dir():
            raise DataError(f"{self.data}: no folder eval in it; expected eval/tatoeba, xsr, sib200 and stsb")
        return folder

    def check(self) -> None:
        """Refuse data that is not there, before anything is trained.

        Raises:
            DataError: There are no pairs, no test sets, or no such teacher.
        """
        logger.info("pairs of %s, test sets of %s", self.source, self.tests)
        if self.teacher and not Path(self.teacher).is_dir():
            raise DataError(f"{self.teacher}: no such folder; --teacher takes the folder of a model")

    def short_pairs(self) -> Iterator[Pair]:
        """The pairs whose sides are both short enough for many rows to be affordable."""
        for pair in Corpus([self.source], frozenset(self.languages)):
            if not pair.alone and max(len(pair.english), len(pair.translation)) <= self.characters:
                yield pair

    def write_corpus(self, path: Path) -> None:
        """Write the short pairs to a file, once."""
        if path.exists():
            return
        with atomic_file(path) as file:
            for pair in self.short_pairs():
                file.write(("\t".join(pair) + "\n").encode())

    def open(self, folder: Path) -> None:
        """Take a folder for this plan, or find that it is already.

        Raises:
            DataError: The folder belongs to another plan.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / PLAN).exists():
            with atomic_file(folder / PLAN) as file:
                file.write(json.dumps(asdict(self), indent=1).encode())
        before = load_plan(folder)
        changed = [f.name for f in fields(self) if getattr(self, f.name) != getattr(before, f.name)]
        if changed:
            was = ", ".join(f"{name} = {getattr(before, name)!r}" for name in changed)
            raise DataError(f"{folder} holds an ablation with {was}; name another --out, or the same settings")


def load_plan(folder: Path) -> Plan:
    """The plan of a folder.

    Raises:
        DataError: It has none that can be read.
    """
    try:
        raw = json.loads((folder / PLAN).read_text())
        return Plan(**raw | {"languages": tuple(raw["languages"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{folder / PLAN}: not the plan of an ablation: {error}; name another --out") from error
