"""Document alignment, measured: what is compared."""

from pathlib import Path

import pytest
from toy_documents import ToyEncoder, toy_documents

from xsent.bench.documents import make_documents, measure_documents, read_parallel
from xsent.errors import DataError

LINES = {code: [line for document in toy_documents(code, 20) for line in document] for code in ("en", "fr")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for code, lines in LINES.items():
        (tmp_path / f"{code}.txt").write_text("".join(f"{line} \n" for line in lines))
    return tmp_path


def test_documents_by_hand() -> None:
    texts = {"en": list("abcdefg")}
    assert make_documents(texts, 3, 3) == {"en": [["a", "b", "c"], ["d", "e", "f"]]}
    assert make_documents(texts, 5, 1) == {"en": [list("abcde"), list("bcdef"), list("cdefg")]}


def test_the_report_has_every_row_for_every_set(folder: Path) -> None:
    text = measure_documents(
        ToyEncoder(), folder, ["en", "fr"], command="xsent-bench documents x", sets=[(3, 3), (4, 1)]
    )
    assert text.startswith("`xsent-bench documents x`")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    rows = [
        f"{bias}, {weight}, {metric}"
        for bias in ("biased", "debiased")
        for weight in ("mean", "weighted")
        for metric in ("cosine", "margin")
    ]
    head = ["row", "en–fr", "mean"]
    assert [row[0] for row in cells] == ["row", "---", *rows] * 2
    assert cells[0] == head
    assert all(row[1] == row[2] for row in cells if row[0] in rows)
    count = len(LINES["en"])
    assert f"### {count // 3:,} documents of 3 consecutive sentences, one starting every 3" in text
    assert f"### {count - 3:,} documents of 4 consecutive sentences, one starting every 1" in text
    assert text.count("m = ") == 2


def test_files_that_are_not_parallel(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "de.txt").write_text("one line\n")
    with pytest.raises(DataError, match=r"not parallel.* de 1"):
        read_parallel(folder, ["en", "de"])
    with pytest.raises(DataError, match=r"xx\.txt"):
        read_parallel(folder, ["en", "xx"])
    with pytest.raises(DataError, match="empty"):
        (tmp_path / "it.txt").write_text("")
        read_parallel(folder, ["it"])
    with pytest.raises(ValueError, match="at least two different"):
        measure_documents(ToyEncoder(), folder, ["en", "en"], command="")
