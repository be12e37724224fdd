"""The language filter: how a text is measured, the rules, the stream and the command."""

import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import assert_refused, file_names
from trainings import command

from xsent.errors import MissingExtraError
from xsent_train.data import filtering
from xsent_train.data.corpus import Pair
from xsent_train.data.filtering import RIVALS, SCRIPTS, Identifier, PairFilter, Reason, Rules, judge, read_script

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


def line(language: str, translation: str, english: str = ENGLISH) -> bytes:
    return f"test\t{language}\t{english}\t{translation}\n".encode()


def test_a_text_is_measured() -> None:
    for text, width, words, letters in (
        ("Grüß Gott!", 9, 2, {"LATIN": 8}),
        ("你好，世界 42", 12, 2, {"CJK": 8}),  # ten columns of double width are two words
        ("カード", 6, 1, {"KATAKANA": 6}),
        ("Ｗi-Fi²", 7, 1, {"LATIN": 5}),  # a full-width letter is a Latin one, twice as wide
        ("ฉันรักคุณฉันรักคุณฉันรักคุณฉัน", 30, 3, {"THAI": 20}),  # no spaces: a word in ten columns
        ("12 + 30", 5, 3, {}),
    ):
        assert read_script(text) == (width, words, letters)
    assert read_script("Linux の使い方").share("ja") == 8 / 13  # four letters, twice as wide as the five of Linux
    assert [read_script("Добрый день").share(language) for language in ("ru", "fr")] == [1, 0]
    assert read_script("2 + 2 = 4").share("fr") == 0
    assert read_script("nuqneH").share("tlh") == 1  # scripts not known
    assert set(SCRIPTS) >= RIVALS and Identifier().languages >= RIVALS


def test_translations_stay_and_what_is_none_goes() -> None:
    judged = PairFilter(Rules())
    for language, english, translation, reason in (
        *((language, ENGLISH, text, None) for language, text in GOOD.items()),
        ("fr", "No.", "Non.", None),  # short ones stay
        ("es", "Paris", "París", None),
        ("nl", "Thanks, Tom.", "Bedankt, Tom.", None),
        ("zh", "Save file", "保存文件", None),
        ("fr", ENGLISH, f" {ENGLISH.upper()} ", Reason.IDENTICAL),
        ("fr", ENGLISH * 10, GOOD["fr"] * 10, Reason.LENGTH),
        ("fr", ENGLISH, "Le pont.", Reason.RATIO),
        ("zh", "The bridge.", GOOD["zh"] * 2, Reason.RATIO),
        ("fr", ENGLISH, GOOD["ru"], Reason.SCRIPT),
        ("ja", ENGLISH, "The old bridge is closed until next summer.", Reason.SCRIPT),
        ("fr", "2 + 2", "2+2 = 4", Reason.SCRIPT),  # nothing to learn a language from
        ("fr", ENGLISH, GOOD["de"], Reason.LANGUAGE),
        ("de", ENGLISH, "The old bridge on this river stays closed until summer.", Reason.LANGUAGE),
        ("fr", GOOD["fr"], ENGLISH, Reason.LANGUAGE),
        ("ja", ENGLISH, "河上的旧桥要关闭到明年夏天。", Reason.LANGUAGE),
        ("en", ENGLISH, "", None),  # English alone is judged by itself
        ("en", GOOD["ru"], "", Reason.SCRIPT),
        ("en", GOOD["de"], "", Reason.LANGUAGE),
        ("fr-CA", ENGLISH, GOOD["fr"], None),  # a language with a region is the language
        ("fr_CA", ENGLISH, GOOD["de"], Reason.LANGUAGE),
        ("ZH-hans", "Save file", "保存文件", None),
        ("tlh", ENGLISH, KLINGON, None),  # of an unknown one the English side is checked
        ("tlh", GOOD["de"], KLINGON, Reason.LANGUAGE),
        ("gl", ENGLISH, GALICIAN, None),  # a small one is compared with the big ones
        ("gl", ENGLISH, GOOD["de"], Reason.LANGUAGE),
    ):
        assert judged(Pair("test", language, english, translation)) is reason, (language, english, translation)


def test_the_limits_themselves_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = PairFilter(Rules(min_words=2, max_words=3, max_ratio=1.5))
    for english, translation, reason in (
        ("The cat sleeps.", "Katze schläft", None),  # 13 columns and 12
        ("The cat sleeps.", "Schläft.", Reason.LENGTH),
        ("The cat now sleeps.", "Die Katze schläft.", Reason.LENGTH),
        ("cat and dog", "die da", Reason.RATIO),  # 9 columns and 5
        ("a cat and", "die da", None),  # 7 columns and 5
    ):
        assert keep(Pair("test", "de", english, translation)) is reason
    assert 1 < Identifier().odds("Tom es vulnerable.", "es") < 10  # another Romance language is a little more probable
    pair = Pair("test", "es", "Tom is vulnerable.", "Tom es vulnerable.")
    assert PairFilter(Rules(max_odds=1.0))(pair) is Reason.LANGUAGE
    assert PairFilter(Rules(max_odds=10.0))(pair) is None
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'xsent\[train\]'"):
        Identifier()


