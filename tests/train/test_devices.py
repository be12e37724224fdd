"""Memory of a training on a CPU."""

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from toy import write_toy_recipe

from xsent_train import devices

# The first product of each shape is compiled, forward and backward. If all are kept, 300 shapes take 300 MiB.
SHAPES = """
import sys
import torch
from pathlib import Path
from trainings import train
from xsent.cpu import process_memory
train(Path(sys.argv[1]), Path(sys.argv[2]))
linear, taken = torch.nn.Linear(16, 16), []
for rows in range(1, 501):
    with torch.autocast("cpu", torch.bfloat16):
        linear(torch.ones(rows, 16)).float().sum().backward()
    taken.append(process_memory("VmRSS"))
print(taken[500 - 1] - taken[200 - 1])
"""


@pytest.mark.skipif(not torch.cpu._is_avx512_bf16_supported(), reason="trains in float32")
def test_batches_of_other_sizes_take_no_more_memory(tmp_path: Path) -> None:
    recipe = write_toy_recipe(tmp_path, ("steps = 150", "steps = 3"))
    command = [sys.executable, "-c", SHAPES, str(recipe), str(tmp_path / "run")]
    grown = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True).stdout
    assert float(grown) < 30


# After a freed tensor of 16 MB, the C library takes smaller ones from its heap, where the rest of each step is kept.
GAPS = """
import torch
from xsent.cpu import process_memory
from xsent_train.devices import return_large_tensors
return_large_tensors()
torch.ones(2**22)
before = process_memory("VmRSS")
large, kept = zip(*((torch.ones(2**18), torch.ones(25_000)) for _ in range(200)))
del large
print(process_memory("VmRSS") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_large_tensors_between_others_are_given_back() -> None:
    left = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, text=True, check=True).stdout
    assert float(left) < 20  # of 200 MiB


def test_only_one_rank_logs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.NOTSET, "xsent_train")  # which is restored
    monkeypatch.setattr(devices, "Fabric", lambda **_: SimpleNamespace(launch=lambda: None, is_global_zero=False))
    devices.launch(1)
    assert not logging.getLogger("xsent_train.trainer").isEnabledFor(logging.WARNING)


def test_a_gpu_of_apple_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    def fabric(**settings: object) -> SimpleNamespace:
        given.update(settings)
        return SimpleNamespace(launch=lambda: None, is_global_zero=True)

    monkeypatch.setattr(devices, "Fabric", fabric)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    devices.launch(1)
    assert given["accelerator"] == "cpu"
