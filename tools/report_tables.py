"""Rewrites the tables of pages from the results of a report of xsent-bench, so that no figure is copied by hand.

    python tools/report_tables.py docs/results/bench README.md docs/explanation/choosing.md

A page has `<!-- table NAME -->` before a table, and `<!-- end -->` after it.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from xsent.cli.terminal import markdown_table, one_line_errors
from xsent.errors import DataError
from xsent.evaluation.topics import ENGLISH
from xsent.files.atomic import atomic_file
from xsent_bench import OURS
from xsent_bench.plots import USUAL
from xsent_bench.results import RESULTS, Axis, Measurement, Results, order, shown, system_name

PLACE = re.compile(r"(?<=<!-- table )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
TOKENS = 32  # of the sentences whose time is in the tables


def write_tables(report: Path, pages: Sequence[Path]) -> None:
    """Rewrite the tables of pages. Raises DataError if a page has none, or one that the results cannot fill."""
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
    """The depths of our bundle, the most layers first."""
    return sorted({m.axes["layers"] for m in results.of("process") if m.has(system=OURS)}, key=order, reverse=True)


def measured_ones(names: Mapping[str, str], measured: Iterable[Measurement]) -> dict[str, str]:
    """The figures that were measured; an older report lacks newer ones."""
    known = {figure for one in measured for figure in one.figures}
    return {figure: name for figure, name in names.items() if figure in known}


def systems(results: Results) -> str:
    """The built-in model at three depths beside the fastest way to run each other cross-lingual model."""
    columns = {
        "xx_en": "translations found¹",
        "sklearn": "topics²",
        "similarity": "similarity³",
        "questions": "questions⁴",
        "ms_32_words": "ms per sentence⁵",
        "bytes": "MB",
    }
    compared = results.compared()
    columns = measured_ones(columns, compared)
    depths = {*all_depths(results)[:1], 2, 0}
    chosen = {f"**{system_name(m.axes)}**": m for m in compared if m.axes["layers"] in depths}
    others = [m for m in compared if m.axes["system"] != OURS and "xx_en" in m.figures]
    fastest_last = sorted(others, key=lambda m: m.figures["ms_32_words"], reverse=True)
    chosen |= {str(m.axes["model"]): m for m in fastest_last}
    rows = [[name, *(shown(m, figure) for figure in columns)] for name, m in chosen.items()]
    return markdown_table(["system", *columns.values()], rows)


def languages(results: Results) -> str:
    """The scores of all layers by language."""
    whole = {"system": OURS, "layers": all_depths(results)[0]}
    found = {m.axes["language"]: m for m in results.of("scores") if m.has(**whole)}
    english = found.pop(ENGLISH)
    names = {
        "xx_en": "found, to English",
        "en_xx": "found, from English",
        "flores": "errors in FLORES by cosine, to English, %",
        "topics": f"topics (English: {shown(english, 'topics')})",
        "similarity": f"similarity × 100 (English: {shown(english, 'similarity')})",
        "questions": f"questions, nDCG@10 (English: {shown(english, 'questions')})",
        "questions_to_en": "questions to English passages",
        "lost": f"lost to unknown, % (English: {shown(english, 'lost')})",
        "off_topic": f"off-topic found, % (English: {shown(english, 'off_topic')})",
    }
    names = measured_ones(names, found.values())
    rows = [[name, *(shown(m, figure) for m in found.values())] for figure, name in names.items()]
    return markdown_table(["measure", *map(str, found)], rows)


def layers(results: Results) -> str:
    """Scores and costs by layers."""
    scored = {m.axes["layers"]: m for m in results.compared() if m.axes["system"] == OURS}
    usual = {"system": OURS, **{axis: USUAL[axis] for axis in ("precision", "backend")}}
    quality = {
        "xx_en": "found, to English",
        "across": "found in an index of all layers",
        "topics": "topics",
        "similarity": "similarity × 100",
        "questions": "questions",
    }
    quality = measured_ones(quality, scored.values())
    headings = ["layers", *quality.values()]
    headings += ["time, ms", "sentences/s", "first vector, ms", "memory, MiB", "bundle, MB"]
    rows = []
    for depth in all_depths(results):
        cells = [shown(scored[depth], name) for name in quality]
        latency = results.one("latency", layers=depth, tokens=TOKENS, threads=1, **usual)
        cells += [shown(latency, name) for name in ("p50_ms", "sentences_per_second")]
        cells += [shown(results.one("process", layers=depth, **usual), name) for name in ("first_ms", "mib_1000")]
        cells.append(shown(results.one("size", system=OURS, layers=depth, precision=usual["precision"]), "bytes"))
        rows.append([str(depth), *cells])
    return markdown_table(headings, rows)


def vectors(results: Results) -> str:
    """Translations found with vectors of fewer dimensions and other precisions, and the bytes of a vector."""
    found: dict[Axis, dict[Axis, Measurement]] = {}
    for m in results.of("stored"):
        found.setdefault(m.axes["dimensions"], {})[m.axes["precision"]] = m
    [precisions, *_] = found.values()
    rows = []
    for dim, row in found.items():
        cells = [f"{int(m.figures['vector_size']):,}: {shown(m, 'xx_en')} / {shown(m, 'en_xx')}" for m in row.values()]
        rows.append([str(dim), *cells])
    return markdown_table(["dimensions", *map(str, precisions)], rows)


def weights(results: Results) -> str:
    """All layers by the precision of their weights."""
    made_by = {"int8": "none: built in", "int4-table": "`--int4-table`", "float32": "`--fp32`, from a checkpoint"}
    deepest = all_depths(results)[0]
    rows = []
    for precision, option in made_by.items():
        usual = {**USUAL, "system": OURS, "precision": precision, "layers": deepest}
        time = shown(results.one("latency", tokens=TOKENS, **usual), "p50_ms")
        mb = shown(results.one("size", system=OURS, layers=deepest, precision=precision), "bytes")
        rows.append([precision, time, mb, option])
    return markdown_table(["weights", "time, ms", "bundle, MB", "option of `xsent-export`"], rows)


def backends(results: Results) -> str:
    """All layers in int8 by backend."""
    deepest = {"system": OURS, "layers": all_depths(results)[0], "precision": "int8"}
    rows = []
    for backend in dict.fromkeys(m.axes["backend"] for m in results.of("process") if m.has(**deepest)):
        time = results.one("latency", tokens=TOKENS, threads=1, backend=backend, **deepest)
        process = results.one("process", backend=backend, **deepest)
        rows.append([f"`{backend}`", shown(time, "p50_ms"), shown(process, "first_ms"), shown(process, "mib_1000")])
    return markdown_table(["`backend=`", "time, ms", "first vector, ms", "memory, MiB"], rows)


def kept(results: Results) -> str:
    """The share of the ten nearest passages that stay when vectors are computed or stored in 8 bits, or as binary."""
    forms = {"bundle": "int8 model", "int8": "int8 vectors", "binary": "binary vectors"}
    rows = []
    for m in results.of("kept"):
        cells = [f"{shown(m, f'kept_{form}')} ({shown(m, f'kept_{form}_worst')})" for form in forms]
        rows.append([str(m.axes["layers"]), *cells])
    return markdown_table(["layers", *forms.values()], rows)


TABLES: Mapping[str, Callable[[Results], str]] = {
    make.__name__: make for make in (systems, languages, layers, vectors, kept, weights, backends)
}

if __name__ == "__main__":
    with one_line_errors():
        write_tables(Path(sys.argv[1]), [Path(page) for page in sys.argv[2:]])
