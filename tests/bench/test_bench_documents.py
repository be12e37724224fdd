"""What is found, measured: whole documents and their translations, and what people look for."""

from itertools import product
from pathlib import Path

import pytest
from commands import write_lines
from toy_documents import ToyEncoder, toy_documents

from xsent import SentenceEncoder
from xsent.errors import DataError
from xsent_bench.experiments.documents import make_documents, measure_documents
from xsent_bench.experiments.retrieval import measure_finding

LINES = {code: [line for document in toy_documents(code, 20) for line in document] for code in ("en", "fr")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for code, lines in LINES.items():
        write_lines(tmp_path / f"{code}.txt", (f"{line} " for line in lines))
    return tmp_path


def test_documents_by_hand() -> None:
    texts = {"en": list("abcdefg")}
    assert make_documents(texts, 3, 3) == {"en": [["a", "b", "c"], ["d", "e", "f"]]}
    assert make_documents(texts, 5, 1) == {"en": [list("abcde"), list("bcdef"), list("cdefg")]}


def test_the_report_has_every_row_for_every_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent_bench.experiments.documents.SETS", [(3, 3), (4, 1)])
    text = measure_documents(ToyEncoder(), folder, ["en", "fr"], command="xsent-bench documents x")
    assert text.startswith("# Document alignment\n\n`xsent-bench documents x`") and text.count("m = ") == 2
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    kinds = product(("biased", "debiased"), ("mean", "weighted"), ("cosine", "margin"))
    rows = [", ".join(kind) for kind in kinds]
    assert [row[0] for row in cells] == ["row", "---", *rows] * 2 and cells[0] == ["row", "en–fr", "mean"]
    assert all(row[1] == row[2] for row in cells if row[0] in rows)
    count = len(LINES["en"])
    assert f"## {count // 3:,} documents of 3 consecutive sentences, one starting every 3" in text
    assert f"## {count - 3:,} documents of 4 consecutive sentences, one starting every 1" in text


@pytest.mark.parametrize(
    ("languages", "message"),
    [("en de", r"not parallel.* de 1"), ("en xx", r"xx\.txt"), ("it pt", "empty"), ("en en", "at least two different")],
)
def test_files_that_are_not_parallel(folder: Path, languages: str, message: str) -> None:
    for code, text in (("de", "one line\n"), ("it", ""), ("pt", "")):
        (folder / f"{code}.txt").write_text(text)
    with pytest.raises((DataError, ValueError), match=message):
        measure_documents(ToyEncoder(), folder, languages.split(), command="")


def test_both_tables_are_filled(mini_bundle: Path, tmp_path: Path) -> None:
    for code, lines in LINES.items():
        write_lines(tmp_path / f"{code}.txt", [*dict.fromkeys(lines)][:20])
    encoder = SentenceEncoder(mini_bundle, threads=1)
    text = measure_finding(encoder, tmp_path, ["en", "fr"], command="xsent-bench finding x")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    found = {row[0]: tuple(map(float, row[1:])) for row in cells[2:6]}
    assert list(found) == ["its translation", "its first four words", "three of its words", "its rarest word"]
    assert all(joined >= meaning for name, (meaning, joined) in found.items() if name != "its translation")
    assert [row[:2] for row in cells[8:]] == [
        [name, score]
        for name in ("en and fr", "all 2 languages", "en, a tenth also in fr")
        for score in ("margin", "cosine")
    ]
    assert all(0 <= float(share) <= 100 for row in cells[8:] for share in row[2:])
