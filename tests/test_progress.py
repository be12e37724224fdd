"""Progress on standard error."""

import time

import pytest

from xsent.terminal import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_count_rate_and_time_left(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("sentences", 2000, enabled=True) as progress:
        clock[0] = 10.0
        progress.advance(500)
        assert "500 of 2,000 sentences, 50/s, 0:30 left" in capsys.readouterr().err


def test_unknown_total_and_counting(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("lines", enabled=True) as progress:
        assert list(progress.count("abc")) == ["a", "b", "c"]
        clock[0] = 1.0
    assert capsys.readouterr().err.endswith("3 lines, 3/s\n")


def test_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("lines") as progress:
        progress.advance()
    assert not capsys.readouterr().err
