"""The contents of the sdist and the wheel; every file and dependency has its licence listed."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
from pages import PAGES, ROOT, table

LICENCES = "docs/reference/licences.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def build(source: Path, *kinds: str) -> Path:
    """Builds sdist or wheel of a folder in that folder; returns the wheel."""
    program = "; ".join(["from setuptools import build_meta", *(f"build_meta.build_{kind}('.')" for kind in kinds)])
    subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True)
    return next(source.glob("*.whl"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files, with a built sdist and wheel."""
    pytest.importorskip("setuptools", "77")
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    folder = tmp_path_factory.mktemp("source")
    copy = f"git ls-files -z | tar --create --null --files-from=- | tar --extract --directory '{folder}'"
    subprocess.run(copy, shell=True, cwd=ROOT, check=True)
    build(folder, "sdist", "wheel")
    return folder


@pytest.mark.slow
def test_the_sdist_has_what_is_tracked_and_builds_the_same_wheel(source: Path, tmp_path: Path) -> None:
    # Not by tarfile: before Python 3.11.4 it takes no filter, later it warns if there is none.
    subprocess.run(["tar", "-xzf", next(source.glob("*.tar.gz")), "-C", tmp_path], check=True)
    [unpacked] = tmp_path.iterdir()
    packed = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    made = {name for name in packed if name.startswith("xsent.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert {name for name in packed - made if not (ROOT / name).is_file() or name.startswith("tests/")} == set()
    contents = []
    for wheel in (next(source.glob("*.whl")), build(unpacked, "wheel")):
        with zipfile.ZipFile(wheel) as archive:
            contents.append([(entry.filename, entry.CRC) for entry in archive.infolist()])
    assert contents[0] == contents[1]


@pytest.mark.slow
def test_every_file_of_the_wheel_has_its_licence(source: Path) -> None:
    patterns = [pattern for [files, _, _] in table(LICENCES, "# Licences") for pattern in re.findall("`(.+?)`", files)]
    with zipfile.ZipFile(next(source.glob("*.whl"))) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    assert {name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)} == set()
    assert {pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in names)} == set()
    expression = re.search(r"^License-Expression: (.+)$", metadata, re.MULTILINE)
    assert expression is not None and f"`{expression[1]}`" in (ROOT / LICENCES).read_text(encoding="utf-8")
    licences = {name.partition("/licenses/")[2] for name in names} - {""}
    vendor = "apps/xsent_apps/web/static/xsent/vendor"
    assert licences == {"LICENSE", LICENCES, f"{vendor}/LICENSE.txt", f"{vendor}/ThirdPartyNotices.txt"}


def test_all_files_have_the_same_version() -> None:
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    [latest, *_] = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    manifest = json.loads((ROOT / "apps/xsent_apps/web/static/xsent/package.json").read_text(encoding="utf-8"))
    assert (latest, manifest["version"], manifest["license"]) == (version, version, PROJECT["license"])


def test_pages_name_extras_that_exist() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    lists = re.findall(r"""["'](?:xsent|\.)\[([\w,-]+)\]["']""", text)
    named = {name for extras in lists for name in extras.split(",")}
    assert {"apps", "map"} <= named <= PROJECT["optional-dependencies"].keys()


def test_every_dependency_has_its_licence() -> None:
    asked = {"xsent": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    named: dict[str, set[str]] = {}
    extra = ""
    for by, packages, _ in table(LICENCES, "## What is installed with it"):
        extra = by or extra  # an empty cell stands for the one above
        named.setdefault(extra, set()).update(packages.split(", "))
    for extra, dependencies in asked.items():
        names = {re.split(r"[^\w-]", dependency)[0] for dependency in dependencies} - {"xsent"}
        assert names == named.get(extra, set()), extra
