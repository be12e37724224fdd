"""An encoder before and after it learnt a language: what the new one gained, what the old ones lost."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import sentencepiece as spm

from xsent.evaluation.translation import DIRECTIONS, languages_of, tatoeba
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder
from xsent.train.data.corpus import Corpus
from xsent.train.validation import Validation

MOST_LOST = 0.3  # points of P@1 that an old language may lose

Scores = dict[str, float]  # P@1 in per cent, by what was searched


@dataclass(frozen=True)
class LanguageChange:
    """One language."""

    language: str
    pairs: int  # held-out pairs of it
    # P@1 in per cent: `held_out` (a translation's English among that of all languages), and of Tatoeba `xx_en` and
    # `en_xx`
    before: Scores
    after: Scores  # the same afterwards

    @property
    def changes(self) -> Scores:
        """Points won; below 0 where they were lost."""
        return {name: self.after[name] - before for name, before in self.before.items()}

    def row(self) -> dict[str, object]:
        """One row of a table."""
        row: dict[str, object] = {"language": self.language, "pairs": self.pairs}
        for name, change in self.changes.items():
            row |= {f"{name} before": self.before[name], f"{name} after": self.after[name], f"{name} change": change}
        return row


@dataclass(frozen=True)
class LanguageComparison:
    """All languages."""

    language: str  # the new one
    changes: tuple[LanguageChange, ...]  # the scores of every language, the new one last
    sentences: int  # held-out sentences of the old languages, English among them
    same_pieces: int  # how many of them are cut into pieces as before
    same_vectors: int  # how many of those have the same vector, to the bit

    def rows(self) -> list[dict[str, object]]:
        """One row a language."""
        return [change.row() for change in self.changes]

    def notes(self) -> list[str]:
        """What the rows do not say, a line each."""
        notes = [
            f"held-out sentences of the old languages: {self.sentences:,}; cut into pieces as before: "
            f"{self.same_pieces:,} ({100 * self.same_pieces / max(self.sentences, 1):.2f}%); of these with the same "
            f"vector to the bit: {self.same_vectors:,}"
        ]
        if all(change.language == self.language for change in self.changes):
            notes.append("no old language was measured: PAIRS holds no pairs of one, and --tatoeba names no test files")
        return notes

    def as_json(self) -> dict[str, object]:
        """All of it."""
        counts = {name: getattr(self, name) for name in ("sentences", "same_pieces", "same_vectors")}
        return {"language": self.language, "rows": self.rows(), **counts}

    def failures(self) -> list[str]:
        """Old languages that lost too much, and a new one that gained nothing, in words."""
        failures = []
        for change in self.changes:
            worst, best = min(change.changes.values()), max(change.changes.values())
            if change.language == self.language and best <= 0:
                failures.append(f"{self.language} gained nothing")
            elif change.language != self.language and worst < -MOST_LOST:
                failures.append(f"{change.language} lost {-worst:.1f} points")
        return failures


def compare_languages(before: Checkpoint, after: Checkpoint, tests: Path | None) -> LanguageComparison:
    """Measure an encoder before and after it learnt a language, the last of its languages.

    Both run in the same way, so that nothing but the training makes a difference. Searched are the held-out pairs of
    the second, and test files of `xsent.evaluation.translation.tatoeba`; a DataError where one cannot be read.
    """
    new = after.languages[-1]
    pairs = list(Corpus([after.validation]))
    counts = Counter(pair.language for pair in pairs)
    old, now = (_score(checkpoint, after, tests) for checkpoint in (before, after))
    changes = (LanguageChange(name, counts[name], old[name], now[name]) for name in after.languages if name in old)
    sentences = list(dict.fromkeys(pair.english for pair in pairs))
    sentences += dict.fromkeys(pair.translation for pair in pairs if pair.language != new)
    return LanguageComparison(new, tuple(changes), len(sentences), *_unmoved(before, after, sentences))


def _score(checkpoint: Checkpoint, after: Checkpoint, tests: Path | None) -> dict[str, Scores]:
    """What is found of each language."""
    p1 = Validation(after.validation, checkpoint.tokenizer).measure(checkpoint.encoder)["p1"]
    scores = {language: {"held_out": score} for language, score in p1.items()}
    if tests is not None:
        languages, bar = languages_of(CheckpointEncoder(after), tests), sys.stderr.isatty()
        found = tatoeba(CheckpointEncoder(checkpoint), tests, languages, show_progress_bar=bar).scores
        for language, score in found.items():
            scores.setdefault(language, {}).update((way, score[way]) for way in DIRECTIONS)
    return scores


def _unmoved(before: Checkpoint, after: Checkpoint, sentences: list[str]) -> tuple[int, int]:
    """How many sentences are cut as before, and how many of those have the same vector."""
    tokenizers = (str(checkpoint.tokenizer) for checkpoint in (before, after))
    cuts = [spm.SentencePieceProcessor(model_file=model).encode(sentences) for model in tokenizers]
    # These alone: in a batch with others the last bits of a vector depend on its company.
    same = [sentence for sentence, old, new in zip(sentences, *cuts, strict=True) if old == new]
    vectors = [CheckpointEncoder(checkpoint).encode(same) for checkpoint in (before, after)]
    return len(same), int((vectors[0] == vectors[1]).all(axis=1).sum())
