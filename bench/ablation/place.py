"""Where the rows of an ablation keep their files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULT = "result.json"


@dataclass(frozen=True)
class Place:
    """Where a row keeps its files.

    Attributes:
        folder: The ablation's.
        key: The variant's.
        seed: Seed of its training.
    """

    folder: Path
    key: str
    seed: int

    @property
    def run(self) -> Path:
        """Its own folder."""
        return self.folder / "rows" / f"{self.key}-{self.seed}"

    @property
    def log(self) -> Path:
        """What it says while it trains."""
        return self.folder / "rows" / f"{self.key}-{self.seed}.log"

    @property
    def result(self) -> dict[str, Any] | None:
        """What came out, or None while it is not finished."""
        path = self.run / RESULT
        if not path.exists():
            return None
        result: dict[str, Any] = json.loads(path.read_text())
        return result

    @property
    def corpus(self) -> Path:
        """The file of pairs that all rows share."""
        return self.folder / "corpus.tsv"

    def prepared(self, *, warm: bool) -> Path:
        """The folder of vocabulary, held-out pairs and store; trainings that start from a table have their own."""
        return self.folder / ("prepared-warm" if warm else "prepared")
