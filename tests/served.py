"""`xsent serve` in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands import start

EMBED = "/v1/embeddings"
NOT_HTTP = "WARNING:  Invalid HTTP request received.\n"  # uvicorn's, for each


@contextmanager
def serving(bundle: Path, *options: object, before: str = "pass") -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The address and the process of a server with these options, after a statement there."""
    with start("serve", "--no-access-log", "--port", 0, "--model", bundle, *options, before=before) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline().decode()
            assert " on http://127.0.0.1:" in said, said
            yield said.split(" on ")[1].split(";")[0], process
        finally:
            process.terminate()
            err = process.stderr.read().decode().replace(NOT_HTTP, "")
        assert (process.wait(60), err) == (0, "")  # never a traceback, whatever was sent
