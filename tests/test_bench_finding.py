"""What people look for, measured."""

from pathlib import Path

from toy_documents import toy_documents

from xsent import SentenceEncoder
from xsent.bench.finding import measure_finding


def test_both_tables_are_filled(mini_bundle: Path, tmp_path: Path) -> None:
    for code in ("en", "fr"):
        lines = dict.fromkeys(line for document in toy_documents(code, 20) for line in document)
        (tmp_path / f"{code}.txt").write_text("".join(f"{line}\n" for line in [*lines][:20]))
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
