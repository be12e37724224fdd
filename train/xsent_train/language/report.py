"""An encoder before and after it learnt a language: the gain of the new one, the losses of the old ones."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xsent.evaluation.translation import DIRECTIONS, languages_of, tatoeba
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder
from xsent_train.data.corpus import Corpus
from xsent_train.validation import Validation

MOST_LOST = 0.3  # points of P@1 that an old language may lose

Scores = dict[str, float]  # P@1 in per cent, by test


@dataclass(frozen=True)
class LanguageComparison:
    """Every language before and after, the new one last."""

    language: str  # the new one
    pairs: Mapping[str, int]  # held-out pairs by language
    # By language: `held_out` (a translation's English among that of all languages), and of Tatoeba `xx_en` and `en_xx`
    before: Mapping[str, Scores]
    after: Mapping[str, Scores]
    sentences: int  # held-out sentences of the old languages, English among them
    same_pieces: int  # how many of them are cut into pieces as before
    same_vectors: int  # how many of those have the same vector, to the bit

    @property
    def changes(self) -> dict[str, Scores]:
        """Points won by language; below 0 where they were lost."""
        return {
            language: {name: self.after[language][name] - score for name, score in scores.items()}
            for language, scores in self.before.items()
        }

    def rows(self) -> list[dict[str, object]]:
        """One row a language."""
        rows = []
        for language, changes in self.changes.items():
            row: dict[str, object] = {"language": language, "pairs": self.pairs[language]}
            before, after = self.before[language], self.after[language]
            for name, change in changes.items():
                row |= {f"{name} before": before[name], f"{name} after": after[name], f"{name} change": change}
            rows.append(row)
        return rows

    def notes(self) -> list[str]:
        """The facts that are not in the rows, a line each."""
        notes = [
            f"held-out sentences of the old languages: {self.sentences:,}; cut into pieces as before: "
            f"{self.same_pieces:,} ({100 * self.same_pieces / max(self.sentences, 1):.2f}%); of these with the same "
            f"vector to the bit: {self.same_vectors:,}"
        ]
        if self.before.keys() <= {self.language}:
            notes.append("no old language was measured: PAIRS holds no pairs of one, and --tatoeba names no test files")
        if self.language not in self.before:
            notes.append(f"{self.language} was not measured: PAIRS holds no pairs of it; name test files by --tatoeba")
        return notes

    def as_json(self) -> dict[str, object]:
        """All of it."""
        counts = {name: getattr(self, name) for name in ("sentences", "same_pieces", "same_vectors")}
        return {"language": self.language, "rows": self.rows(), **counts}

    def failures(self) -> list[str]:
        """Old languages that lost too much, and a new one that gained nothing, in words."""
        failures = []
        for language, changes in self.changes.items():
            worst, best = min(changes.values()), max(changes.values())
            if language == self.language and best <= 0:
                failures.append(f"{language} gained nothing")
            elif language != self.language and worst < -MOST_LOST:
                failures.append(f"{language} lost {-worst:.1f} points")
        return failures


def compare_languages(before: Checkpoint, after: Checkpoint, tests: Path | None) -> LanguageComparison:
    """Measure an encoder before and after it learnt a language, the last of its languages.

    Both run in the same way, so that nothing but the training makes a difference. The tests are the held-out pairs of
    the second, and files of `xsent.evaluation.translation.tatoeba`. Raises DataError if one cannot be read.
    """
    new = after.languages[-1]
    pairs = list(Corpus([after.validation] if after.validation.exists() else []))
    counts = Counter(pair.language for pair in pairs)
    old, now = (_score(checkpoint, after, tests) for checkpoint in (before, after))
    found = {name: old[name] for name in after.languages if name in old}
    sentences = list(dict.fromkeys(pair.english for pair in pairs))
    sentences += dict.fromkeys(pair.translation for pair in pairs if pair.language != new)
    return LanguageComparison(new, counts, found, now, len(sentences), *_unmoved(before, after, sentences))


def _score(checkpoint: Checkpoint, after: Checkpoint, tests: Path | None) -> dict[str, Scores]:
    held_out = Validation(after.validation, checkpoint.tokenizer) if after.validation.exists() else None
    p1 = held_out.measure(checkpoint.load_encoder())["p1"] if held_out else {}
    scores = {language: {"held_out": score} for language, score in p1.items()}
    if tests is not None:
        languages = languages_of(CheckpointEncoder(after), tests)
        found = tatoeba(CheckpointEncoder(checkpoint), tests, languages).scores
        for language, score in found.items():
            scores.setdefault(language, {}).update((way, score[way]) for way in DIRECTIONS)
    return scores


def _unmoved(before: Checkpoint, after: Checkpoint, sentences: list[str]) -> tuple[int, int]:
    """How many sentences are cut as before, and how many of those have the same vector."""
    cuts = [checkpoint.load_tokenizer().encode(sentences) for checkpoint in (before, after)]
    # Both encode the same sentences: the last bits of a vector depend on the other sentences of its batch.
    same = [sentence for sentence, old, new in zip(sentences, *cuts, strict=True) if old == new]
    vectors = [CheckpointEncoder(checkpoint).encode(same) for checkpoint in (before, after)]
    return len(same), int((vectors[0] == vectors[1]).all(axis=1).sum())
