"""What is measured of the server."""

from pathlib import Path

import pytest
from commands import is_one_line

from xsent.bench import serving


@pytest.mark.network
@pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning", "ignore::xsent.LongSentenceWarning")
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
    with pytest.raises(SystemExit):
        serving.main("no/such/bundle", "20", "2")
    assert is_one_line(capsys.readouterr().err)
