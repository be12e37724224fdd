"""What processes that use one bundle hold alone, and what they share.

python -m xsent_bench.experiments.sharing BUNDLE [PROCESSES] [BACKEND,...]
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier

import psutil  # type: ignore[import-untyped]  # it has no types

from xsent.bundle import TABLE, Bundle
from xsent.cli.options import split_names
from xsent.cli.terminal import one_line_errors
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent_bench.results import Measurement
from xsent_bench.tables import listing
from xsent_bench.texts import sentences

SENTENCES = 200
PATIENCE = 600  # seconds that a process waits for the others

_all_here: Barrier  # in a process


def holdings(bundle: Path, backend: str, processes: int) -> list[dict[str, float]]:
    """What each of so many processes holds in MiB while all have the bundle open and have encoded the same sentences.

    "private" and "shared" of all its memory, "share" of the whole that is its part; "table", what it has mapped of the
    table, "table_private", "table_share". A DataError says that their vectors differ.
    """
    spawning = get_context("spawn")  # as programs that know nothing of each other
    with spawning.Pool(processes, _meet, [spawning.Barrier(processes)]) as pool:
        held = pool.map(partial(_hold, bundle, backend), range(processes), chunksize=1)
    if len({vectors for vectors, _ in held}) > 1:
        raise DataError(f"{bundle}: the processes gave the same sentences different vectors ({backend})")
    return [mebibytes for _, mebibytes in held]


def sharing(backend: str, held: Sequence[Mapping[str, float]]) -> Measurement:
    """The most that one process holds, and what all hold together, each shared page counted once."""
    most = {name: max(one[name] for one in held) for name in ("private", "shared", "table", "table_private")}
    together = {"of_all": sum(one["share"] for one in held), "table_of_all": sum(one["table_share"] for one in held)}
    figures = {f"{name}_mib": mebibytes for name, mebibytes in (most | together).items()}
    return Measurement("sharing", {"backend": backend, "processes": len(held)}, figures)


def _meet(barrier: Barrier) -> None:
    global _all_here
    _all_here = barrier


def _hold(bundle: Path, backend: str, _: int) -> tuple[bytes, dict[str, float]]:
    encoder = SentenceEncoder(bundle, backend=backend, threads=1)
    vectors = encoder.encode(sentences(SENTENCES))
    _all_here.wait(PATIENCE)
    process, table = psutil.Process(), str((bundle / TABLE).resolve())
    whole = process.memory_full_info()
    maps = [part for part in process.memory_maps() if part.path == table]
    _all_here.wait(PATIENCE)  # nobody goes before all have looked
    held = {"private": whole.uss, "shared": whole.rss - whole.uss, "share": whole.pss}
    held |= {"table": sum(part.rss for part in maps), "table_share": sum(part.pss for part in maps)}
    held["table_private"] = sum(part.private_clean + part.private_dirty for part in maps)
    return vectors.tobytes(), {name: count / 2**20 for name, count in held.items()}


@one_line_errors()
def main(bundle: str, processes: str = "8", backends: str = "onnx,numpy") -> None:
    """Print what was measured, in Markdown."""
    path = Bundle.open(bundle).path  # a mistake is said here, not by each process
    found = [sharing(name, holdings(path, name, int(processes))) for name in split_names(backends)]
    sys.stdout.write(f"{listing(found).markdown()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
