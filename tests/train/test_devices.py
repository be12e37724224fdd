"""Memory of a training on a CPU."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from toy import write_toy_recipe

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
