"""What an ablation compares: the scale that its variants share, each variant, and the tables they stand in."""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xsent.errors import DataError
from xsent_train.recipe import (
    Align,
    ContrastiveDistil,
    CorpusConfig,
    Distil,
    Objectives,
    Recipe,
    StageConfig,
    VocabularyConfig,
)

TABLE = "table"  # the variant that warm ones start from
COSINE = Objectives(align=Align(temperature=0.05))
CONTENTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("ablation.toml").read_text(encoding="utf-8"))
METHOD: list[str] = CONTENTS["method"]  # what the tables are about, with the names of a plan's fields
SCRATCH = {key: Objectives(**objectives) for key, objectives in CONTENTS["scratch"].items()}


@dataclass(frozen=True)
class Variant:
    """One encoder to train and measure."""

    key: str  # also of its folder
    stage: StageConfig
    dim: int
    warm: bool = False  # whether it starts from the table that all warm variants share; else from nothing
    inside: bool = False  # whether its prefixes, a quarter of the dimensions, one layer or none, are measured too


@dataclass(frozen=True)
class Plan:
    """What every row of an ablation has in common."""

    data: str  # folder with `train/pairs.tsv` (or packed) and the test sets under `eval`
    teacher: str = ""  # folder of the model to distil from; empty is the built-in one
    pairs: int = 64_000  # that a row sees
    table_pairs: int = 1_024_000  # that the table sees which warm rows start from
    languages: tuple[str, ...] = ("fr", "de")  # beside English
    characters: int = 120  # of the longest sentence, on either side, that is kept: many rows must be affordable
    vocabulary: int = 8_000
    dim: int = 128  # unless a row is about it
    max_tokens: int = 32  # read of a sentence in training
    batch_size: int = 128  # unless a row is about it
    clusters: int = 1024  # that batches of hard negatives are cut along
    validation_share: float = 0.005  # of English sentences, held out
    validation_pairs: int = 1000  # a language, held out
    distractors: int = 20_000  # further candidates of the retrieval test
    threads: int = 1  # of a row

    @property
    def source(self) -> Path:
        """The file of pairs; that there is none is a DataError."""
        found = sorted((Path(self.data) / "train").glob("pairs.tsv*"))
        if not found:
            raise DataError(f"{self.data}: no train/pairs.tsv, .gz or .xz in this folder; name the data folder")
        return found[0]

    @property
    def tests(self) -> Path:
        """The folder of the test sets."""
        return Path(self.data) / "eval"

    def check(self) -> None:
        """Refuse data that is not there, before anything is trained."""
        if self.source and not self.tests.is_dir():
            raise DataError(f"{self.data}: no folder eval in it; expected eval/tatoeba, xsr, sib200 and stsb")
        if self.teacher and not Path(self.teacher).is_dir():
            raise DataError(f"{self.teacher}: no such folder; --teacher takes the folder of a model")

    def recipe(self, variant: Variant, seed: int) -> Recipe:
        """The recipe of one row; all rows prepare the same vocabulary, validation pairs and store."""
        return Recipe(
            name=variant.key,
            languages=self.languages,
            corpus=CorpusConfig(
                files=("corpus.tsv",),
                validation_share=self.validation_share,
                validation_pairs=self.validation_pairs,
            ),
            stages=(variant.stage,),
            dim=variant.dim,
            num_heads=max(1, variant.dim // 64),
            ffn_dim=2 * variant.dim,
            max_length=2 * self.max_tokens,
            seed=seed,
            checkpoint_minutes=10,
            vocabulary=VocabularyConfig(size=self.vocabulary, sentences=300_000),
        )

    def variants(self) -> dict[str, Variant]:
        """Every variant by key, each once, although several tables may show it."""
        batch, rates = 8 * self.batch_size, {"table_learning_rate": 5e-3}
        # The mean of rows by cosine, in large random batches.
        table = self._variant(TABLE, COSINE, batch, self.table_pairs, num_layers=0, clip=0.0, **rates)
        found = [table, *(self._scratch(key, objectives) for key, objectives in SCRATCH.items())]
        system = SCRATCH["ugt-align-sim"]
        found += [self._scratch(f"scratch-{n}", system, num_layers=n) for n in (0, 1, 4)]
        for name, factor in (("half", 0.5), ("double", 2)):
            found.append(self._scratch(f"batch-{name}", system, batch=int(factor * self.batch_size)))
            found.append(replace(self._scratch(f"dim-{name}", system), dim=int(factor * self.dim)))
        found += [self._warm(f"layers-{n}", num_layers=n) for n in (0, 1, 3, 4, 6)]
        found.append(self._warm("distil", Objectives(distil=Distil())))
        found.append(self._warm("co", Objectives(contrastive_distil=ContrastiveDistil())))
        filtered = Objectives(contrastive_distil=ContrastiveDistil(ignore_above=0.9))
        found.append(self._warm("co-filter", filtered, order="length", shuffle=False))
        measured_inside = [
            self._warm("layers-2"),
            self._warm("cluster", order="cluster", clusters=self.clusters),
            self._warm("prefixes", prefixes=(self.dim // 4, self.dim)),
            self._warm("layer-prefixes", layer_prefixes=(0, 1, 2)),
        ]
        found += [replace(variant, inside=True) for variant in measured_inside]
        return {variant.key: variant for variant in found}

    def _scratch(self, key: str, objectives: Objectives, *, batch: int = 0, num_layers: int = 2) -> Variant:
        """A variant that starts from nothing: every one at the same learning rates and for the same number of pairs."""
        rates = {"learning_rate": 1e-3, "table_learning_rate": 6e-3}
        return self._variant(key, objectives, batch or self.batch_size, self.pairs, num_layers=num_layers, **rates)

    def _warm(self, key: str, objectives: Objectives = COSINE, **settings: Any) -> Variant:  # noqa: ANN401
        """A variant on the shared table, which goes on learning a little under new layers."""
        batch, rates = 2 * self.batch_size, {"learning_rate": 3e-4, "table_learning_rate": 3e-4}
        return replace(self._variant(key, objectives, batch, self.pairs, **rates, **settings), warm=True)

    def _variant(self, key: str, objectives: Objectives, batch: int, pairs: int, **settings: Any) -> Variant:  # noqa: ANN401
        settings, steps = {"num_layers": 2, "max_tokens": self.max_tokens, **settings}, max(1, pairs // batch)
        settings |= {"warmup": max(1, steps // 10), "validate_every": steps}
        stage = StageConfig(name=key, steps=steps, objectives=objectives, batch_size=batch, **settings)
        return Variant(key, stage, self.dim)


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str  # the paper's name of it
    key: str  # of its variant
    paper: Sequence[float] = ()  # its numbers; empty where it has none
    inside: str = ""  # of the smaller encoder inside whose measures are shown instead of its own


@dataclass(frozen=True)
class RowGroup:
    """One table."""

    name: str  # what `--only` takes
    title: str
    note: str  # what to know
    rows: Sequence[Row]


GROUPS = [RowGroup(**{**group, "rows": [Row(*row) for row in group["rows"]]}) for group in CONTENTS["groups"]]


def chosen(only: Collection[str]) -> list[RowGroup]:
    """The tables of some names; all where none is named."""
    names = [group.name for group in GROUPS]
    if unknown := sorted({*only} - {*names}):
        raise DataError(f"no group {', '.join(unknown)}; there are {', '.join(names)}")
    return [group for group in GROUPS if not only or group.name in only]
