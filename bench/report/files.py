"""The files of a report."""

from pathlib import Path

from xsent.bench.ablation.plots import save
from xsent.bench.report.html import html_report
from xsent.bench.report.markdown import markdown_report
from xsent.bench.report.sections import sections
from xsent.bench.results import Results
from xsent.files import atomic_file

MARKDOWN, HTML, PLOTS = "report.md", "report.html", "plots"
TITLE = "What xsent costs"


def write_report(results: Results, folder: Path) -> Path:
    """Write `report.md`, `report.html` and `plots/`.

    Args:
        results: What was measured, all or a part of it.
        folder: Where to.

    Returns:
        The Markdown file.
    """
    (folder / PLOTS).mkdir(exist_ok=True)
    parts = sections(results)
    images = {}
    for plot in (plot for part in parts for plot in part.plots):
        path = folder / PLOTS / f"{plot.name}.png"
        save(plot.figure, path)
        images[plot.name] = path.read_bytes()
    machine = results.environment.get("processor")
    about = f"`{results.command}`{f' on {machine}' if machine else ''}."
    for name, text in (
        (MARKDOWN, markdown_report(TITLE, about, parts, PLOTS)),
        (HTML, html_report(TITLE, about, parts, images)),
    ):
        with atomic_file(folder / name) as file:
            file.write(text.encode())
    return folder / MARKDOWN
