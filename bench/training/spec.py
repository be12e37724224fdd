"""What a training benchmark runs: a system, its size, and a corpus of made-up words as large as wanted."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from xsent.files import atomic_file
from xsent.train.config import CorpusConfig, Recipe, StageConfig, VocabularyConfig
from xsent.train.objectives.settings import Align, Generative, Objectives, Sim

PAPER = Objectives(ugt=Generative(), align=Align(weight=2.0, temperature=0.0), sim=Sim(weight=2.0, literal=True))
COSINE = Objectives(align=Align(temperature=0.05))
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
CHUNK = 10_000  # pairs made at a time
SPREAD = 0.75  # deviation of the logarithm of a sentence's length; 0.77 in 100,000 real pairs
LONGEST = 100  # words


@dataclass(frozen=True)
class Spec:
    """One measured training."""

    folder: str  # where the made-up corpus, and what is prepared of it, lie
    system: str = "ours"  # or `plain` (the paper's, untuned), or `table` (ours without layers, by cosine)
    num_layers: int = 2
    batch_size: int = 128
    steps: int = 12
    round: int = 0  # steps between two pauses in which another process has its turn; 0 runs through
    threads: int = 1
    compile: bool = False  # whether torch.compile makes the layers faster
    pairs: int = 200_000  # of the made-up corpus
    words: int = 40_000  # different ones of it
    length: float = 24.5  # mean words of a sentence
    vocabulary: int = 50_000
    dim: int = 512

    @property
    def corpus(self) -> Path:
        """The file of pairs, made if it is not there."""
        path = Path(self.folder) / "corpus.tsv"
        if not path.exists():
            with atomic_file(path) as file:
                file.writelines(made_up_lines(self.pairs, words=self.words, length=self.length))
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


# What the memory of a corpus is measured with: a training that is soon over.
SMALL_TABLE = partial(Spec, system="table", batch_size=1024, words=8_000, length=8.0, vocabulary=8_000, dim=256)


def made_up_words(count: int) -> list[str]:
    """Different words of two to four syllables, the shortest first."""
    base = len(SYLLABLES)
    words = []
    for number in range(base, base + count):
        word = ""
        while number:
            number, syllable = divmod(number, base)
            word += SYLLABLES[syllable]
        words.append(word)
    return words


def made_up_lines(pairs: int, *, words: int, length: float, seed: int = 1) -> Iterator[bytes]:
    """Lines of a corpus; a translation has the words of the English side with another ending, in reverse.

    Of so many different words a language the n-th is about n times rarer than the first (Zipf). Lengths are
    log-normal around the mean, as those of real sentences are.
    """
    english = made_up_words(words)
    other = [word + "x" for word in english]
    rng = np.random.default_rng(seed)
    likely = np.cumsum(1 / (10 + np.arange(words)))
    scale = np.log(length) - SPREAD**2 / 2
    for start in range(0, pairs, CHUNK):
        count = min(CHUNK, pairs - start)
        lengths = np.clip(np.round(rng.lognormal(scale, SPREAD, count)), 2, LONGEST).astype(int)
        drawn = np.searchsorted(likely, rng.random(int(lengths.sum())) * likely[-1]).tolist()
        ends = np.cumsum(lengths)
        for begin, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
            sentence = drawn[begin:end]
            sides = " ".join([english[i] for i in sentence]), " ".join([other[i] for i in reversed(sentence)])
            yield f"made-up\txx\t{sides[0]}\t{sides[1]}\n".encode()
