"""The filter of a corpus: the rules, and the command."""

import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from commands import assert_refused, file_names
from trainings import command

from xsent.errors import MissingExtraError
from xsent_train.data.filtering import RIVALS, Identifier, PairFilter, Reason, width

ENGLISH = "The old bridge over the river is closed until next summer."
GOOD = {
    "fr": "Le vieux pont sur la rivière est fermé jusqu'à l'été prochain.",
    "de": "Die alte Brücke über den Fluss ist bis zum nächsten Sommer gesperrt.",
    "ru": "Старый мост через реку закрыт до следующего лета.",
    "ja": "川に架かる古い橋は来年の夏まで通行止めです。",
    "zh": "河上的旧桥要关闭到明年夏天。",
}
GALICIAN = "A ponte vella sobre o río está pechada ata o vindeiro verán."
KLINGON = "'ej bIQtIqDaq meH QaQbe' SoQ vaj poH"


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """The model of languages takes half a second to read."""
    with mock.patch("xsent_train.data.filtering.Identifier", cache(Identifier)):
        yield


def line(language: str, translation: str, english: str = ENGLISH) -> bytes:
    return f"test\t{language}\t{english}\t{translation}\n".encode()


def test_width_counts_columns_without_spaces() -> None:
    for text, columns in (("Grüß Gott!", 9), ("你好，世界 42", 12), ("カード", 6), ("Ｗi-Fi²", 7), ("", 0)):
        assert width(text) == columns


def test_translations_are_kept_and_other_text_is_removed() -> None:
    assert Identifier().languages >= RIVALS
    keep = PairFilter()
    for language, english, translation, reason in (
        *((language, ENGLISH, text, "") for language, text in GOOD.items()),
        ("fr", "No.", "Non.", ""),  # short ones stay
        ("es", "Paris", "París", ""),
        ("es", "Tom is vulnerable.", "Tom es vulnerable.", ""),  # another Romance language is a little more probable
        ("nl", "Thanks, Tom.", "Bedankt, Tom.", ""),
        ("zh", "Save file", "保存文件", ""),
        ("fr", ENGLISH, f" {ENGLISH.upper()} ", Reason.IDENTICAL),
        ("fr", ENGLISH, "Le pont.", Reason.RATIO),
        ("zh", "The bridge.", GOOD["zh"] * 2, Reason.RATIO),
        ("fr", ENGLISH, GOOD["ru"], Reason.LANGUAGE),
        ("ja", ENGLISH, "The old bridge is closed until next summer.", Reason.LANGUAGE),
        ("fr", ENGLISH, GOOD["de"], Reason.LANGUAGE),
        ("de", ENGLISH, "The old bridge on this river stays closed until summer.", Reason.LANGUAGE),
        ("fr", GOOD["fr"] + " Oui.", ENGLISH, Reason.LANGUAGE),
        ("ja", ENGLISH, "河上的旧桥要关闭到明年夏天。", Reason.LANGUAGE),
        ("de", f"  {ENGLISH.upper()}", GOOD["de"].lower(), Reason.DUPLICATE),  # but for case and spaces
        ("nl", "Thanks, Tom.", "Bedankt, Tom!", ""),
        ("fr-CA", ENGLISH, GOOD["fr"], ""),  # a language with a region is the language
        ("fr_CA", ENGLISH, GOOD["de"], Reason.LANGUAGE),
        ("ZH-hans", "Save file", "保存文件", ""),
        ("tlh", ENGLISH, KLINGON, ""),  # of an unknown one the English side is checked
        ("tlh", GOOD["de"], KLINGON, Reason.LANGUAGE),
        ("gl", ENGLISH, GALICIAN, ""),  # a small one is compared with the big ones
        ("gl", ENGLISH, GOOD["de"], Reason.LANGUAGE),
    ):
        assert keep.judge(line(language, translation, english)) == (language, reason), (language, english, translation)


def test_sentences_without_translation_are_judged_by_themselves() -> None:
    keep = PairFilter()
    for text, verdict in (
        (f"test\t{ENGLISH}", ("en", "")),
        (f"test\t{ENGLISH.lower()}", ("en", Reason.DUPLICATE)),
        (f"test\t{GOOD['ru']}", ("en", Reason.LANGUAGE)),
        (f"test\tde\t{GOOD['de']}", ("de", "")),
        (f"test\tde\t{GOOD['fr']}", ("de", Reason.LANGUAGE)),
    ):
        assert keep.judge(text.encode()) == verdict


