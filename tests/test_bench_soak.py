"""What a long stream of sentences is measured by."""

from pathlib import Path

import pytest
from commands import is_one_line

from xsent.bench import soak


def test_every_stretch_is_of_different_sentences_as_long_as_the_others() -> None:
    texts = list(soak.different(3 * soak.BEGINNINGS))
    assert len(set(texts)) == len(texts)
    stretches = (texts[start : start + soak.BEGINNINGS] for start in range(0, len(texts), soak.BEGINNINGS))
    assert len({sum(map(len, stretch)) for stretch in stretches}) == 1


@pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning", "ignore::xsent.LongSentenceWarning")
def test_each_tenth_is_a_row(mini_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soak.main(str(mini_bundle), "200")
    heading, _, *rows, _, last = capsys.readouterr().out.splitlines()
    assert heading == "| after | open files | sentences/s | processor, ms | held, MiB |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {after}" for after in range(20, 201, 20)]
    assert len({row.split(" | ")[1] for row in rows}) == 1  # as many files as before
    assert last.startswith("Memory: ") and "the last tenth takes" in last
    with pytest.raises(SystemExit):
        soak.main("no/such/bundle")
    assert is_one_line(capsys.readouterr().err)
