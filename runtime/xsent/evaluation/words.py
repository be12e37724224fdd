"""Words: is the nearest to a word its other form or its translation, or some other word?

People type one word. Among the others are near traps: the same kind of thing, what looks alike, "OK".
"""

from collections.abc import Sequence
from pathlib import Path

from xsent.cli.terminal import Progress
from xsent.errors import DataError
from xsent.evaluation.contrasts import SAME
from xsent.evaluation.result import Evaluation, by_kind, choose_of_file
from xsent.evaluation.sts import row_cosines
from xsent.files.text import read_lines
from xsent.open_model import SupportsEncode
from xsent.similarity import cosine_similarity

FIELDS = {"form": 5, "translation": 5, "other": 3}  # of a line, by its kind
LAYOUT = "'form' or 'translation', language, word, partner's language, partner; or 'other', language, word"
NOTE = "P@1: per cent of words that lie nearer to their partner than to all others; equally near is not found."


def words(encoder: SupportsEncode, file: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Measure an encoder on a file of words, see `LAYOUT`: a row for each kind of partner, a column a language.

    The others are those of the partner's language, which must be wanted too; English always is.
    """
    lines = _read(file)
    wanted = choose_of_file(encoder, {line[1] for line in lines if line[0] != "other"}, languages, file)
    parts: dict[tuple[str, str, str], list[list[str]]] = {}  # of the file, by kind and both languages
    others: dict[str, list[str]] = {}  # by language
    for line in lines:
        kind, language, word = line[:3]
        if kind == "other":
            others.setdefault(language, []).append(word)
        elif language in wanted and line[3] in {*wanted, "en"}:
            parts.setdefault((kind, language, line[3]), []).append(line)
    if alone := sorted({code for _, _, code in parts} - set(others)):
        raise DataError(f"{file}: has no others in {', '.join(alone)}; expected with tabs between: {LAYOUT}")
    with Progress("languages and kinds", len(parts)) as progress:
        right = [(key[0], key[1], _right(encoder, parts[key], others[key[2]])) for key in progress.count(parts)]
    return by_kind(right, "words", NOTE)


def _read(file: str | Path) -> list[list[str]]:
    lines = [line.split("\t") for line in read_lines(file)]
    for number, line in enumerate(lines, 1):
        if len(line) != FIELDS.get(line[0]) or not all(line):
            given = f"{line[0]!r} and {len(line) - 1} more fields"
            raise DataError(f"{file}:{number}: {given}; expected with tabs between, none empty: {LAYOUT}")
    return lines


def _right(encoder: SupportsEncode, lines: Sequence[Sequence[str]], others: list[str]) -> list[float]:
    """For each word 1 if its partner lies nearest, 0 if one of the others is as near."""
    queries, partners = (encoder.encode([line[column] for line in lines]) for column in (2, 4))
    nearest = cosine_similarity(queries, encoder.encode(others)).max(axis=1)
    found: list[float] = (row_cosines(queries, partners) > nearest + SAME).astype(float).tolist()
    return found
