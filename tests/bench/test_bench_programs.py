"""What programs of `python -m xsent_bench` measure: a long stream, the server, processes that share a bundle."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from commands import is_one_line

from xsent.bundle import TABLE
from xsent_bench.experiments import serving, sharing, soak, stores

untold = pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning", "ignore::xsent.LongSentenceWarning")


def test_every_stretch_is_of_different_sentences_as_long_as_the_others() -> None:
    texts = list(soak.different(3 * soak.BEGINNINGS))
    assert len(set(texts)) == len(texts)
    stretches = (texts[start : start + soak.BEGINNINGS] for start in range(0, len(texts), soak.BEGINNINGS))
    assert len({sum(map(len, stretch)) for stretch in stretches}) == 1


@untold
def test_each_tenth_is_a_row(mini_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soak.main(str(mini_bundle), "200")
    heading, _, *rows, _, last = capsys.readouterr().out.splitlines()
    assert heading == "| after | open files | sentences/s | processor, ms | held, MiB |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {after}" for after in range(20, 201, 20)]
    assert len({row.split(" | ")[1] for row in rows}) == 1  # as many files as before
    assert last.startswith("Memory: ") and "the last tenth takes" in last


@untold
@pytest.mark.network
def test_requests_stand_beside_a_plain_loop(
    mini_bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serving, "FIRST", 5)
    monkeypatch.setattr(serving, "sentences", lambda number: ["Anna sees Boris."] * 9)
    serving.main(str(mini_bundle), "20", "2")
    heading, _, before, served, after = capsys.readouterr().out.splitlines()
    memory = "MiB after 0 sentences | MiB after 5 sentences | MiB after 20 sentences"
    assert heading == f"| how | sentences/s | p50, ms | p95, ms | p99, ms | processor, ms | {memory} |"
    assert served.startswith("| 2 clients | ") and "–" not in served
    for loop in (before, after):
        assert loop.startswith("| a loop over encode | ") and loop.endswith(" | – | – | – |")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say what is shared")
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


@pytest.mark.parametrize("program", [serving, sharing, soak])
def test_a_mistake_is_one_line(program: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main("no/such/bundle")
    assert is_one_line(capsys.readouterr().err)


def test_stores_are_measured_without_those_that_are_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ["lancedb", "lancedb.index"]:  # another test may have imported them
        monkeypatch.setitem(sys.modules, name, None)
    stores.main("1000", "memory,disk")
    rows = [line.split()[2:4] for line in capsys.readouterr().out.splitlines()]
    assert rows == [["store", "MiB"], ["memory", "1"], ["disk", "1"]]
    for names, message in [("disk,database", "pip install 'xsent[database]'"), ("drum", "must be one of memory, disk")]:
        with pytest.raises(SystemExit):
            stores.main("1000", names)
        error = capsys.readouterr().err
        assert is_one_line(error) and message in error
