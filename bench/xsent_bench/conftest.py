"""How pytest-benchmark reports our benchmarks: by length, with the machine and the memory, and one table of all."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from xsent.cli.terminal import align_cells
from xsent_bench.machine import environment
from xsent_bench.results import NONE, number, system_name

COLUMNS = ["median", "iqr", "rounds"]  # of the tables; all of them would be wider than a terminal
SUMMED = {"first_ms": "first vector, ms", "mib_1000": "MiB"}  # of a fresh process, in the table of all
TITLE = "Milliseconds per sentence by tokens, on one thread; memory after 1,000 sentences"

Rows = dict[tuple[str, int], dict[int | str, str]]  # by model and depth, then by tokens or what `SUMMED` has
ROWS = pytest.StashKey[Rows]()


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Add the report's facts about the machine, see `environment`."""
    machine_info["xsent"] = environment()


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_group_stats(
    benchmarks: Sequence[dict[str, Any]], group_by: str
) -> list[tuple[str, list[dict[str, Any]]]] | None:
    """Leave the groups in the order of measuring, which is by length; by letter, 128 tokens come before 16."""
    if group_by != "group":
        return None
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in benchmarks:
        groups.setdefault(one["group"], []).append(one)
    return list(groups.items())


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """Show only some columns, unless others were asked for. Before, the session of pytest-benchmark may not exist."""
    session: Any = config.pluginmanager.get_plugin("pytest-benchmark")
    if session and not config.getoption("benchmark_columns"):
        session.columns = COLUMNS
        if config.getoption("benchmark_sort") == "min":  # the default, which is not shown
            session.sort = "fullname"  # by layers
    config.stash[ROWS] = {}


@pytest.fixture(autouse=True)
def described(request: pytest.FixtureRequest, system: str, layers: int, process: dict[str, float]) -> Iterator[None]:
    """Add what was measured, with the start and the memory of a fresh process, to the JSON and to the table of all."""
    benchmark = request.getfixturevalue("benchmark")
    benchmark.extra_info.update({"system": system, "layers": layers, **process})
    yield
    tokens = request.node.callspec.params.get("tokens")
    if tokens and benchmark.stats:
        row = request.config.stash[ROWS].setdefault((system, layers), {})
        row[tokens] = number(1000 * benchmark.stats.stats.median)
        row |= {name: number(process[figure]) for figure, name in SUMMED.items()}


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one table of all models, depths and lengths."""
    if rows := config.stash.get(ROWS, {}):
        lengths = sorted({tokens for row in rows.values() for tokens in row if isinstance(tokens, int)})
        columns: list[int | str] = [*lengths, *SUMMED.values()]
        lines = [["", *map(str, columns)]]
        for (system, layers), row in sorted(rows.items()):
            name = system_name({"system": system, "layers": layers})
            lines.append([name, *(row.get(column, NONE) for column in columns)])
        terminalreporter.section(TITLE)
        terminalreporter.write_line(align_cells(lines, range(1, len(columns) + 1)))
