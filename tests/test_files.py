"""Files that appear whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from xsent.errors import DataError
from xsent.files import atomic_file, atomic_folder, read_json, remove_folder, sweep, to_json


def test_file_appears_when_complete(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with atomic_file(target) as file:
        file.write(b"x")
        assert not target.exists()
    assert target.read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        with atomic_file(tmp_path / "a"):
            pass
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(error), atomic_file(tmp_path / "a") as file:
        file.write(b"new")
        raise error
    assert (tmp_path / "a").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(OSError, match="No space left on device; nothing was kept") as caught,
        atomic_file(tmp_path / "a"),
    ):
        pass
    assert caught.value.filename == str(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "nothing" / "a"):
        pass


def test_full_disk_of_nested_files_is_named_once(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="nothing was kept") as caught,
        atomic_file(tmp_path / "outer"),
        atomic_file(tmp_path / "inner"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value).count("nothing was kept") == 1


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "missing"), (b"{", "damaged"), (b"[]", "damaged"), (b"\xff", "d")]
)
def test_json_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "a.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.json: {reason}.*; fit it again"):
        read_json(file, "fit it again")
    file.write_bytes(to_json({"name": "é"}))
    assert read_json(file, "fit it again") == {"name": "é"}


def test_a_folder_is_never_seen_with_files_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "a").touch()

    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("xsent.files.shutil.rmtree", killed)
        remove_folder(folder)
    assert not folder.exists()
    (tmp_path / ".half.1.part").touch()
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_replaced_whole_or_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for content in ("old", "new"):
        with atomic_folder(out) as folder:
            (folder / "a").write_text(content)
    assert (out / "a").read_text() == "new"
    with pytest.raises(ValueError, match="stop"), atomic_folder(out) as folder:
        (folder / "a").write_text("half")
        raise ValueError("stop")
    assert (out / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_full_disk_within_a_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing was kept") as caught, atomic_folder(tmp_path / "out") as folder:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "half"))
    assert caught.value.filename == str(tmp_path / "out")
    assert not list(tmp_path.iterdir())