def test_the_limit_itself_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = PairFilter()
    assert keep.judge(line("de", "na ja, denn so", "well")).reason == Reason.RATIO  # 11 columns and 4
    assert keep.judge(line("de", "na ja denn so", "well")).reason == ""  # 10 columns and 4
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(MissingExtraError, match=r"pip install .xsent\[train\]."):
        Identifier()


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pairs.tsv"
    crlf = line("de", GOOD["de"]).replace(b"\n", b"\r\n")
    path.write_bytes(line("fr", GOOD["fr"]) + line("fr", GOOD["de"]) + crlf + b"bad\n" + line("tlh", "nuqneH " * 7))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    return command("filter", *arguments)


def test_the_command_keeps_lines_and_counts_the_others(corpus: Path) -> None:
    code, stdout, stderr = run(corpus, "kept.tsv", "--rejected", "removed.tsv")
    lines = corpus.read_bytes().splitlines(keepends=True)
    assert (code, stdout) == (0, "")
    assert Path("kept.tsv").read_bytes().splitlines(keepends=True) == [lines[0], lines[2], lines[4]]
    removed = b"wrong language\t" + lines[1] + b"1 field instead of 4, 3 or 2\t" + lines[3]
    assert Path("removed.tsv").read_bytes() == removed
    table = [row.split() for row in stderr.splitlines()]
    assert table[0][:4] == ["language", "pairs", "kept", "kept"]
    assert table[1] == ["fr", "2", "1", "50.0", "0", "0", "0", "1"]
    assert table[-2] == ["total", "4", "3", "75.0", "0", "0", "0", "1"]
    assert stderr.splitlines()[-1] == "skipped, 1 field instead of 4, 3 or 2: 1"
    code, stdout, stderr = run(corpus, "other.tsv", "--json")
    report = json.loads(stdout)
    assert (code, stderr) == (0, "")
    assert report["skipped"] == {"1 field instead of 4, 3 or 2": 1}
    rows = [(row["language"], row["kept"], row["wrong language"]) for row in report["rows"]]
    assert rows == [("fr", 1, 1), ("de", 1, 0), ("tlh", 1, 0), ("total", 3, 1)]


@pytest.mark.parametrize(("suffix", "unpack"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_packed(corpus: Path, suffix: str, unpack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    packed = [Path(f"{name}{suffix}") for name in ("kept", "again")]
    for path in packed:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(corpus.read_bytes())))
        assert run("-", path)[0] == 0
    lines = corpus.read_bytes().splitlines(keepends=True)
    assert [unpack(path.read_bytes()) for path in packed] == [lines[0] + lines[2] + lines[4]] * 2
    assert packed[0].read_bytes() == packed[1].read_bytes()


def test_nothing_is_replaced_without_force(corpus: Path) -> None:
    out = corpus.with_name("kept.tsv")
    out.write_text("old")
    assert run(corpus, out) == (1, "", f"Error: {out}: exists; --force replaces it\n")
    assert run(corpus, "new.tsv", "--rejected", out)[0] == 1
    assert out.read_text() == "old" and not Path("new.tsv").exists()
    assert run(corpus, out, "--force")[0] == 0
    assert out.read_bytes().startswith(line("fr", GOOD["fr"]))
    folder = corpus.parent
    assert run(corpus, folder, "--force") == (1, "", f"Error: {folder}: is a folder; expected a file\n")
    assert run(corpus, folder / "no" / "kept.tsv") == (
        1,
        "",
        f"Error: {folder / 'no'}: no such folder; create it first\n",
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", [], "empty; expected source, language, English, translation"),
        (b"bad\nbad\nfr\ttest\tYes.\tOui.\n", [], r"\(1 field .*: 2, no language code in the second field: 1\)"),
        (line("fr", GOOD["fr"]), ["--rejected", "kept.tsv"], "this is the file for the kept pairs"),
    ],
)
def test_what_is_refused_writes_nothing(
    content: bytes, options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_bytes(content)
    Path("kept.tsv").write_text("old")
    assert_refused(run("pairs.tsv", "kept.tsv", "--rejected", "removed.tsv", "--force", *options), message)
    assert Path("kept.tsv").read_text() == "old" and file_names(tmp_path) == {"kept.tsv", "pairs.tsv"}
