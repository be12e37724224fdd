"""The held-out pairs that an export is measured with."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from xsent.errors import DataError
from xsent.lines import read_fields
from xsent.train.checkpoint import Checkpoint

T = TypeVar("T")

MAX_PAIRS = 1000  # a language; one more wrong answer is then 0.05 points of P@1

Pairs = Mapping[str, Sequence[tuple[str, str]]]  # language to (English, translation)


def held_out_pairs(checkpoint: Checkpoint, gate_data: Path | None) -> Pairs:
    """The pairs to measure an export with: those of a file, else its own; a DataError where a language has none."""
    if gate_data is None and not checkpoint.validation.is_file():
        raise DataError(
            f"{checkpoint.given}: has no held-out pairs to measure with; name a file of pairs by --gate-data"
        )
    file = gate_data or checkpoint.validation
    pairs = read_pairs(file)
    missing = [language for language in checkpoint.languages if language != "en" and language not in pairs]
    if missing:
        raise DataError(
            f"{file}: no pairs in {', '.join(missing)}, but in {', '.join(pairs)}; every language has to be measured"
        )
    kept = {language: pairs[language] for language in pairs if language in checkpoint.languages}
    if not kept:
        raise DataError(f"{file}: no pairs in {', '.join(checkpoint.languages)}")
    return kept


def read_pairs(path: Path, limit: int = MAX_PAIRS) -> Pairs:
    """Read pairs (source, language, English, translation) by language, at most `limit` each, spread over the file.

    Within a language each sentence is kept once, on either side: a search among equals has no right answer. Neither has
    one for nothing: a pair with a blank side is left out.

    Raises:
        DataError: The file is missing, damaged or empty.
    """
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    seen: set[tuple[str, str, str]] = set()
    for _, language, english, translation in read_fields(path, 4, "source, language, English, translation"):
        sides = {(language, "en", english), (language, "xx", translation)}
        if english.strip() and translation.strip() and not sides & seen:
            seen |= sides
            pairs[language].append((english, translation))
    if not pairs:
        raise DataError(f"{path}: empty; expected held-out pairs to measure the export with")
    return {language: spread(pairs[language], limit) for language in sorted(pairs)}


def spread(items: Sequence[T], limit: int) -> list[T]:
    """At most so many of some items, from all over them."""
    count = min(limit, len(items))
    return [items[i * len(items) // count] for i in range(count)]
