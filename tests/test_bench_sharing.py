"""What processes that use one bundle share."""

from pathlib import Path

import pytest
from commands import is_one_line

from xsent.bench import sharing
from xsent.bundle import TABLE

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say what is shared")


@pytest.mark.parametrize(("backend", "processes"), [("onnx", 8), ("numpy", 2)])
def test_all_give_the_same_vectors_from_one_table(mini_bundle: Path, backend: str, processes: int) -> None:
    held = sharing.holdings(mini_bundle, backend, processes)
    assert len(held) == processes
    mapped = max(one["table"] for one in held)
    assert 0 < mapped <= (mini_bundle / TABLE).stat().st_size / 2**20 + 1
    assert sum(one["table_share"] for one in held) < 1.5 * mapped
    found = sharing.sharing(backend, held)
    assert found.axes == {"backend": backend, "processes": processes}
    assert found.figures["of_all_mib"] > found.figures["private_mib"] > 0


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sharing.main("no/such/bundle")
    assert is_one_line(capsys.readouterr().err)