def test_lines_come_back_with_their_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = {
        line("fr", GOOD["fr"]): ("fr", ""),
        b"no pair\n": ("", "1 fields instead of 4, 3 or 2"),
        line("de", GOOD["fr"]): ("de", "wrong language"),
        line("ru", GOOD["ru"]): ("ru", "left out"),
        b"\xff\t\t\t\n": ("", "not UTF-8"),
    }
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + 9 * b"".join(verdicts)))
    monkeypatch.setattr(filtering, "CHUNK", 4)
    for processes in (1, 2):
        judged = judge(path, Rules(), frozenset(["fr", "de"]), processes=processes)
        assert [(text, tuple(verdict)) for text, verdict in judged] == 9 * list(verdicts.items())


@pytest.mark.parametrize("processes", [1, 2])
def test_only_a_few_chunks_are_read_ahead(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    taken = count()
    lines = (line("fr", GOOD["fr"]) for _ in taken)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(readline=lambda _: next(lines))))
    monkeypatch.setattr(filtering, "CHUNK", 10)
    verdicts = judge("-", Rules(), processes=processes)
    assert len(list(islice(verdicts, 100))) == 100
    assert next(taken) <= 100 + 10 * 3 * processes


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pairs.tsv"
    crlf = line("de", GOOD["de"]).replace(b"\n", b"\r\n")
    path.write_bytes(line("fr", GOOD["fr"]) + line("fr", GOOD["de"]) + crlf + b"bad\n" + line("tlh", "nuqneH " * 7))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    return command("filter", *arguments, "--processes", 1)


def test_the_command_keeps_lines_and_says_what_went(corpus: Path) -> None:
    code, stdout, stderr = run(corpus, "kept.tsv", "--rejected", "removed.tsv")
    lines = corpus.read_bytes().splitlines(keepends=True)
    assert (code, stdout) == (0, "")
    assert Path("kept.tsv").read_bytes().splitlines(keepends=True) == [lines[0], lines[2], lines[4]]
    removed = b"wrong language\t" + lines[1] + b"1 fields instead of 4, 3 or 2\t" + lines[3]
    assert Path("removed.tsv").read_bytes() == removed
    table = [row.split() for row in stderr.splitlines()]
    assert table[0][:4] == ["language", "pairs", "kept", "kept"]
    assert table[1] == ["fr", "2", "1", "50.0", "0", "0", "0", "0", "1"]
    assert table[-3] == ["total", "4", "3", "75.0", "0", "0", "0", "0", "1"]
    assert stderr.splitlines()[-2] == "bad lines, 1 fields instead of 4, 3 or 2: 1"
    assert stderr.splitlines()[-1].endswith("not checked for their language: tlh")
    code, stdout, stderr = run(corpus, "other.tsv", "--languages", "fr,de", "--json")
    report = json.loads(stdout)
    assert (code, stderr) == (0, "")
    assert (report["kept"], report["bad"], report["left_out"]) == (2, {"1 fields instead of 4, 3 or 2": 1}, 1)
    rows = [(row["language"], row["kept"], row["wrong language"]) for row in report["rows"]]
    assert rows == [("fr", 1, 1), ("de", 1, 0)]


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
    assert run(corpus, folder, "--force") == (1, "", f"Error: {folder}: a folder; expected a file\n")
    assert run(corpus, folder / "no" / "kept.tsv") == (1, "", f"Error: {folder / 'no'}: no such folder\n")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", [], "empty; expected source, language, English, translation"),
        (b"bad\nbad\nfr\ttest\tYes.\tOui.\n", [], r"\(1 fields .*: 2, no language code in the second field: 1\)"),
        (line("fr", GOOD["fr"]), ["--languages", "it"], r"no pair kept \(not in it: 1\); nothing written"),
        (line("fr", GOOD["fr"]), ["--rejected", "kept.tsv"], "is the file for the pairs kept"),
        (line("fr", GOOD["fr"]), ["--max-ratio", "0"], "max ratio 0.0: expected 1 or more"),
        (line("fr", GOOD["fr"]), ["--max-odds", "nan"], "expected"),
        (line("fr", GOOD["fr"]), ["--min-script", "1.5"], "expected"),
        (line("fr", GOOD["fr"]), ["--min-words", "9", "--max-words", "3"], "expected 1 <= min <= max"),
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
