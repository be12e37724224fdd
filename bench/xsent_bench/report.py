"""The report of a run as a folder: Markdown with a section for each group of figures, and its plots.

The tables of pages are also filled from the results of a report, so no figure is copied by hand. A page has
`<!-- table NAME -->` before a table, and `<!-- end -->` after it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from xsent.cli.terminal import markdown_table
from xsent.errors import DataError
from xsent.evaluation.topics import ENGLISH
from xsent.files.atomic import atomic_file
from xsent_bench import OURS, plots
from xsent_bench.plots import TOKENS, USUAL, Plot
from xsent_bench.results import (
    NONE,
    RESULTS,
    Axis,
    Measurement,
    Results,
    heading,
    number,
    order,
    shown,
    system_name,
    systems_in,
)
from xsent_bench.systems import SYSTEMS

SYSTEMS_TEXT = (
    "Every turn is a fresh process, and the systems take turns; the figures are medians over the turns, on one thread. "
    "All encode the same sentences in four languages: single ones of 8, 32 or 128 words, and sentences of realistic "
    "lengths, one by one and in the fastest batches. Scores are means over the languages other than English, in per "
    "cent: translations found (Tatoeba) to and from English, errors in FLORES to English, topics (SIB-200) by heads "
    "trained in English, xsent's and one of scikit-learn, similarity (STS-B), and questions that find their passage "
    "(nDCG@10)."
)

PLACE = re.compile(r"(?<=<!-- table )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

Measured = Sequence[Measurement]


@dataclass(frozen=True)
class Section:
    """A section of a report."""

    title: str
    text: str = ""  # how to read it
    points: Sequence[str] = ()
    table: str = ""  # in Markdown
    plots: Sequence[Plot] = ()


def write_report(results: Results, folder: Path) -> Path:
    """Write `report.md` and `plots/` of a run, finished or not; returns the path of `report.md`."""
    machine = results.environment.get("processor")
    about = f"`{results.command}`{f' on {machine}' if machine else ''}."
    return write_pages("What xsent costs", about, sections(results), folder)


def write_pages(title: str, about: str, sections: Sequence[Section], folder: Path, name: str = "report") -> Path:
    """Write a Markdown file and its `plots/`, if any; returns the path of the file."""
    for plot in (plot for section in sections for plot in section.plots):
        (folder / "plots").mkdir(exist_ok=True)
        image = BytesIO()
        plot.figure.savefig(image, format="png", dpi=120)
        with atomic_file(folder / "plots" / f"{plot.name}.png") as file:
            file.write(image.getvalue())
    lines = [f"# {title}", _escaped(about)]
    for section in sections:
        points = "\n".join(f"- {_escaped(point)}" for point in section.points)
        lines += [f"## {section.title}", _escaped(section.text), points, section.table]
        lines += [f"![{plot.title}](plots/{plot.name}.png)" for plot in section.plots]
    report = folder / f"{name}.md"
    with atomic_file(report) as file:
        file.write(("\n\n".join(filter(None, lines)) + "\n").encode())
    return report


def _escaped(text: str) -> str:
    """Text with escaped angle brackets, except in `code`: messages of other programs may contain some."""
    pieces = text.split("`")
    pieces[::2] = [escape(piece, quote=False) for piece in pieces[::2]]
    return "`".join(pieces)


def sections(results: Results) -> list[Section]:
    """The sections of a report that are not empty."""
    machine = {heading(name): in_words(value) for name, value in results.environment.items()}
    compared = results.compared()
    names = dict.fromkeys(str(m.axes["system"]) for m in compared)
    points = [f"{name}: {SYSTEMS.get(name, SYSTEMS[OURS]).how}." for name in names]  # other names are bundles
    table, pictures = listing(compared) if compared else "", drawn(compared, plots.quality_by_time)
    found = [
        Section("Notes", points=results.notes),
        Section("Systems", SYSTEMS_TEXT, points, table, pictures),
        Section("Machine", points=[f"{name}: {text}" for name, text in machine.items() if text]),
    ]
    for group, title, text, make_table, *draw in GROUPS:
        if measured := results.of(group):
            found.append(Section(title, text, (), make_table(measured), drawn(measured, *draw)))
    found.append(Section("Not measured", points=results.failures))
    return [section for section in found if section.points or section.table]


def drawn(measured: Measured, *draw: Callable[[Measured], Plot | None]) -> list[Plot]:
    """Plots for which there is data."""
    return [plot for one in draw if (plot := one(measured))]


def in_words(value: object) -> str:
    """A value of the environment in words."""
    if isinstance(value, Mapping):
        names = {name: heading(name) if name.islower() else name for name in value}
        return ", ".join(f"{names[name]} {in_words(inner)}" for name, inner in value.items())
    return number(value) if isinstance(value, float) else str(value)


def listing(measurements: Measured) -> str:
    """A table with one row per measurement, one column per figure; the axes name the row."""
    figures = list(dict.fromkeys(figure for m in measurements for figure in m.figures))
    axes = naming_axes(measurements)
    rows = [[str(m.axes.get(a, NONE)) for a in axes] + [shown(m, figure) for figure in figures] for m in measurements]
    return markdown_table([*axes, *map(heading, figures)], rows)


def naming_axes(measurements: Measured) -> list[str]:
    """The axes that name the rows of a table: the system only where there are several."""
    alone = len(systems_in(measurements)) == 1
    return [
        axis for axis in dict.fromkeys(axis for m in measurements for axis in m.axes) if axis != "system" or not alone
    ]


def by_tokens(measurements: Measured, *figures: str) -> str:
    """A table with one column per length, one row per combination of the other axes; slashes separate the figures."""
    lengths = sorted({m.axes["tokens"] for m in measurements}, key=order)
    axes = [axis for axis in naming_axes(measurements) if axis != "tokens"]
    rows = dict[tuple[str, ...], dict[Axis, str]]()
    for m in measurements:
        row = rows.setdefault(tuple(str(m.axes[axis]) for axis in axes), {})
        row[m.axes["tokens"]] = " / ".join(shown(m, figure) for figure in figures)
    cells = [[*others, *(row.get(tokens, NONE) for tokens in lengths)] for others, row in rows.items()]
    return markdown_table([*axes, *(f"{tokens} tokens" for tokens in lengths)], cells)


def on_fewest_threads(measured: Measured) -> Measured:
    """The latencies on the fewest threads: one sentence never uses more than one."""
    fewest = min(int(m.axes["threads"]) for m in measured)
    return [m for m in measured if m.axes["threads"] == fewest]


GROUPS: Sequence[tuple[Any, ...]] = (  # group, title, text, function of its table, functions of its plots
    (
        "latency",
        "Latency",
        "Milliseconds per sentence, tokenisation included: median / 95th / 99th percentile; the last two need 20 and "
        "100 sentences.",
        lambda measured: by_tokens(on_fewest_threads(measured), "p50_ms", "p95_ms", "p99_ms"),
        lambda measured: plots.latency_by_layers(on_fewest_threads(measured)),
    ),
    (
        "latency",
        "Throughput",
        "Sentences per second / tokens per second, by the tokens of a sentence. Each thread encodes its own sentences. "
        "Without layers the interpreter is the limit, so the default there is one thread.",
        lambda measured: by_tokens(measured, "sentences_per_second", "tokens_per_second"),
        plots.throughput_by_length,
    ),
    (
        "process",
        "Start and memory",
        "The first vector is timed from the start of the process, with all files in the system's cache. Memory is "
        "resident memory of a fresh process, by the number of sentences it has encoded; the peak is over all timed "
        "sentences. It includes the interpreter, its libraries and the mapped pages of the model. The sentences have "
        "few different words: real text maps more of the table.",
        listing,
        plots.memory_by_layers,
    ),
    (
        "size",
        "Size on the disk",
        "Megabytes (1,000,000 bytes) of a bundle with this last depth. A bundle holds its layers once, with a small "
        "graph for each depth. The row with the most layers is the whole bundle; `xsent-export --layers` writes the "
        "others.",
        listing,
    ),
    ("scores", "Scores by language", "As in the table of systems, by language.", listing),
    (
        "stored",
        "Dimensions and precision of vectors",
        "Tatoeba with all layers of the first bundle, and vectors cut and rounded as they are stored.",
        listing,
    ),
    (
        "kept",
        "What 8 bits change in results",
        "Of the ten passages nearest to a question, the share that stay among the ten with the first bundle: when it "
        "is computed in int8 and not in float32 with the same weights, and when its vectors are stored as int8 or "
        "binary and not as float32. The mean of all languages, and the worst language.",
        listing,
    ),
)


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
        if "<!-- table " in place[0]:
            raise DataError(f"{page}: the table {place[1]} has no <!-- end -->; add it after the table")
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
