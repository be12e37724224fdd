"""Held-out pairs, which an export is calibrated and measured on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from xsent.errors import DataError
from xsent.files.text import read_fields
from xsent_train.checkpoint import Checkpoint

T = TypeVar("T")
Pairs = Mapping[str, Sequence[tuple[str, str]]]  # language to (English, translation)

MAX_PAIRS = 1000  # a language; one more wrong answer is then 0.05 points of P@1


def held_out_pairs(checkpoint: Checkpoint, gate_data: Path | None) -> Pairs:
    """The pairs to measure an export on, from a file or the checkpoint; raises DataError if a language has none."""
    file = gate_data or checkpoint.validation
    if gate_data is None and not file.is_file():
        raise DataError(
            f"{checkpoint.given}: has no held-out pairs to measure with; name a file of pairs by --gate-data, lines of "
            "source, language, English, translation with tabs between, made of such as tatoeba.org offers"
        )
    pairs = read_pairs(file)
    if missing := [language for language in checkpoint.languages if language != "en" and language not in pairs]:
        raise DataError(
            f"{file}: no pairs in {', '.join(missing)}, but in {', '.join(pairs)}; every language has to be measured"
        )
    kept = {language: pairs[language] for language in pairs if language in checkpoint.languages}
    if not kept:
        raise DataError(f"{file}: no pairs in {', '.join(checkpoint.languages)}")
    return kept


def read_pairs(path: Path, limit: int = MAX_PAIRS) -> Pairs:
    """Read pairs (source, language, English, translation) by language, at most `limit` each, spread over the file.

    Pairs with an empty side, or a side that an earlier pair of the language has, are dropped. Raises DataError if no
    pair is left.
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
    return {language: evenly_spaced(pairs[language], limit) for language in sorted(pairs)}


def evenly_spaced(items: Sequence[T], limit: int) -> list[T]:
    """At most `limit` items, evenly spaced over all of them."""
    count = min(limit, len(items))
    return [items[i * len(items) // count] for i in range(count)]
