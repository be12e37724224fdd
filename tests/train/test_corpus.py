"""The corpus reader: streams, compressed files, and lines that are no pairs."""

import lzma
from pathlib import Path

import pytest

from xsent.errors import DataError
from xsent_train.data.corpus import Corpus, Pair

GOOD = "talk\tde\tThe cat sleeps.\tDie Katze schläft.\n"


def test_bad_lines_are_skipped_counted_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, good = tmp_path / "bad.tsv", GOOD.encode()
    path.write_bytes(good + b"no tab at all\n" + b"talk\tde\tbyte \xff\tx\n" + b"talk\tde\t\tx\n" + good)
    assert len(list(Corpus([path]))) == 2
    assert f"{path}:2: skipped, 1 field instead of 4, 3 or 2" in caplog.text
    assert f"{path}:3: skipped, not UTF-8" in caplog.text
    counts = "1 1 field instead of 4, 3 or 2, 1 not UTF-8, 1 an empty field"
    assert caplog.records[-1].message == f"skipped bad lines: {counts}"
    caplog.clear()
    path.write_text("nothing\n" * 1000 + GOOD, encoding="utf-8")  # a flood is a number, not a flood of messages
    list(Corpus([path]))
    assert len(caplog.records) == 6
    assert "1000 1 field instead of 4" in caplog.records[-1].message


def test_a_line_of_fewer_fields_is_a_sentence_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.tsv").write_text("wiki\tRain fell.\n" + GOOD + "wiki\t \n", encoding="utf-8")
    corpus = Corpus([tmp_path / "a.tsv"], frozenset(["fr"]))
    (alone,) = corpus
    assert alone == Pair("wiki", "en", "Rain fell.", "") and alone.alone and alone.cell == ("wiki", "en")
    assert caplog.records[-1].message == "skipped bad lines: 1 an empty field"
    assert not Pair("talk", "en", "Hello.", "Hi.").alone  # a paraphrase is a pair
    other = Corpus.parse(b"talk\tfr\tIl pleut.\n")
    assert other == Pair("talk", "fr", "Il pleut.", "") and other.cell == ("talk", "fr alone")
    (tmp_path / "a.tsv").write_text(GOOD + GOOD.replace("\tde\t", "\tfr\t"), encoding="utf-8")
    assert [pair.language for pair in corpus] == ["fr"]


def test_a_line_is_read_as_the_encoder_reads_its_texts() -> None:
    assert Corpus.parse("a\tde\tship\u00adping\tSchiff\u00adfahrt".encode()) == Pair(
        "a", "de", "shipping", "Schifffahrt"
    )
    assert Corpus.parse("a\tde\t\u00ad\tHallo".encode()) == "an empty field"


def test_files_that_hold_no_pairs_are_named(tmp_path: Path) -> None:
    for name, content, message in (
        ("missing.tsv", None, "No such file"),
        ("empty.tsv", b"", "no usable pair"),
        ("other.tsv", b"just text\n", "no usable pair"),
        ("damaged.tsv.xz", lzma.compress(GOOD.encode() * 100)[:-30], "damaged"),
        ("not.tsv.gz", b"not gzip", "damaged"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message) as raised:
            list(Corpus([tmp_path / name]))
        assert str(tmp_path / name) in str(raised.value)
