"""Links that somebody else has put into a folder, and who may read what we write."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, write_files
from indexes import encoder

from xsent import SentenceEncoder, update_index
from xsent.files.atomic import atomic_file, atomic_folder
from xsent.search.store import IndexDatabase

__all__ = ["encoder"]

MINE = b"A document of mine.\n"
TEXTS = "Anna sees Boris.\nClara sees David.\nElena sees Frank.\n"
OUTPUTS = "encode a.txt -o v.npy", "encode a.txt -o v.jsonl", "mine a.txt b.txt --margin absolute -o v.tsv"


@pytest.fixture
def clone(tmp_path: Path, mini_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from somebody else, which is where we are; what links there lead to stays as it is."""
    folder = tmp_path / "clone"
    write_files(folder, {"trains.md": "The train leaves at nine.\n", "a.txt": TEXTS, "b.txt": "Anna voit Boris.\n"})
    mine = tmp_path / "mine.txt"
    mine.write_bytes(MINE)
    monkeypatch.chdir(folder)
    yield folder
    assert mine.read_bytes() == MINE
    assert {entry.name for entry in tmp_path.iterdir()} <= {"clone", "mine.txt", "my-index"}


def empty_index(path: Path, encoder: SentenceEncoder) -> Path:
    update_index(path, [], encoder)
    return path


def plant(place: Path) -> None:
    """A link to a document of mine."""
    place.unlink(missing_ok=True)
    place.symlink_to(Path("..") / "mine.txt" if place.parent.name == "clone" else Path("../..") / "mine.txt")


def database(index: Path) -> Path:
    with closing(IndexDatabase(index)) as opened:
        return opened.path


PLACES: dict[str, Callable[[Path], Path]] = {
    "vectors": lambda index: index / "vectors.f16",
    "database": database,
    "journal": lambda index: database(index).with_name(f"{database(index).name}-journal"),
    "log": lambda index: database(index).with_name(f"{database(index).name}-wal"),
    "other": lambda index: index / "notes",
}


@pytest.mark.parametrize("command", ["notes . trains", "notes .", "notes . --force", "notes . trains --no-update"])
@pytest.mark.parametrize("place", PLACES)
def test_an_index_of_documents_with_a_link_is_refused(
    run: Runner, clone: Path, encoder: SentenceEncoder, mini_bundle: Path, place: str, command: str
) -> None:
    plant(PLACES[place](empty_index(clone / ".xsent-notes", encoder)))
    assert_refused(run(*command.split(), "--model", mini_bundle), r"\.xsent-notes/.*: a link, which xsent does not")


@pytest.mark.parametrize("options", ["--add", "--force", "--add --force", "--add --resume"])
@pytest.mark.parametrize("place", PLACES)
def test_an_index_of_lines_with_a_link_is_refused(
    run: Runner, clone: Path, mini_bundle: Path, place: str, options: str
) -> None:
    assert run("index", "a.txt", "x", "--model", mini_bundle)[0] == 0
    plant(PLACES[place](clone / "x"))
    assert_refused(run("index", "a.txt", "x", *options.split(), "--model", mini_bundle), r"x/.*: a link, which xsent")


@pytest.mark.parametrize("command", ["notes . trains", "notes . --force", "notes . trains --no-update"])
def test_an_index_that_is_a_link_is_refused(
    run: Runner, clone: Path, encoder: SentenceEncoder, mini_bundle: Path, command: str
) -> None:
    mine = clone.parent / "my-index"
    update_index(mine, [], encoder)
    before = {file.name: file.read_bytes() for file in mine.iterdir()}
    (clone / ".xsent-notes").symlink_to(mine)
    assert_refused(run(*command.split(), "--model", mini_bundle), r"\.xsent-notes: a link, which xsent")
    (clone / "x").symlink_to(mine)
    for options in (["--add"], ["--force"], []):
        code, _, err = run("index", "a.txt", "x", *options, "--model", mini_bundle)
        assert (code, err.count("\n")) == (1, 1)
    assert {file.name: file.read_bytes() for file in mine.iterdir()} == before


def test_a_folder_that_is_a_link_to_nowhere_is_refused(run: Runner, clone: Path) -> None:
    (clone / "page").symlink_to("nowhere")
    assert_refused(run("web", "--out", "page"), "page: a link, which xsent")
    assert not (clone / "nowhere").exists()


UNFINISHED = {
    "encode a.txt -o v.npy": [".v.npy.part", ".v.npy.part.json"],
    "encode a.txt -o v.npy --force": [".v.npy.part", ".v.npy.part.json"],
    "encode a.txt -o v.npy --resume": [".v.npy.part", ".v.npy.part.json"],
    "encode a.txt -o v.parquet": [".v.parquet.part", ".v.parquet.part.json"],
}


