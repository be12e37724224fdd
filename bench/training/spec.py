"""What a training benchmark runs: a system, its size, its data."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from xsent.bench.training.synthetic import write_made_up
from xsent.train.config import CorpusConfig, Recipe, StageConfig, VocabularyConfig
from xsent.train.objectives.settings import Align, Generative, Objectives, Sim

PAPER = Objectives(ugt=Generative(), align=Align(weight=2.0, temperature=0.0), sim=Sim(weight=2.0, literal=True))
COSINE = Objectives(align=Align(temperature=0.05))


@dataclass(frozen=True)
class Spec:
    """One measured training.

    Attributes:
        folder: Where the made-up corpus, and what is prepared of it, lie.
        system: `ours`, `plain` (the paper's, untuned) or `table` (ours without layers, by cosine).
        num_layers: Layers.
        batch_size: Pairs in a step.
        steps: Steps to run.
        round: Steps between two pauses in which another process has its turn; 0 runs through.
        threads: Processor threads.
        compile: Whether torch.compile makes the layers faster.
        pairs: Pairs of the made-up corpus.
        words: Different words of it.
        length: Mean words of a sentence.
        vocabulary: Pieces.
        dim: Dimension.
    """

    folder: str
    system: str = "ours"
    num_layers: int = 2
    batch_size: int = 128
    steps: int = 12
    round: int = 0
    threads: int = 1
    compile: bool = False
    pairs: int = 200_000
    words: int = 40_000
    length: float = 24.5
    vocabulary: int = 50_000
    dim: int = 512

    @property
    def corpus(self) -> Path:
        """The file of pairs, made if it is not there."""
        path = Path(self.folder) / "corpus.tsv"
        write_made_up(path, self.pairs, words=self.words, length=self.length)
        return path

    @property
    def prepared(self) -> Path:
        """Folder of vocabulary, held-out pairs and store."""
        return Path(self.folder) / "prepared"

    @property
    def stage(self) -> StageConfig:
        """How it is trained."""
        table = self.system == "table"
        return StageConfig(
            name=f"{self.system}-{self.num_layers}",
            num_layers=0 if table else self.num_layers,
            steps=self.steps,
            objectives=COSINE if table else PAPER,
            batch_size=self.batch_size,
            learning_rate=1e-4,
            table_learning_rate=1e-4,
            dropout=0.1,
            validate_every=self.steps,
        )

    @property
    def recipe(self) -> Recipe:
        """The whole training: mao2021's sizes."""
        return Recipe(
            name="benchmark",
            languages=("xx",),
            corpus=CorpusConfig(files=("corpus.tsv",), validation_pairs=20),
            vocabulary=VocabularyConfig(size=self.vocabulary, sentences=100_000),
            stages=(self.stage,),
            dim=self.dim,
            num_heads=8,
            ffn_dim=2 * self.dim,
            compile=self.compile,
            checkpoint_minutes=60,
        )

    def to_json(self) -> str:
        """As text, for the command line of a child."""
        return json.dumps(asdict(self))
