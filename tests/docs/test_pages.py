"""Every page can be followed from top to bottom, in one shell and one new folder, offline.

Blocks of shell run as they are. Each block of Python prints what the comments behind `print` say; those that follow
each other run in one process, as modules that know nothing of each other.
The tables below name what does not run, with the reason; `test_pages_commands.py` parses those commands.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import write_files, write_lines
from conftest import sentences
from pages import PAGES, ROOT, Block, blocks

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
    "needs the model of this page; test_tiny.py makes it": ["xsent similarity --model tiny-model"],
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
OF_OTHERS = ("docs/cluster.md", "docs/integrations.md", "docs/scaling.md")
# Files that the pages expect; the folder is the reader's home too.
FILES = {
    "news.en": "".join(f"{' '.join(sentences('en')[row : row + 4])}\n" for row in range(0, 32, 4)),
    "news.fr": "".join(f"{' '.join(sentences('fr')[row : row + 4])}\n" for row in range(0, 32, 4)),
    "sentences.txt": "".join(f"{sentence}\n" for sentence in sentences("en")),
    "notes.txt": "The meeting is on Friday.\nThe cat needs food.\n",
    "train.tsv": "city\tThe station is closed.\ncity\tThe bus is late.\npets\tCats sleep.\npets\tDogs bark.\n",
    "notes/trip.md": "The train is at nine. Bring the tickets.\n",
    "xsent-env/bin/activate": "",
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
    command xsent serve --port PORT "$@" &
    server=$!
    until command curl --silent --output health http://127.0.0.1:PORT/health; do kill -0 "$server"; sleep 0.1; done
}

curl() { command curl --silent --show-error --fail-with-body "$@"; }
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
    run = (block for block in blocks(page, "sh", "python") if not only_read(block))
    for kind, group in groupby(run, lambda block: block.kind):
        found = list(group)
        lines.append(f"echo '--- {' '.join(block.place for block in found)}' >&2")
        if kind == "python":
            lines.append(shlex.join([sys.executable, "run.py", *(f"{block.name}.py" for block in found)]))
        else:  # one command a line, since bash goes on after one that fails before &&
            lines += [block.text.replace(":8000", f":{port}").replace(" && ", "\n") for block in found]
    return lines


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in OF_OTHERS else [])
        for page in PAGES
        if any(blocks(page, "sh", "python"))
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
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, "opened a connection" if done.returncode == REFUSED else done.stderr.decode()[-3000:]
    for block in scripts:
        expected = [line for says in SAYS.findall(block.text) for line in says.split(" / ")]
        assert (tmp_path / f"{block.name}.out").read_text(encoding="utf-8").splitlines() == expected, block.place


def test_every_exception_is_needed() -> None:
    code = "\n".join(block.text for page in PAGES for block in blocks(page, "sh", "python"))
    assert [mark for mark in (*NOT_RUN, *NOT_RUN_PYTHON) if mark not in code] == []


def test_the_function_for_spark_gives_the_vectors_of_the_local_path() -> None:
    """Spark passes record batches of a partition to it and takes record batches."""
    pa = pytest.importorskip("pyarrow")
    [code] = [block.text for block in blocks("docs/scaling.md", "python") if block.text.startswith("def ")]
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


@pytest.mark.slow
def test_the_site_has_every_page_and_name_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """It builds without a warning: links and anchors exist."""
    pytest.importorskip("myst_parser", reason="the site needs the extra docs")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", "docs", "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(tmp_path / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = {page.relative_to(tmp_path / "html"): page.read_text() for page in (tmp_path / "html").rglob("*.html")}
    assert {Path(page).with_suffix(".html") for page in PAGES} <= made.keys()
    for text in made.values():
        assert not re.search(r'<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//', text)
    reference = made[Path("docs/reference.html")]
    assert [name for name in xsent.__all__ if f'id="xsent.{name}"' not in reference] == ["__version__"]
