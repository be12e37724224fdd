"""What the pytest-benchmark modules share: encoders by layers.

`pytest bench` in the repository, `pytest --pyargs xsent.bench` where it is installed. They are the built-in one and
random weights, or the bundles that the variable XSENT_BUNDLES names, separated as in PATH.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from xsent.bench.grid import LAYERS
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError

PRECISION: Final = "int8"


def given() -> dict[int, Path]:
    """The bundles that the environment names, by layers."""
    paths = [Path(name) for name in os.environ.get("XSENT_BUNDLES", "").split(os.pathsep) if name]
    return {Bundle.open(path).num_layers: path for path in paths}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One benchmark for each number of layers; those of one number are a group."""
    if "layers" not in metafunc.fixturenames:
        return
    try:
        numbers = sorted(given()) or LAYERS
    except BundleError as error:
        raise pytest.UsageError(str(error)) from error
    groups = [pytest.param(number, marks=pytest.mark.benchmark(group=f"{number} layers")) for number in numbers]
    metafunc.parametrize("layers", groups, scope="session")


@pytest.fixture(scope="session")
def path(layers: int, request: pytest.FixtureRequest) -> Path:
    """A bundle with so many layers; random weights are made once and kept with pytest's cache."""
    if layers in given():
        return given()[layers]
    from xsent.bench.grid.bundles import Bundles, trained  # they load what exports, for nothing where all is given

    assert request.config.cache is not None
    work = Path(request.config.cache.mkdir("xsent-bundles"))
    return Bundles(work, trained([], note=lambda _: None)).path(layers, PRECISION)


@pytest.fixture(scope="session")
def encoder(path: Path) -> SentenceEncoder:
    """An encoder of one sentence at a time."""
    return SentenceEncoder(path, threads=1)
