"""Every page can be followed: from top to bottom, in one shell and one new folder, offline.

Blocks of shell run as they are, each block of Python as a script, which prints what the comments behind `print` say.
What cannot run here is named below, with the reason; `test_pages_commands.py` sees that it is understood.
"""

import ast
import os
import re
import shlex
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from commands import write_files, write_lines
from conftest import sentences
from pages import PAGES, Block, blocks

from xsent.bundle import Bundle, builtin_path

# Commands that do nothing here, by how they begin.
NOT_RUN = {
    "pip install": "what is needed is installed",
    "python3 -m venv": "the tests have an environment",
    "sudo": "the machine stays as it is",
    "openssl": "goes to sudo",
    "ruff": "the public workflow runs it",
    "mypy": "the public workflow runs it",
    "pytest": "these are its tests",
    "tools/slower.sh": "minutes",
    "xsent-train": "hours; test_recipes.py and test_adding.py train",
    "xsent-export": "of what was trained; test_export.py exports",
    "xsent-bench": "minutes; test_bench_run.py measures",
    "python -m xsent_bench.experiments.serving": "minutes; test_bench_programs.py measures",
    "python -m xsent_apps.examples.news_topics": "test_examples.py runs it",
    "python -m xsent_apps.examples.translations": "test_examples.py runs it",
    "python -m xsent_apps.examples.duplicates": "test_examples.py runs it",
    "xsent evaluate": "the test sets are not in the repository; test_evaluation.py has small ones",
    "xsent web --open": "waits for a browser; test_web.py is one",
    "xsent encode texts": "Ray starts in 20 seconds; test_ray.py starts it",
}
# Blocks of Python that are only read, by something in them.
NOT_RUN_PYTHON = {
    "import SentenceTransformer": "needs a model that is not in the repository",
    "mteb.get_tasks(": "downloads",
    "spark.read": "needs a cluster",
}
# What a reader has who follows the pages; his home is the folder too.
FILES = {
    **{
        f"news.{language}": "".join(f"{' '.join(sentences(language)[row : row + 4])}\n" for row in range(0, 32, 4))
        for language in ("en", "fr")
    },
    "sentences.txt": "".join(f"{sentence}\n" for sentence in sentences("en")),
    "notes.txt": "The meeting is on Friday.\nThe cat needs food.\n",
    "train.tsv": "city\tThe station is closed.\ncity\tThe bus is late.\npets\tCats sleep.\npets\tDogs bark.\n",
    "notes/trip.md": "The train is at nine. Bring the tickets.\n",
    "xsent-env/bin/activate": "",
}
REFUSED = 99  # exit code where something opened a connection to another machine
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
trap '[ -z "$server" ] || kill "$server"' EXIT

unless_excepted() {
    case "$*" in
        "xsent serve"*) serve "${@:3}" ;;
        EXCEPTED) ;;
        *) command "$@" ;;
    esac
}

serve() {  # in the background, in place of the one before
    [ -z "$server" ] || { kill "$server"; wait "$server" || true; }
    command xsent serve --port PORT "$@" &
    server=$!
    until command curl --silent --output health http://127.0.0.1:PORT/health; do kill -0 "$server"; sleep 0.1; done
}

curl() { command curl --silent --show-error --fail-with-body "$@"; }
"""
SAYS = re.compile(r"^\s*print\(.*\)  # (.+)$", re.MULTILINE)


def only_read(block: Block) -> bool:
    return any(mark in block.text for mark in NOT_RUN_PYTHON)


def script(page: str, port: str) -> list[str]:
    """What follows a page, in bash; its Python lies beside it."""
    exceptions = "|".join(f'"{command}"*' for command in NOT_RUN)
    lines = [FOLLOW.replace("EXCEPTED", exceptions).replace("PORT", port)]
    lines += [f'{name}() {{ unless_excepted {name} "$@"; }}' for name in {command.split()[0] for command in NOT_RUN}]
    for block in blocks(page, "sh", "python"):
        if block.kind == "sh":
            # A command that fails before && would go unnoticed.
            lines += [f"echo '--- {block.place}' >&2", block.text.replace(":8000", f":{port}").replace(" && ", "\n")]
        elif not only_read(block):
            python = shlex.quote(sys.executable)
            lines += [f"echo '--- {block.place}' >&2", f"{python} {block.name}.py > {block.name}.out"]
    return lines


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "sh", "python"))])
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    scripts = [block for block in blocks(page, "python") if not only_read(block)]
    code = {f"{block.name}.py": block.text.replace(":8000", f":{port}") for block in scripts}
    write_files(tmp_path, {**FILES, **code, "sitecustomize.py": OFFLINE})
    (tmp_path / "path/to").mkdir(parents=True)
    (tmp_path / "path/to" / Bundle.open(builtin_path()).name).symlink_to(builtin_path())  # as the model card has it
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    paths = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {**paths, "PYTHONPATH": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    command = ["bash", str(write_lines(tmp_path / "follow.sh", script(page, port)))]
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, "opened a connection" if done.returncode == REFUSED else done.stderr.decode()[-3000:]
    for block in scripts:
        expected = [line for says in SAYS.findall(block.text) for line in says.split(" / ")]
        assert (tmp_path / f"{block.name}.out").read_text(encoding="utf-8").splitlines() == expected, block.place


def test_python_that_is_only_read_imports_what_there_is() -> None:
    for block in (block for page in PAGES for block in blocks(page, "python") if only_read(block)):
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xsent"):
                module = import_module(node.module or "")
                assert all(hasattr(module, alias.name) for alias in node.names), block.place


def test_every_exception_is_needed() -> None:
    code = "\n".join(block.text for page in PAGES for block in blocks(page, "sh", "python"))
    assert [mark for mark in (*NOT_RUN, *NOT_RUN_PYTHON) if mark not in code] == []
