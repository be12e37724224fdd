"""Any arguments of any command: it does what it says, or says in one line what is wrong and leaves nothing behind."""

import io
import json
import shutil
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin, get_type_hints
from unittest import mock

import numpy as np
import pytest
from commands import write_files
from hypothesis import event, given, settings
from hypothesis import strategies as st
from typer.main import get_command

import xsent.cli.main
import xsent_bench.cli
import xsent_export.cli
import xsent_train.cli
from xsent import LinearClassifier, SentenceEncoder, build_index

PROGRAMS = {"xsent": xsent.cli.main, "xsent-train": xsent_train.cli, "xsent-export": xsent_export.cli}
PROGRAMS["xsent-bench"] = xsent_bench.cli
# What serves, watches, or measures for minutes: everything before it is tried, with any arguments.
LONG = {
    "xsent_apps.server._listen": lambda *_: socket.socket(),
    "xsent_apps.server._run": None,
    "xsent_apps.web._serve": None,
    "watchfiles.watch": (),
    "xsent.cli.doctor.examine": (),
    "xsent_bench.run.measure_steps": Path("notes.txt"),
    "xsent_bench.ablation.Ablation.run": "",
}


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401  typer has its own click
    """Every command of a program by the words that call it."""
    if not hasattr(command, "commands") or (path and command.invoke_without_command):
        yield path, command
    for name in command.list_commands(None) if hasattr(command, "commands") else ():
        yield from commands(command.get_command(None, name), *path, name)


COMMANDS = dict(found for name, program in PROGRAMS.items() for found in commands(get_command(program.app), name))

FILES = {
    "notes.txt": "Anna sees Boris.\nDavid\n\nClara\nElena.\n",
    "autres.txt": "Anna voit Boris.\nDavid\nClara\nElena, Frank\n",
    "pairs.tsv": "Anna\tBoris\nClara\tDavid\nElena\tFrank\nGreta\tHenry\nIrina\tJonas\n",
    "four.tsv": "ours\tfr\tAnna sees Boris.\tAnna voit Boris.\nours\tfr\tClara\tClara\n",
    "labels.tsv": "animals\tAnna\nfood\tBoris\nfood\tClara\nanimals\tDavid\n",
    "recipe.toml": "name = 'toy'\n[model]\ndim = 7\n",
    "folder/en.txt": "Anna\n",
    "folder/en-de.tsv": "Anna.\tAnna!\nBoris.\tBoris!\n",
    "folder/note.md": "# Anna\n\nBoris.\n",
    "empty": "",
}
PLACES = [
    *FILES,
    "folder",
    "bundle",
    "index",
    "vectors.npy",
    "binary",
    "missing",
    "new",
    "new.npy",
    "new/new",
    "a=bundle",
]
PLACES += ["a=bundle", "-", "", ".", "\udcff", "\u202eodd 🙂\t\n.txt", "n" * 300, "en,fr", "--", "16MB", "new.jsonl"]
NUMBERS = ["-1", "0", "1", "2", "3", "7", "32", "10" * 6, "9" * 40, "0.5", "-0.5", "nan", "inf", "1e400", "x", ""]

# What belongs there, by the names of options and arguments.
RIGHT = {
    "notes.txt": "file src text source a sample",
    "autres.txt": "trg b queries",
    "pairs.tsv": "pairs gate_data",
    "labels.tsv": "train test data",
    "en=notes.txt": "sources",
    "bundle": "model checkpoint",
    "folder": "folder data_folder",
    "recipe.toml": "config",
    "new": "out rejected work",
    "new.npy": "output",
    "head.npz": "head",
    "index": "index",
    "vectors.npy": "src_vectors trg_vectors vectors",
    "de": "language",
    "Anna": "query name",
}
RIGHT_FOR = {name: word for word, names in RIGHT.items() for name in names.split()}


def values(name: str, hint: object) -> st.SearchStrategy[str]:
    """Words for an option or an argument of a type, mostly such as it takes."""
    kinds = [hint, *get_args(hint), *(kind for part in get_args(hint) for kind in get_args(part))]
    choices = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    if choices:
        return st.sampled_from([*choices, *choices, "none such"])
    if int in kinds or float in kinds:
        return st.sampled_from([*NUMBERS, *"12345678"])
    text = st.text(st.characters(exclude_characters="\0/", codec="utf-8"), max_size=20)
    right = st.just(RIGHT_FOR[name]) if name in RIGHT_FOR else text
    return st.one_of(*[right] * 9, st.sampled_from(PLACES), st.sampled_from(PLACES), text)


@st.composite
def arguments(draw: st.DrawFn, command: Any) -> list[str]:  # noqa: ANN401
    """Most of a command's arguments and some of its options."""
    words, hints = list[str](), get_type_hints(command.callback)
    for parameter in command.params:
        hint = hints.get(parameter.name)
        option = parameter.param_type_name == "option"
        if draw(st.integers(0, 9)) > (8 if parameter.required else 5 if parameter.name in RIGHT_FOR else 1):
            continue
        if option:
            words.append(draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts])))
        if not getattr(parameter, "is_flag", False):
            words.append(draw(values(parameter.name, hint)))
    return words


@pytest.fixture(scope="module")
def material(mini_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with something of each kind."""
    folder = tmp_path_factory.mktemp("material")
    write_files(folder, FILES)
    (folder / "binary").write_bytes(bytes(range(256)) * 10)
    np.save(folder / "vectors.npy", np.eye(4, 32, dtype=np.float32))
    shutil.copytree(mini_bundle, folder / "bundle")
    encoder, labels = SentenceEncoder(mini_bundle), ["food", "animals"]
    LinearClassifier.fit(np.eye(4, 32), labels * 2, fingerprint=encoder.fingerprint).save(folder / "head.npz")
    build_index(folder / "index", FILES["notes.txt"].splitlines(), encoder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def run(program: str, words: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; whatever else is raised is a traceback."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    stdin = io.TextIOWrapper(io.BytesIO(FILES["notes.txt"].encode()))
    with mock.patch.multiple(sys, argv=[program, *words], stdin=stdin), redirect_stdout(out), redirect_stderr(err):
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            warnings.simplefilter("default")  # pytest makes them errors
            PROGRAMS[program].main()
    for stream in (out, err):
        stream.flush()
    said, told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return int(ended.value.code or 0), said, told


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Nothing serves, watches or measures."""
    with ExitStack() as patches:
        for name, does in LONG.items():
            returns = does if callable(does) else lambda *_, does=does, **__: does
            patches.enter_context(mock.patch(name, returns))
        yield


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 20)
def test_a_command_does_it_or_says_why_not(path: tuple[str, ...], material: Path, data: st.DataObject) -> None:
    words = data.draw(arguments(COMMANDS[path]))
    with TemporaryDirectory() as folder, chdir(shutil.copytree(material, Path(folder) / "here")):
        before = contents(Path())
        code, out, err = run(path[0], [*path[1:], *words])
        event(f"exit code {code}")
        assert code in (0, 1, 2), err
        if code == 1:
            assert err.splitlines()[-1].startswith("Error: ") and err.count("Error: ") == 1, err
        if code:
            assert contents(Path()) == before
        elif "--json" in words:
            for line in out.splitlines():
                json.loads(line)
