"""Ours beside other systems, in turns, each turn in a fresh process."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from xsent.bench.bundles import Bundles
from xsent.bench.grid import memory, take_turns
from xsent.bench.machine import Watch, processor
from xsent.bench.peak import int8_peak, share_of_peak
from xsent.bench.peers.shapes import write_shape
from xsent.bench.peers.systems import BARE, OURS, SYSTEMS, System, choose
from xsent.bench.report.pages import markdown
from xsent.bench.report.sections import PEER, PEER_FIGURES, sections
from xsent.bench.results import Axis, Measurement, Results
from xsent.bench.turn import Task, Turn, run_turn
from xsent.bundle import Bundle
from xsent.errors import DataError, XsentError

ENCODES = ("sentences_per_second", "latency_ms")  # what a bare process does not
TOKENS = 32
REACHED = (
    f"A sentence of {TOKENS} tokens reaches {{:.0%}} of the {{:.0f}} GOP/s of a large 8-bit matrix product in ONNX "
    "Runtime on one thread; arithmetic counted for every layer on every token."
)


def measure(
    bundle: Path,
    work: Path,
    *,
    only: Sequence[str] = (),
    turns: int,
    number: int,
    note: Callable[[str], None],
    fail: Callable[[str], None],
) -> Iterator[Measurement]:
    """Compare a bundle with other systems, each in turns with so many sentences; Ctrl-C gives what was measured.

    Their models are kept in `work`, and used again. Of `SYSTEMS` those named run, or all; ours always. How each runs is
    noted; what cannot be measured is told, and left out of the turns after.
    """
    tasks, found = dict[str, Task](), dict[str, list[Turn]]()
    names, ours = choose(only), Bundle.open(bundle)
    try:
        for name in names:
            try:
                tasks[name] = Task(str(_prepare(SYSTEMS[name], ours, work)), name, sentences=number)
            except Exception as error:  # whatever a package raises that writes its model
                fail(f"{name}: {_reason(error)}")
        models, found = {name: task.folder for name, task in tasks.items()}, {name: [] for name in tasks}
        for _ in range(turns):
            take_turns(tasks, found, fail)
    finally:
        for name in (name for name, done in found.items() if done):
            note(f"{name}: {SYSTEMS[name].settings}.")
            yield _measurement(name, models[name], found[name])


def measure_peers(
    bundle: Path, work: Path, only: Sequence[str], turns: int, number: int, stream: int, command: str
) -> str:
    """Compare a bundle with other systems, see `measure`, and watch its memory over a stream; in Markdown."""
    results = Results(command)
    note, fail = results.notes.append, results.failures.append
    with Watch() as watch:
        results.measurements += measure(
            bundle, work, only=only, turns=turns, number=number, note=lambda text: note(PEER + text), fail=fail
        )
    if not results.of("peers", system=OURS):
        raise DataError(results.failures[0])
    if stream:
        ours = Bundle.open(bundle)
        axes: dict[str, Axis] = {"layers": ours.num_layers, "precision": ours.precision, "backend": "onnx"}
        results.measurements.append(memory(axes, run_turn(Task(str(bundle), stream=stream))))
    share, peak = share_of_peak(bundle, int8_peak, TOKENS)
    results.notes += [f"{turns} turns, {number:,} sentences.", REACHED.format(share, peak / 1e9), *watch.warnings()]
    parts = {part.title: part for part in sections(results)}
    shown = [parts[title] for title in ("Peers", "Memory", "To know", "Not measured") if title in parts]
    return markdown("Peers", f"`{command}` on {processor()}.", shown)


def _measurement(name: str, folder: str, turns: Sequence[Turn]) -> Measurement:
    """The medians over the turns of a system."""
    system = SYSTEMS[name]
    model = system.model or ("none" if name == BARE else Bundle.open(Path(folder)).name)
    figures = [figure for figure in PEER_FIGURES if name != BARE or figure not in ENCODES]
    by_turn = [{figure: vars(turn)[figure] for figure in figures} for turn in turns]
    return Measurement.of_turns("peers", {"system": system.name or name, "model": model}, by_turn)


def _prepare(system: System, ours: Bundle, work: Path) -> Path:
    """The folder of what a system runs."""
    if system.missing:
        raise ModuleNotFoundError(name=system.missing)
    if system.form == "given":
        return ours.path
    if system.form == "no layers":
        return Bundles(work, like=ours.path).path(0, "int8")
    return write_shape(system.model, system.form, ours.tokenizer_path, work)


def _reason(error: Exception) -> str:
    """An exception in one line for people."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'xsent[peers]'"
    text = " ".join(str(error).split())
    return text if isinstance(error, XsentError) else f"{type(error).__name__}: {text}"
