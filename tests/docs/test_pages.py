"""Every page can be followed from top to bottom, in one shell and one new folder, offline.

Blocks of shell run as they are, in a terminal; those of `console` print what they show. Each block of Python prints
what the comments behind `print` say; those that follow each other run in one process, as modules that know nothing of
each other.
The tables below name what does not run, with the reason; `test_pages_commands.py` parses those commands.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from contextlib import suppress
from difflib import ndiff
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import write_files, write_lines
from conftest import sentences
from pages import PAGES, ROOT, Block, blocks, is_shown

import xsent
from xsent.bundle import Bundle, builtin_path

# Beginnings of commands that are not run, by the reason.
NOT_RUN_REASONS = {
    "the tests have an environment": ["pip install", "python3 -m venv"],
    "the machine stays as it is": ["sudo", "openssl"],
    "the tests and checks themselves": ["ruff", "mypy", "pytest"],
    "hours or minutes; the tests of these rooms run them": ["xsent-train", "xsent-export", "xsent-bench"],
    "minutes; tests/bench runs it": ["python bench/experiments"],
    "the test sets are not in the repository": ["xsent evaluate"],
    "waits for a browser; the tests of the page use one": ["xsent web --open"],
    "needs the model of this page; test_tiny.py makes it": ["xsent similarity --model runs/tiny-model"],
    "not in the packages": ["llama-server", "ollama", "podman", "docker"],
    "Ray takes 20 seconds to start; test_ray.py starts it": ["python -m xsent_apps.examples.ray_vectors"],
    "measures for seconds; test_doctor.py runs it": ["xsent doctor"],
}
NOT_RUN = [command for commands in NOT_RUN_REASONS.values() for command in commands]
# Text in blocks of Python that are only parsed, by the reason.
NOT_RUN_PYTHON = {
    'space="all-MiniLM-L6-v2"': "opens an index that is there already; test_all_minilm.py makes one",
    "specific_model_path=": "reads an export; test_sentence_transformers.py makes one",
    '"phone/text.onnx"': "reads an export; test_phone.py makes one",
    "mteb.get_tasks(": "downloads",
    'tune("builtin"': "trains for minutes; test_tune.py tunes a small model",
    "spark.read": "needs a cluster",
}
# Pages that use large libraries of other people.
OF_OTHERS = tuple(
    f"docs/{page}.md" for page in ("guides/cluster", "guides/integrations", "guides/scale", "tutorials/your-own-data")
)
# Files that the pages expect; the folder is the reader's home too.
FILES = {
    "tickets.tsv": (ROOT / "bench/tickets.tsv").read_text(encoding="utf-8"),
    "sentences.txt": "".join(f"{sentence}\n" for sentence in sentences("en")),
    "notes.txt": "The meeting is on Friday.\nDas Treffen ist am Freitag.\nLe chat a faim.\n",
    "train.tsv": "weather\tIt rains all day.\nweather\tTomorrow is sunny.\n"
    "money\tTaxes rise again.\nmoney\tThe bank pays more interest.\n",
    "notes/trip.md": "The train is at nine. Bring the tickets.\n",
    "xsent-env/bin/activate": "",
    "bench/tickets.tsv": (ROOT / "bench/tickets.tsv").read_text(encoding="utf-8"),
}
REFUSED = 99  # exit code of a script that opened a connection to another machine
OFFLINE = f"""
import os, sys

def refuse(event, arguments):
    hosts = {{"socket.connect": lambda: arguments[1][0], "socket.getaddrinfo": lambda: arguments[0]}}
    if event in hosts and hosts[event]() != "127.0.0.1":
        os._exit({REFUSED})

sys.addaudithook(refuse)
"""
FOLLOW = r"""
set -euo pipefail
server=
here=$PWD  # a page may go to another folder
trap '[ -z "$server" ] || kill "$server"' EXIT

unless_excepted() {
    case "$*" in
        "xsent serve"*) serve "${@:3}" ;;
        "docker compose up"*) serve COMPOSED ;;
        EXCEPTED) ;;
        *) command "$@" ;;
    esac
}

serve() {  # in the background, in place of the one before
    [ -z "$server" ] || { kill "$server"; wait "$server" || true; }
    command xsent serve --port PORT "$@" > server.log 2>&1 &
    server=$!
    until command curl --silent --output health http://127.0.0.1:PORT/health; do
        kill -0 "$server" || { cat server.log; return 1; }
        sleep 0.1
    done
    cat server.log
}

curl() {  # with an end of the last line
    command curl --silent --show-error --fail-with-body "$@" && echo
}
"""
# Runs files of Python; what each prints goes into a file beside it.
RUN = """
import sys
from contextlib import redirect_stdout
from pathlib import Path
from runpy import run_path

for name in sys.argv[1:]:
    with Path(name).with_suffix(".out").open("w", encoding="utf-8") as out, redirect_stdout(out):
        run_path(name, run_name="__main__")