@pytest.mark.parametrize(("command", "place"), [(command, place) for command, s in UNFINISHED.items() for place in s])
@pytest.mark.parametrize("kind", ["link", "pipe", "nowhere"])
def test_an_unfinished_job_that_is_no_regular_file_is_refused(
    run: Runner, clone: Path, mini_bundle: Path, command: str, place: str, kind: str
) -> None:
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    if kind == "link":
        plant(clone / place)
    elif kind == "pipe":
        os.mkfifo(clone / place)
    else:
        (clone / place).symlink_to("../nowhere")
    assert_refused(run(*command.split(), "--model", mini_bundle), place)


@pytest.mark.parametrize(
    "command", ["encode a.txt -o v.npy", "encode a.txt -o v.jsonl", "mine a.txt b.txt --margin absolute -o v.tsv"]
)
def test_an_output_that_is_a_link_is_replaced_itself(run: Runner, clone: Path, mini_bundle: Path, command: str) -> None:
    name = command.split()[-1]
    plant(clone / name)
    assert run(*command.split(), "--force", "--model", mini_bundle)[0] == 0
    assert (clone / name).is_file() and not (clone / name).is_symlink()
    plant(clone / f"{name}.json")  # the note beside it
    assert run(*command.split(), "--force", "--model", mini_bundle)[0] == 0


def test_leftovers_that_are_links_or_pipes_are_left_alone(clone: Path) -> None:
    places = [clone / f".x.0123456{number}.{kind}" for number in range(2) for kind in ("part", "old")]
    for place in places[:2]:
        plant(place)
    for place in places[2:]:
        os.mkfifo(place)
    with atomic_file(clone / "x") as file:
        file.write(b"x")
    assert (clone / "x").read_bytes() == b"x" and all(place.is_symlink() for place in places[:2])


def modes(path: Path) -> set[str]:
    """Permissions of a file, or of a folder and all in it."""
    return {f"{stat.S_IMODE(entry.stat().st_mode):o}" for entry in [path, *path.rglob("*")]}


@pytest.fixture(params=[0o022, 0o002, 0])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


TEXTUAL = {
    "encode a.txt -o {}": ("v.npy", "v.jsonl", "v.f32"),
    "mine a.txt b.txt --margin absolute -o {}": ("v.tsv", "v.jsonl"),
    "index a.txt {}": ("x",),
    "notes . --index {}": ("y",),
}


@pytest.mark.parametrize(("command", "name"), [(command, name) for command, names in TEXTUAL.items() for name in names])
def test_what_holds_texts_is_for_its_owner_only(
    run: Runner, clone: Path, mini_bundle: Path, umask: int, command: str, name: str
) -> None:
    if command.startswith("notes"):
        pytest.importorskip("sentencex")
    arguments = [*command.format(name).split(), "--model", mini_bundle]
    place = clone / name
    assert run(*arguments)[0] == 0
    assert modes(place) == ({"700", "600"} if place.is_dir() else {"600"})
    for entry in (place, *place.rglob("*")):
        entry.chmod(0o750 if entry.is_dir() else 0o640)
    before = database(place) if place.is_dir() else place
    assert run(*arguments, "--force")[0] == 0
    assert modes(place) == ({"750", "640"} if place.is_dir() else {"640"})
    assert not place.is_dir() or database(place) != before


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.jsonl", "vectors.parquet"])
def test_vectors_of_another_precision_keep_permissions(run: Runner, clone: Path, mini_bundle: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    arguments = ("encode", "trains.md", "--output", name, "--model", mini_bundle, "--force", "--precision")
    assert run(*arguments, "float32")[0] == 0
    (clone / name).chmod(0o640)
    assert run(*arguments, "float16")[0] == 0
    assert modes(clone / name) == {"640"}


def test_an_index_that_grows_stays_private(run: Runner, clone: Path, mini_bundle: Path, umask: int) -> None:
    pytest.importorskip("sentencex")
    model = ("--model", mini_bundle)
    (clone / "trains.md").chmod(0o600)
    assert run("notes", ".", *model)[0] == 0
    (clone / "b.md").write_text(TEXTS)
    assert run("notes", ".", *model)[0] == 0
    (clone / "trains.md").unlink()
    assert run("notes", ".", *model)[0] == 0
    assert modes(clone / ".xsent-notes") == {"700", "600"}


def test_what_is_made_for_others_follows_the_umask(tmp_path: Path, umask: int) -> None:
    for _ in range(2):
        with atomic_folder(tmp_path / "model") as folder:
            (folder / "weights").touch(0o600)  # as some libraries do
            (folder / "more").mkdir()
            np.save(folder / "more" / "numbers.npy", np.ones(3))
        assert modes(tmp_path / "model") == {f"{0o777 & ~umask:o}", f"{0o666 & ~umask:o}"}
        with atomic_file(tmp_path / "head.npz") as file:
            file.write(b"x")
        assert modes(tmp_path / "head.npz") == {f"{0o666 & ~umask:o}"}
    (tmp_path / "head.npz").chmod(0o604)
    with atomic_file(tmp_path / "head.npz") as file:
        file.write(b"y")
    assert modes(tmp_path / "head.npz") == {"604"}
    shutil.rmtree(tmp_path / "model")
