"""Downloaded test sets become the folders that the commands read."""

from pathlib import Path

import testsets
from pytest import MonkeyPatch


def download(folder: Path) -> None:
    """Two sentences of each set, as it is published."""
    for language, code in testsets.CODES.items():
        short = code[:3]
        for side in ("eng", short) if language != "en" else ():
            write(folder / f"LASER/data/tatoeba/v1/tatoeba.{short}-eng.{side}", f"One {side}.\nTwo {side}.\n")
        write(folder / f"flores200_dataset/devtest/{code}.devtest", f"One.\nTwo {code}.\n")
        for part in testsets.PARTS:
            write(folder / f"sib-200/data/annotated/{code}/{part}.tsv", "index_id\tcategory\ttext\n1\tsports\tOne.\n")
        for part in ("dev", "test"):
            write(folder / f"stsb-multi-mt/data/stsb-{language}-{part}.csv", "One.,Two.,2.5\r\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def test_sets_are_arranged_and_missing_ones_skipped(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    downloads, out = tmp_path / "downloads", tmp_path / "eval"
    assert [line.split("\t")[1] for line in testsets.arrange(downloads, out)] == ["skipped"] * 4 and not out.exists()
    download(downloads)
    lines = testsets.arrange(downloads, out)
    assert [line.split("\t")[1:] for line in lines] == [[f"{n} files", "other bytes"] for n in (8, 9, 27, 18)]
    assert (out / "tatoeba/en-nl.tsv").read_bytes() == b"One eng.\tOne nld.\nTwo eng.\tTwo nld.\n"
    assert (out / "flores/ru.txt").read_bytes() == b"One.\nTwo rus_Cyrl.\n"
    assert (out / "sib200/ja/dev.tsv").read_bytes() == b"index_id\tcategory\ttext\n1\tsports\tOne.\n"
    assert (out / "stsb/it-test.csv").read_bytes() == b"One.,Two.,2.5\r\n"
    files = testsets.flores(downloads)
    monkeypatch.setitem(testsets.SETS, "flores", (testsets.flores, testsets.digest(files)))
    assert "flores\t9 files\tas measured" in testsets.arrange(downloads, out)
