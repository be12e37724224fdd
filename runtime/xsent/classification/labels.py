"""Labels as people write them: spellings that look alike are one label."""

from collections import Counter
from collections.abc import Iterable, Sequence

from xsent.clean import remove_format
from xsent.errors import warn
from xsent.words import folded, normalize

UNKNOWN = "unknown"  # printed where no label fits

_NAMED = 8  # most labels to name in a warning, and most spellings of each


def label_key(label: str) -> str:
    """What all spellings of a label share: its text without case, invisible characters and compatibility forms."""
    return " ".join(folded(label).split())


def unify_labels(labels: Sequence[str]) -> list[str]:
    """One name for all spellings of a label, for each of these labels.

    Spellings that differ only in case, white space, invisible characters or Unicode's normal form are one label. Its
    name is the most frequent spelling (the first of equally frequent ones), with single spaces and in NFC. A warning
    names the spellings that were merged.
    """
    spellings: dict[str, Counter[str]] = {}
    keys = {label: label_key(label) for label in dict.fromkeys(labels)}
    for label in labels:
        spellings.setdefault(keys[label], Counter())[label] += 1
    names = {key: _tidied(found.most_common(1)[0][0]) for key, found in spellings.items()}
    merged = [f"{names[key]!r} (from {_shown(found)})" for key, found in spellings.items() if len(found) > 1]
    if merged:
        more = f"; and {len(merged) - _NAMED:,} more" if len(merged) > _NAMED else ""
        alike = "labels that differ only in case, white space or invisible characters are one label"
        warn(f"{alike}: {'; '.join(merged[:_NAMED])}{more}")
    return [names[keys[label]] for label in labels]


def _tidied(label: str) -> str:
    return " ".join(normalize("NFC", remove_format(label)).split())


def _shown(spellings: Iterable[str]) -> str:
    """Spellings for a message; escaped where they look the same."""
    listed = [*spellings][:_NAMED]
    look_alike = len({normalize("NFC", one) for one in listed}) < len(listed)
    return ", ".join(map(ascii if look_alike else repr, listed))
