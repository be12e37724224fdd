"""Labels by description beside a trained head, by the number of examples: docs/classify.md."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from xsent.classification.classifier import LinearClassifier
from xsent.cli.options import BundleOption
from xsent.cli.terminal import format_table, one_line_errors
from xsent.encoder import SentenceEncoder
from xsent.evaluation.topics import COLUMNS, ENGLISH, TEST_FILES, TRAIN_FILES, read_examples, topic_files
from xsent.progress import Progress

# Written once, before anything was measured.
DESCRIPTIONS = {
    "entertainment": "film, music, television and celebrities",
    "geography": "countries, rivers, mountains and cities",
    "health": "illness, medicine and hospitals",
    "politics": "governments, elections and laws",
    "science/technology": "research, nature, space and computers",
    "sports": "games, teams, players and matches",
    "travel": "trips, hotels, flights and sights for tourists",
}
NUMBERS = (0, 1, 4, 16, 64)  # examples a label
DRAWS = 5  # of the examples
SIDES = ("vectors", "labels")


@dataclass(frozen=True)
class Labelled:
    """Vectors [n, D] and their labels [n]."""

    vectors: NDArray[np.float32]
    labels: NDArray[np.str_]

    @classmethod
    def read(cls, encoder: SentenceEncoder, file: Path) -> "Labelled":
        """The texts of a file of SIB-200."""
        examples = read_examples(file, COLUMNS)
        return cls(examples.encode(encoder), np.array(examples.labels))

    def take(self, where: NDArray[np.bool_] | NDArray[np.int64]) -> "Labelled":
        """Some of them."""
        return Labelled(self.vectors[where], self.labels[where])

    def draw(self, number: int, seed: int) -> "Labelled":
        """So many of each label."""
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(np.flatnonzero(self.labels == label))[:number] for label in DESCRIPTIONS]
        return self.take(np.concatenate(rows))


@one_line_errors()
def zero_shot(
    folder: Annotated[Path, typer.Argument(help="SIB-200: LANG/train.tsv and LANG/test.tsv.")],
    model: BundleOption = None,
) -> None:
    """Measure labels by description beside a trained head, by the number of English examples a label.

    In per cent: accuracy in English and in the other languages; of all languages the texts with a label that get none
    ("lost"), and those without that get none ("none"): each label in turn is left out, and its texts have none then.
    """
    encoder = SentenceEncoder(model)
    files = topic_files(folder, TEST_FILES)
    tests = {code: Labelled.read(encoder, files[code]) for code in encoder.languages if code in files}
    everything = Labelled(*(np.concatenate([getattr(test, side) for test in tests.values()]) for side in SIDES))
    train = Labelled.read(encoder, topic_files(folder, TRAIN_FILES)[ENGLISH])
    described = encoder.encode([f"{label}: {text}" for label, text in DESCRIPTIONS.items()])
    ways = {"description": Labelled(described, np.array([*DESCRIPTIONS])), "training": None}
    tried = [(number, way) for number in NUMBERS for way in ways if number > 1 or ways[way]]
    rows = list[dict[str, object]]()
    with Progress("heads", len(tried) * DRAWS) as progress:
        for number, way in tried:
            drawn = [train.draw(number, seed) for seed in range(DRAWS)]
            heads = [make_head(ways[way], examples) for examples in progress.count(drawn)]
            right = {
                code: 100 * np.mean([np.mean(answers(head, test, unknown=0) == test.labels) for head in heads])
                for code, test in tests.items()
            }
            none = [np.mean(missing(ways[way], one, everything, label)) for one in drawn for label in DESCRIPTIONS]
            lost = [np.mean(answers(head, everything) == "") for head in heads]
            rows.append(
                {
                    "examples a label": number,
                    "labels by": way,
                    "en": float(right[ENGLISH]),
                    "others": float(np.mean([share for code, share in right.items() if code != ENGLISH])),
                    "lost": float(100 * np.mean(lost)),
                    "none": float(100 * np.mean(none)),
                }
            )
    typer.echo(format_table(rows))


def make_head(described: Labelled | None, examples: Labelled) -> LinearClassifier:
    """A head of descriptions and examples, or one that was trained on examples alone."""
    if described is None:
        return LinearClassifier.fit(examples.vectors, examples.labels.tolist(), fingerprint="")
    return LinearClassifier.from_descriptions(
        described.vectors,
        described.labels.tolist(),
        fingerprint="",
        examples=examples.vectors,
        example_labels=examples.labels.tolist(),
    )


def answers(head: LinearClassifier, texts: Labelled, unknown: float | None = None) -> NDArray[np.str_]:
    """The labels that a head gives, empty where it gives none."""
    return np.array([label or "" for label in head.predict(texts.vectors, unknown=unknown)])


def missing(described: Labelled | None, examples: Labelled, texts: Labelled, label: str) -> NDArray[np.bool_]:
    """For the texts of a label, whether a head that has not heard of it gives them none."""
    rest = described and described.take(described.labels != label)
    head = make_head(rest, examples.take(examples.labels != label))
    none: NDArray[np.bool_] = answers(head, texts.take(texts.labels == label)) == ""
    return none


if __name__ == "__main__":
    typer.run(zero_shot)
