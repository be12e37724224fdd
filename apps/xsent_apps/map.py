"""A map of texts, whose nearby points have similar meanings, as a page in one file."""

import html
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent import (
    DataError,
    MissingExtraError,
    SentenceEncoder,
    cluster,
    name_clusters,
    nearest,
    strip_boilerplate,
    without_background,
)
from xsent.errors import require_extra, warn
from xsent.files.atomic import atomic_file
from xsent.files.tables import TextSource, read_rows
from xsent_apps.web.site import STATIC  # the map of `xsent web` uses the same scripts

CLUSTER = "cluster"
MOST = 20_000  # most points; of more texts, an evenly spaced sample is shown
NEIGHBOURS = 4  # shown for a text that the mouse points at
PAGE = Path(__file__).with_name("map.html")


@dataclass(frozen=True, repr=False)
class TextMap:
    """A map of texts; a notebook shows it."""

    title: str
    texts: Sequence[str]  #: texts that have a point
    places: NDArray[np.float32]  #: their points [n, 2]
    neighbours: Sequence[Sequence[int]]  #: the nearest texts of each
    colours: Mapping[str, Sequence[str]]  #: the group of each text, empty for none, by colouring
    total: int  #: number of texts, including those without a point

    @property
    def count(self) -> str:
        """The number of texts on the map."""
        of = "" if len(self.texts) == self.total else f" of {self.total:,}"
        return f"{len(self.texts):,}{of} texts"

    def save(self, path: str | Path) -> None:
        """Write the page; only its owner may read a new file, because it contains texts."""
        with atomic_file(Path(path), private=True) as file:
            file.write(self.page().encode())

    def page(self) -> str:
        """A page that needs no other file and no network."""
        data = {
            "count": self.count,
            "texts": self.texts,
            "places": np.round(self.places.astype(float), 3).tolist(),
            "neighbours": self.neighbours,
            "colourings": {name: _groups(of) for name, of in self.colours.items()},
        }
        parts = {
            "title": html.escape(self.title),
            "style": _shared("style.css", "panels.css"),
            # A single file has no modules to import, so the scripts are concatenated.
            "script": re.sub(r"^(import .*;|export )", "", _shared("dom.js", "view.js", "map.js"), flags=re.MULTILINE),
            "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c"),
        }
        return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], PAGE.read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        return f"TextMap({self.title!r}, {self.count})"

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 640px; border: 0"
        return (
            f'<iframe srcdoc="{html.escape(self.page())}" style="{style}" title="{html.escape(self.title)}"></iframe>'
        )


def map_texts(
    texts: Sequence[str],
    vectors: ArrayLike | None = None,
    *,
    by: Mapping[str, Sequence[str] | None] | None = None,
    title: str = "Map",
) -> TextMap:
    """Lay texts out by their meaning: with openTSNE if it is installed, otherwise by principal components.

    Args:
        texts: Texts in any language; empty ones have no point. Of more than 20,000, an evenly spaced sample is shown.
        vectors: Their vectors [n, D]; None encodes them with the built-in model.
        by: What to colour by, such as {"language": [...]}: the group of each text, empty for none. {"cluster": None}
            finds clusters; it is the default and needs scikit-learn.
        title: Title of the page.

    Example:
        >>> map_texts(NOTES, by={"language": ["en"] * len(NOTES)}).count
        '3 texts'
    """
    texts = list(texts)
    if vectors is None:
        vectors = SentenceEncoder().encode(strip_boilerplate(texts), on_long="split")
    given = np.asanyarray(vectors)
    _check_count("vectors", given, texts)
    found = {name: _clusters(given, texts) if of is None else [*of] for name, of in (by or {CLUSTER: None}).items()}
    for name, of in found.items():
        _check_count(name, of, texts)
    full = [row for row, text in enumerate(texts) if text.strip()]
    if not full:
        raise DataError("all texts are empty; expected some to map")
    rows = full[:: -(-len(full) // MOST)]
    points = without_background(given[rows], [texts[row] for row in rows])
    near, _ = nearest(points, points, NEIGHBOURS + 1)
    others = [[other for other in line if other != row][:NEIGHBOURS] for row, line in enumerate(near.tolist())]
    colours = {name: [of[row] for row in rows] for name, of in found.items()}
    return TextMap(title, [texts[row] for row in rows], _places(points), others, colours, len(texts))


def read_texts(texts: str, column: str | None, by: Sequence[str]) -> tuple[list[str], dict[str, list[str] | None]]:
    """The texts, and the fields of the columns to colour by; None if the clusters are still to be found."""
    columns = [name for name in by if name != CLUSTER]
    if column is None:
        if columns:
            raise ValueError(
                f"--by {columns[0]} names a column of a table; name the column of the texts, too: --column NAME"
            )
        return TextSource(texts).read(), {CLUSTER: None}
    if not (rows := [*read_rows(texts, [column, *columns])]):
        raise TextSource(texts, column).empty()
    read, *fields = map(list, zip(*rows, strict=True))
    named = dict(zip(columns, fields, strict=True))
    return read, {name: named.get(name) for name in by}


def _check_count(name: str, given: Sized, texts: Sized) -> None:
    if len(given) != len(texts):
        raise DataError(f"{name}: {len(given):,} for {len(texts):,} texts; expected one per text")


def _clusters(vectors: NDArray[Any], texts: Sequence[str]) -> list[str]:
    """The name of each text's cluster; clusters with the same name or without one also have a number."""
    found = cluster(vectors, texts=texts)
    names = [*map(str, name_clusters(found, texts))]
    several = {name for name, count in Counter(names).items() if count > 1 or not name}
    numbered = [f"{name} {number}".strip() if name in several else name for number, name in enumerate(names, 1)] + [""]
    return [numbered[label] for label in found.labels]


def _places(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Points [n, 2] of vectors [n, D]."""
    rest = points - points.mean(axis=0)
    _, axes = np.linalg.eigh(rest.T @ rest)
    places: NDArray[np.float32] = rest @ axes[:, :-3:-1]
    if len(points) < 10 or not places.any():  # no neighbourhoods
        return places
    try:
        with require_extra("map"):
            from openTSNE import TSNE
    except MissingExtraError as error:
        warn(f"the map shows principal components, in which groups overlap: {error}")
        return places
    start = places / places[:, 0].std() * 1e-4
    perplexity = min(30, (len(points) - 1) / 3)
    layout = TSNE(2, perplexity, metric="cosine", initialization=start, random_state=0, n_jobs=os.cpu_count())
    return np.asarray(layout.fit(rest), np.float32)


def _groups(of: Sequence[str]) -> tuple[list[str], list[int]]:
    """The groups, largest first, and the number of each text's group, -1 for none."""
    names = [name for name, _ in sorted(Counter(of).items(), key=lambda item: (-item[1], item[0])) if name]
    numbers = {name: number for number, name in enumerate(names)}
    return names, [numbers.get(name, -1) for name in of]


def _shared(*names: str) -> str:
    return "\n".join((STATIC / name).read_text(encoding="utf-8") for name in names)
