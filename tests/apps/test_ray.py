"""The example on Ray, in a process of its own: Ray ends its process when it loses its daemon, at any time after."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lazy import needs

pytestmark = [pytest.mark.slow, needs("ray", "pyarrow")]


def test_the_example_on_ray(tmp_path: Path, mini_bundle: Path) -> None:
    """Without `conftest`, which imports torch."""
    file, base = Path(__file__).with_name("on_ray.py"), f"--basetemp={tmp_path / 'session'}"
    paths = os.pathsep.join([str(file.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"XSENT_MINI_BUNDLE": str(mini_bundle), "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--noconftest", "-q", file, base]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
