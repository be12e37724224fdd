"""A model before and after a training, on the same tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from xsent.evaluation.translation import DIRECTIONS, tatoeba
from xsent_train.checkpoint import CheckpointEncoder

MOST_LOST = 0.3  # points that do not count as a loss

Row = tuple[str, str, int]  # test, language, layers
Points = dict[Row, float]  # P@1 in per cent, or Spearman's correlation times 100


@dataclass(frozen=True)
class Comparison:
    """The result of a training: the checkpoint, and what was measured before and after."""

    checkpoint: Path
    before: Mapping[Row, float]
    after: Mapping[Row, float]

    @property
    def changes(self) -> Points:
        """Points gained; negative for losses."""
        return {row: self.after[row] - points for row, points in self.before.items()}

    def rows(self) -> list[dict[str, object]]:
        """The scores as a table."""
        return [
            dict(zip(("text", "language", "layers"), row, strict=True))
            | {"before": self.before[row], "after": self.after[row], "change": change}
            for row, change in self.changes.items()
        ]

    def losses(self, besides: str = "") -> list[str]:
        """What got worse, in all languages or all besides one."""
        worse = [(*row, change) for row, change in self.changes.items() if change < -MOST_LOST and row[1] != besides]
        return [f"{text} {language} at {layers} layers {change:.1f}" for text, language, layers, change in worse]


def tatoeba_points(
    encoder: CheckpointEncoder, layers: int, folder: Path | None, languages: Sequence[str] | None = None
) -> Points:
    """The mean of both directions by language, on files of `xsent.evaluation.translation.tatoeba`, if there are any."""
    scores = tatoeba(encoder, folder, languages).scores if folder is not None else {}
    return {("tatoeba", name, layers): fmean(row[way] for way in DIRECTIONS) for name, row in scores.items()}
