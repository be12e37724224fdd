"""What processes with the same open bundle hold alone, and what they share; results: docs/lab/endurance.md."""

import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import psutil  # type: ignore[import-untyped]  # it has no types
import typer

from xsent.bundle import TABLE, Bundle
from xsent.cli.options import split_names
from xsent.cli.terminal import one_line_errors
from xsent.errors import DataError
from xsent_bench.report import listing
from xsent_bench.results import Measurement

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

# A process of `sharing`: it encodes, prints a digest of the vectors, and waits until its standard input is closed.
SHARER = """
import sys
from hashlib import sha256
from xsent import SentenceEncoder
from xsent_bench.texts import sentences
encoder = SentenceEncoder(sys.argv[1], backend=sys.argv[2], threads=1)
print(sha256(encoder.encode(sentences(200)).tobytes()).hexdigest(), flush=True)
sys.stdin.read()
"""


@app.command()
@one_line_errors()
def sharing(
    bundle: Annotated[Path, typer.Argument(help="A bundle.")], processes: int = 8, backends: str = "onnx,numpy"
) -> None:
    """Measure what processes with the same open bundle hold alone, and what they share."""
    path = Bundle.open(bundle).path  # fails here, not in each process
    found = [measure_sharing(path, backend, processes) for backend in split_names(backends)]
    typer.echo(listing(found).markdown())


def measure_sharing(bundle: Path, backend: str, processes: int) -> Measurement:
    """The most MiB that one process holds, and those of all together, with each shared page counted once.

    Raises DataError if the processes give different vectors.
    """
    with ExitStack() as stack:
        command = [sys.executable, "-c", SHARER, str(bundle), backend]
        start = partial(subprocess.Popen[bytes], command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        children = [stack.enter_context(start()) for _ in range(processes)]
        digests = {child.stdout.readline() for child in children if child.stdout}  # after that all have encoded
        if not all(digests):
            raise DataError(f"{bundle}: a process ended before it had encoded ({backend})")
        held = [holdings(psutil.Process(child.pid), (bundle / TABLE).resolve()) for child in children]
    if len(digests) > 1:
        raise DataError(f"{bundle}: the processes gave the same sentences different vectors ({backend})")
    most = {name: max(one[name] for one in held) for name in ("private", "shared", "table", "table_private")}
    together = {"of_all": sum(one["share"] for one in held), "table_of_all": sum(one["table_share"] for one in held)}
    figures = {f"{name}_mib": count / 2**20 for name, count in {**most, **together}.items()}
    return Measurement("sharing", {"backend": backend, "processes": processes}, figures)


def holdings(process: psutil.Process, table: Path) -> dict[str, int]:
    """The bytes of all memory of a process, and of what it has mapped of the table."""
    whole = process.memory_full_info()
    maps = [mapped for mapped in process.memory_maps() if mapped.path == str(table)]
    return {
        "private": whole.uss,
        "shared": whole.rss - whole.uss,
        "share": whole.pss,
        "table": sum(mapped.rss for mapped in maps),
        "table_share": sum(mapped.pss for mapped in maps),
        "table_private": sum(mapped.private_clean + mapped.private_dirty for mapped in maps),
    }


if __name__ == "__main__":
    app()
