"""The files for containers agree with the package, the server and each other."""

import inspect
import json
import re
import shlex
import tomllib
from fnmatch import fnmatch

import pytest
from pages import ROOT

from xsent_apps.server.command import serve
from xsent_apps.server.requests import HEALTH

yaml = pytest.importorskip("yaml")

LINES = (ROOT / "Containerfile").read_text().replace("\\\n", "").splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]
[SERVICE] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PORT = inspect.signature(serve).parameters["port"].default


def arguments(instruction: str) -> list[str]:
    return [rest for name, rest in STEPS if name == instruction]


def test_the_image_serves_as_nobody_on_the_port_that_is_published() -> None:
    assert (arguments("EXPOSE"), SERVICE["ports"]) == ([str(PORT)], [f"127.0.0.1:{PORT}:{PORT}"])
    [probe], [user] = arguments("HEALTHCHECK"), arguments("USER")
    assert f"http://127.0.0.1:{PORT}{HEALTH}" in probe
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "by number, so that Kubernetes knows that it is not root"
    [entry], [command] = (map(json.loads, arguments(name)) for name in ("ENTRYPOINT", "CMD"))
    assert entry[0] in PROJECT["project"]["scripts"]
    assert SERVICE["command"][: len(command)] == command == ["serve", "--host", "0.0.0.0"]
    # The service may do nothing that it need not.
    assert SERVICE["read_only"] and SERVICE["cap_drop"] == ["ALL"] and SERVICE["security_opt"]
    assert all("ro" in volume.split(":")[2].split(",") for volume in SERVICE["volumes"])
    options = dict(zip(SERVICE["command"], SERVICE["command"][1:], strict=False))
    assert [options["--api-key-file"]] == [f"/run/secrets/{name}" for name in SERVICE["secrets"]]


def test_the_image_is_built_from_what_the_package_needs() -> None:
    [install] = [rest for rest in arguments("RUN") if "pip" in rest]
    [extra] = re.findall(r'"\.\[(\w+)\]"', install)
    assert extra in PROJECT["project"]["optional-dependencies"]
    assert "--only-binary :all:" in install
    stages = [rest.split(" AS ") for rest in arguments("FROM")]
    assert stages[0] == [stages[-1][0], "build"], "wheels are made for the Python that runs them"
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines  # only what is named is copied
    named = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert [name for name in named if not (ROOT / name).exists()] == []
    needed = [PROJECT["project"]["readme"], "pyproject.toml"]
    needed += [name for name in PROJECT["project"]["license-files"] if "*" not in name]
    find = PROJECT["tool"]["setuptools"]["packages"]["find"]
    rooms = [path for room in find["where"] for path in (ROOT / room).glob(f"{find['include'][0]}/__init__.py")]
    needed += [path.relative_to(ROOT).as_posix() for path in rooms]
    assert [path for path in needed if not any(fnmatch(path, f"{name}*") for name in named)] == []
    copied = [shlex.split(rest) for rest in arguments("COPY")]
    assert [[".", "."], ["--from=build", *2 * [re.findall(r"-m venv .*?(/\S+)", install)[0]]]] == copied
    assert [rest.split(":")[0] for rest in arguments("ENV")] == [f"PATH={copied[1][1]}/bin"]