"""
# In what a script prints, a line before and one after the output of a command of a `console`.
BEFORE, AFTER = "\x1e", "\x1f"
# What a terminal does not show, or only for a moment: a bar of progress, bold text.
HIDDEN = re.compile(r"\r\x1b\[K.*\n?|\x1b\[\d*m|\r(?=\n)")
# Options of the server in a container, whose secrets are in a folder beside it.
COMPOSED = re.search(r"command: \[serve, --host, 0\.0\.0\.0, (.+)\]", (ROOT / "compose.yaml").read_text())
SAYS = re.compile(r"^\s*print\(.*\)  # (.+)$", re.MULTILINE)


def only_read(block: Block) -> bool:
    return any(mark in block.text for mark in NOT_RUN_PYTHON)


def script(page: str, port: str) -> list[str]:
    """The bash script that follows a page; its blocks of Python are files beside it."""
    exceptions = "|".join(f'"{command}"*' for command in NOT_RUN)
    assert COMPOSED is not None
    composed = COMPOSED[1].replace(",", "").replace("/run/", "")
    lines = [FOLLOW.replace("EXCEPTED", exceptions).replace("COMPOSED", composed).replace("PORT", port)]
    lines += [f'{name}() {{ unless_excepted {name} "$@"; }}' for name in {command.split()[0] for command in NOT_RUN}]
    run = (block for block in blocks(page, "sh", "console", "python") if not only_read(block))
    for kind, group in groupby(run, lambda block: block.kind):
        found = list(group)
        lines.append(f"echo '--- {' '.join(block.place for block in found)}' >&2")
        if kind == "python":
            files = " ".join(f'"$here/{name}.py"' for name in ("run", *(block.name for block in found)))
            lines.append(f"{shlex.quote(sys.executable)} {files}")
            continue
        for command, shown in (step for block in found for step in block.steps):
            # One command a line, since bash continues after one that fails before &&.
            line = command.replace(":8000", f":{port}").replace(" && ", "\n").removesuffix("\n")
            line = f"{line} || true" if shown.startswith("Error: ") else line
            lines += [f"echo {BEFORE}", line, f"echo {AFTER}"] if kind == "console" else [line]
    return lines


def run_in_terminal(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of a command, and what its terminal shows in the end."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        printed = bytearray()
        with suppress(OSError):  # where nobody is left who could write, Linux reports an error
            while some := os.read(ours, 1 << 16):
                printed += some
        os.close(ours)
    return process.returncode, HIDDEN.sub("", printed.decode())


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in OF_OTHERS else [])
        for page in PAGES
        if any(blocks(page, "sh", "console", "python"))
    ],
)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    scripts = [block for block in blocks(page, "python") if not only_read(block)]
    code = {f"{block.name}.py": block.text.replace(":8000", f":{port}") for block in scripts}
    write_files(tmp_path, {**FILES, **code, "run.py": RUN, "sitecustomize.py": OFFLINE})
    (tmp_path / "path/to").mkdir(parents=True)
    (tmp_path / "path/to" / Bundle.open(builtin_path()).name).symlink_to(builtin_path())  # as the model card has it
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    paths = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    paths["MPLCONFIGDIR"] = str(Path.home() / ".cache/matplotlib")  # a list of all fonts, which takes seconds to make
    environment |= {**paths, "PYTHONPATH": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    command = ["bash", str(write_lines(tmp_path / "follow.sh", script(page, port)))]
    exit_code, printed = run_in_terminal(command, tmp_path, environment)
    assert exit_code == 0, "opened a connection" if exit_code == REFUSED else printed[-3000:]
    outputs = re.findall(rf"{BEFORE}\n(.*?){AFTER}\n", printed.replace(f":{port}", ":8000"), re.DOTALL)
    steps = [(block.place, *step) for block in blocks(page, "console") for step in block.steps]
    for (place, command, shown), output in zip(steps, outputs, strict=True):
        difference = "".join(ndiff(shown.splitlines(True), output.splitlines(True)))
        assert is_shown(shown, output), f"{place}: {command}{difference}"
    for block in scripts:
        expected = [line for says in SAYS.findall(block.text) for line in says.split(" / ")]
        printed = (tmp_path / f"{block.name}.out").read_text(encoding="utf-8")
        assert is_shown("".join(f"{line}\n" for line in expected), printed), f"{block.place}: {printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("0.55  trip.md:3\n", "0.56 trip.md:3\n", True),
        ("0.7703\n", "0.7832\n", True),
        ("0.7703\n", "0.7903\n", False),
        ("0.05\n", "0.07\n", True),
        ("0.05\n", "-0.05\n", False),
        ("1,000 texts\n", "1,001 texts\n", False),
        ("one, … three\n", "one, two, three\n", True),
        ("one …\n", "one\ntwo\n", False),
        ("one\n…\nfour\n", "one\ntwo\nthree\nfour\n", True),
        ("one\n…\nfour\n", "one\ntwo\nthree\n", False),
        ("one\n", "one\ntwo\n", False),
        ("", "Warning: one\n", False),
    ],
)
def test_a_page_shows_what_is_printed(shown: str, printed: str, expected: bool) -> None:
    assert is_shown(shown, printed) == expected


def test_every_exception_is_needed() -> None:
    code = "\n".join(block.code for page in PAGES for block in blocks(page, "sh", "console", "python"))
    assert [mark for mark in (*NOT_RUN, *NOT_RUN_PYTHON) if mark not in code] == []


def test_the_function_for_spark_gives_the_vectors_of_the_local_path() -> None:
    """Spark passes record batches of a partition to it and takes record batches."""
    pa = pytest.importorskip("pyarrow")
    [code] = [block.text for block in blocks("docs/guides/scale.md", "python") if block.text.startswith("def ")]
    names: dict[str, Any] = {}
    exec(code, names)
    texts = ["The cat sleeps.", None, "", "Le chat dort.", "Die Katze schläft."]
    batch = pa.record_batch([pa.array(range(5)), pa.array(texts)], names=["id", "text"])
    found = pa.Table.from_batches(names["encode_batches"](iter([batch[:2], batch[2:]])))
    assert found.schema.names == ["id", "text", "vector"]
    assert found["vector"].type == pa.list_(pa.float32())
    assert found.select(["id", "text"]).to_pylist() == batch.to_pylist()
    expected = xsent.SentenceEncoder().encode([text or "" for text in texts])
    assert np.array_equal(np.array(found["vector"].to_pylist(), np.float32), expected)
