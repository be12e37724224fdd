"""Files that appear whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from xsent.files import atomic_file


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


def test_full_disk_of_nested_files_names_the_inner(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="nothing was kept") as caught,
        atomic_file(tmp_path / "outer"),
        atomic_file(tmp_path / "inner"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value).count("nothing was kept") == 1
    assert caught.value.filename == str(tmp_path / "inner")
