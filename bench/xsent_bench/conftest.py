"""The machine's facts in the JSON of pytest-benchmark."""

from typing import Any

import pytest

from xsent_bench.machine import environment


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Add the report's facts about the machine, see `environment`."""
    machine_info["xsent"] = environment()
