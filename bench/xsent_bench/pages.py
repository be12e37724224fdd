"""The tables in pages that are made from the results of a report, so that no figure stands twice by hand.

A page has `<!-- table NAME -->` before a table, and `<!-- end -->` after it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from xsent.classification.topics import ENGLISH
from xsent.errors import DataError
from xsent.files.atomic import atomic_file
from xsent_bench import OURS
from xsent_bench.plots import USUAL
from xsent_bench.report import Table, frontiers
from xsent_bench.results import HEADINGS, Axis, Measurement, Results, order, shown, system_name
from xsent_bench.run import RANDOM, RESULTS

PLACE = re.compile(r"(?<=<!-- table )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
TOKENS = 32  # of the sentences whose time the tables have


def write_tables(report: Path, pages: Sequence[Path]) -> None:
    """Write the tables of pages again. Raises DataError if a page has none, or one that the results cannot fill."""
    results = Results.read(report / RESULTS)
    texts = {page: fill(page.read_text(encoding="utf-8"), results, str(page)) for page in pages}
    for page, text in texts.items():
        with atomic_file(page) as file:
            file.write(text.encode())


def fill(text: str, results: Results, page: str) -> str:
    """The text of a page with its tables."""

    def table(place: re.Match[str]) -> str:
        if place[1] not in TABLES:
            raise DataError(f"{page}: no table {place[1]}; there are {', '.join(TABLES)}")
        try:
            return f"{place[1]}{place[2]}\n{TABLES[place[1]](results)}\n\n"
        except (LookupError, ValueError) as error:
            raise DataError(f"{page}: the results lack figures of the table {place[1]}; measure with --eval") from error

    filled, count = PLACE.subn(table, text)
    if not count:
        raise DataError(f"{page}: no table; expected <!-- table NAME --> before one and <!-- end --> after it")
    return filled


def all_depths(results: Results) -> list[Axis]:
    """The depths, the most layers first."""
    return sorted({m.axes["layers"] for m in results.of("process")}, key=order, reverse=True)


def systems(results: Results) -> str:
    """All systems with their weights; scores that there are in English too stand before those of the others."""
    columns = {
        "xx_en": "translations found, %",
        "sklearn": "topics by scikit-learn, % (English / others)",
        "similarity": "similarity (English / others)",
        "ms_32_words": "one sentence, ms",
        "batched_per_second": "sentences/s",
        "mib_1000": "memory, MiB",
        "bytes": "size, MB",
    }
    rows = []
    for m in (m for m in results.compared() if RANDOM not in str(m.axes["model"])):
        name = system_name(m.axes)
        cells = [name if m.axes["system"] == OURS else f"{m.axes['model']} (`{name}`)"]
        for figure in columns:
            both = f"{shown(m, f'{figure}_en')} / {shown(m, figure)}"
            cells.append(both if f"{figure}_en" in HEADINGS else shown(m, figure))
        rows.append(cells)
    return Table(["model", *columns.values()], rows).markdown()


def frontier(results: Results) -> str:
    """Who is on the frontier."""
    return "\n".join(f"- {line[0].upper()}{line[1:]}" for line in frontiers(results.compared()))


def languages(results: Results) -> str:
    """The scores of all layers by language."""
    whole = {"system": OURS, "layers": all_depths(results)[0]}
    found = {m.axes["language"]: m for m in results.of("scores") if m.has(**whole)}
    english = found.pop(ENGLISH)
    names = {
        "xx_en": "found, to English",
        "en_xx": "found, from English",
        "flores": "errors in FLORES, to English",
        "topics": f"topics (English: {shown(english, 'topics')})",
        "similarity": f"similarity × 100 (English: {shown(english, 'similarity')})",
    }
    rows = [[name, *(shown(m, figure) for m in found.values())] for figure, name in names.items()]
    return Table(["", *map(str, found)], rows).markdown()


def layers(results: Results) -> str:
    """Scores and costs by layers."""
    scored = {m.axes["layers"]: m for m in results.compared() if m.axes["system"] == OURS}
    usual = {axis: USUAL[axis] for axis in ("precision", "backend")}
    headings = ["layers", "found, to English", "found in an index of all layers", "topics", "similarity × 100"]
    headings += ["time, ms", "sentences/s", "first vector, ms", "memory, MiB", "bundle, MB"]
    rows = []
    for depth in all_depths(results):
        cells = [shown(scored[depth], name) for name in ("xx_en", "across", "topics", "similarity")]
        latency = results.one("latency", layers=depth, tokens=TOKENS, **USUAL)
        cells += [shown(latency, name) for name in ("p50_ms", "sentences_per_second")]
        cells += [shown(results.one("process", layers=depth, **usual), name) for name in ("first_ms", "mib_1000")]
        cells.append(shown(results.one("size", layers=depth, precision=usual["precision"]), "bytes"))
        rows.append([str(depth), *cells])
    return Table(headings, rows).markdown()


def vectors(results: Results) -> str:
    """What vectors of fewer dimensions and other precisions find, and their bytes."""
    found: dict[Axis, dict[Axis, Measurement]] = {}
    for m in results.of("stored"):
        found.setdefault(m.axes["dimensions"], {})[m.axes["precision"]] = m
    [precisions, *_] = found.values()
    rows = []
    for dim, row in found.items():
        cells = [f"{int(m.figures['vector_size']):,}: {shown(m, 'xx_en')} / {shown(m, 'en_xx')}" for m in row.values()]
        rows.append([str(dim), *cells])
    return Table(["dimensions", *map(str, precisions)], rows).markdown()


def weights(results: Results) -> str:
    """All layers by the precision of their weights."""
    made_by = {"int8": "none: built in", "int4-table": "`--int4-table`", "float32": "`--fp32`, from a checkpoint"}
    deepest = all_depths(results)[0]
    rows = []
    for precision, option in made_by.items():
        usual = {**USUAL, "precision": precision, "layers": deepest}
        time = shown(results.one("latency", tokens=TOKENS, **usual), "p50_ms")
        mb = shown(results.one("size", layers=deepest, precision=precision), "bytes")
        rows.append([precision, time, mb, option])
    return Table(["weights", "time, ms", "bundle, MB", "option of `xsent-export`"], rows).markdown()


def backends(results: Results) -> str:
    """All layers in int8 by backend."""
    deepest = {"layers": all_depths(results)[0], "precision": "int8"}
    rows = []
    for backend in dict.fromkeys(m.axes["backend"] for m in results.of("process")):
        time = results.one("latency", tokens=TOKENS, threads=1, backend=backend, **deepest)
        process = results.one("process", backend=backend, **deepest)
        rows.append([f"`{backend}`", shown(time, "p50_ms"), shown(process, "first_ms"), shown(process, "mib_1000")])
    return Table(["`backend=`", "time, ms", "first vector, ms", "memory, MiB"], rows).markdown()


TABLES: Mapping[str, Callable[[Results], str]] = {
    make.__name__: make for make in (systems, frontier, languages, layers, vectors, weights, backends)
}
