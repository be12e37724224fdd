"""`xsent mine` and `xsent score`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, edit_json, write_lines
from conftest import sentences

from xsent import SentenceEncoder, mine_bitext
from xsent.cli.mine import _beginning

TRANSLATIONS = {
    "The cat sleeps on the sofa.": "Le chat dort sur le canapé.",
    "It will rain tomorrow.": "Il pleuvra demain.",
    "Where is the railway station?": "Où est la gare ?",
    "She bought three apples.": "Elle a acheté trois pommes.",
    "The president signed the law.": "Le président a signé la loi.",
    "My brother plays the piano.": "Mon frère joue du piano.",
}
ENGLISH, FRENCH, PAIRS = [*TRANSLATIONS], [*TRANSLATIONS.values()][::-1], {*TRANSLATIONS.items()}


def columns(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def pairs_of(out: str) -> list[tuple[str, ...]]:
    return [tuple(row[1:]) for row in columns(out)]


@pytest.fixture
def src(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "en.txt", ENGLISH)


@pytest.fixture
def trg(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "fr.txt", FRENCH)


def test_lines_without_words_have_no_translation_and_no_duplicate(run: Runner, src: Path, trg: Path) -> None:
    for file in (src, trg):
        file.write_text(f"N/A\n...\n{file.read_text()}?!\nN/A\n\n")
    assert set(pairs_of(run("mine", src, trg)[1])) == PAIRS
    refused = run("duplicates", src)
    assert_refused(refused, f"no duplicates in {src}: no pair reaches the threshold 1.25")


def test_score_and_standard_input(run: Runner, trg: Path, tmp_path: Path) -> None:
    assert set(pairs_of(run("mine", "-", trg, stdin="\n".join(ENGLISH))[1])) == PAIRS
    short = "\n".join(FRENCH[:4])
    _, out, _ = run("mine", trg, "-", "--retrieval", "bwd", "--margin", "distance", "-k", 2, stdin=short)
    assert sorted(pairs_of(out)) == sorted((text, text) for text in FRENCH[:4])
    pairs = [*sorted(PAIRS), (ENGLISH[0], FRENCH[0]), sorted(PAIRS)[0]]
    code, out, err = run("score", stdin="\n".join(map("\t".join, pairs)))
    assert (code, err, pairs_of(out)) == (0, "", pairs)
    scores = [float(row[0]) for row in columns(out)]
    assert min(scores[:6]) > 1 > scores[6] and scores[7] == scores[0]
    some = [(ENGLISH[0], FRENCH[5]), ("", FRENCH[0]), (ENGLISH[1], ENGLISH[1])]
    file = write_lines(tmp_path / "pairs.tsv", map("\t".join, some))
    code, out, _ = run("score", file, "--margin", "absolute", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and rows[0].keys() == {"score", "source", "target"}
    a, b = SentenceEncoder().encode([ENGLISH[0], FRENCH[5]])
    assert [row["score"] for row in rows] == pytest.approx([float(a @ b), 0, 1], abs=1e-6)


def encode(run: Runner, path: Path, lines: list[str], precision: str = "float32") -> Path:
    text = write_lines(path.with_suffix(".lines"), lines)
    assert run("encode", text, "--output", path, "--precision", precision)[0] == 0
    return path


def test_empty_and_repeated_lines(run: Runner, tmp_path: Path) -> None:
    src = write_lines(tmp_path / "en.txt", ["", *ENGLISH, ENGLISH[0], "  ", ENGLISH[0]])
    trg = write_lines(tmp_path / "fr.txt", [*FRENCH, "", FRENCH[5]])
    assert set(pairs_of(run("mine", src, trg)[1])) == PAIRS
    _, out, _ = run("mine", src, trg, "--no-unify", "--retrieval", "fwd")
    assert [row[1] for row in columns(out)].count(ENGLISH[0]) == 3
    assert not any("" in row for row in columns(out))


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_vectors_may_be_made_before(run: Runner, src: Path, trg: Path, tmp_path: Path, precision: str) -> None:
    left, right = (encode(run, tmp_path / f"{lines[0]}.npy", lines, precision) for lines in (ENGLISH, FRENCH))
    _, expected, _ = run("mine", src, trg)
    for given in (["--src-vectors", left], ["--trg-vectors", right], ["--src-vectors", left, "--trg-vectors", right]):
        _, out, _ = run("mine", src, trg, *given)
        assert pairs_of(out) == pairs_of(expected) and (out == expected or precision != "float32")


def test_threshold_for_a_precision(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    english, french = sentences("en"), sentences("fr")
    pairs = [*zip(english, french, strict=True), ("", french[0])]
    file = write_lines(tmp_path / "pairs.tsv", map("\t".join, pairs))
    _, out, err = run("score", file, "--model", mini_bundle, "--precision", 0.9)
    scores = np.array([row[0] for row in columns(out)], np.float32)
    told = re.fullmatch(
        r"threshold (\S+): (\d+) of 33 pairs reach it, an estimated (\S+)% of them right, judged by shuffled pairs\n",
        err,
    )
    assert told and (scores[:-1] >= np.float32(told[1])).sum() == int(told[2]) and float(told[3]) >= 90


def test_translations_are_printed_best_first(run: Runner, src: Path, trg: Path) -> None:
    code, out, err = run("mine", src, trg)
    rows = columns(out)
    assert code == 0 and "6 pairs of 6 source and 6 target lines" in err and set(pairs_of(out)) == PAIRS
    scores = [float(score) for score, _, _ in rows]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 1
    for kept in (2, 4):  # a printed score is a threshold that keeps its pair
        assert columns(run("mine", src, trg, "--threshold", rows[kept - 1][0])[1]) == rows[:kept]
    found = [json.loads(line) for line in run("mine", src, trg, "--json")[1].splitlines()]
    assert {(row["source"], row["target"]) for row in found} == PAIRS
    assert all(row["source_line"] + row["target_line"] == 7 for row in found)
    assert [set(row) for row in found] == [{"score", "source", "target", "source_line", "target_line"}] * 6
    write_lines(trg, [line.replace(" ", "\t", 1) for line in FRENCH])  # a tab in a sentence makes no column
    assert set(pairs_of(run("mine", src, trg)[1])) == PAIRS


def test_vectors_that_do_not_fit(run: Runner, src: Path, trg: Path, tmp_path: Path) -> None:
    ours, short = encode(run, tmp_path / "s.npy", ENGLISH), encode(run, tmp_path / "short.npy", ENGLISH[:5])
    other = encode(run, tmp_path / "t.npy", FRENCH)
    edit_json(tmp_path / "t.npy.json", fingerprint="feedfeedfeedfeed")
    bits, half = (encode(run, tmp_path / f"{form}.npy", ENGLISH, form) for form in ("binary", "float16"))
    both = f"feedfeedfeedfeed.*{SentenceEncoder().fingerprint}|{SentenceEncoder().fingerprint}.*feedfeedfeedfeed"
    for given, message in (
        (["--trg-vectors", other], both),
        (["--src-vectors", ours, "--trg-vectors", other], both),
        (["--src-vectors", short], "5 vectors for 6 lines"),
        (["--src-vectors", ours, "--trg-vectors", half], "float32 of 384 dimensions, .* float16 of 384; encode both"),
        (["--src-vectors", bits, "--trg-vectors", ours], "binary vectors have no cosines"),
    ):
        assert_refused(run("mine", src, trg, *given), message)


def test_numbers_agree_opposites_are_apart_and_a_translation_beats_a_copy(run: Runner, tmp_path: Path) -> None:
    english = [
        "The bridge was closed in 1987.",
        "Population: 48,210",
        "We open on 12 March.",
        "Bring the keys.",
        "Berlin",
        "Enable dark mode",
        "The ninth chapter",
    ]
    french = [
        "Population : 48 120",
        "Le pont a été fermé en 1997.",
        "Nous ouvrons le 12.3.",
        "Apporte les clés.",
        "BERLIN",
        "Désactiver le mode sombre",
        "Le onzième chapitre",
    ]
    copies = ["Bring the keys!"] * 31
    src = write_lines(tmp_path / "en.txt", [*english, "Il neige.", *copies])
    trg = write_lines(tmp_path / "fr.txt", ["Bring the keys.", *french, *copies, "Il neige."])
    right = {(english[2], french[2]), (english[3], french[3]), (english[4], french[4]), ("Il neige.", "Il neige.")}
    for options in ([], ["--retrieval", "fwd"], ["--retrieval", "intersect"], ["--margin", "distance"], ["--no-unify"]):
        found = {*pairs_of(run("mine", src, trg, *options)[1])}
        assert found >= right - {("Il neige.", "Il neige.")} and not found & {
            (english[0], french[1]),
            (english[1], french[0]),
            *zip(english[5:], french[5:], strict=True),
        }
        assert {row for row in found if english[3] in row} == {(english[3], french[3])}
        assert ("Il neige.", "Il neige.") in found
    assert (english[0], french[1]) in pairs_of(run("mine", src, trg, "--no-strict")[1])
    vectors = SentenceEncoder().encode(english)
    with pytest.raises(ValueError, match="6 texts for 7 vectors"):
        mine_bitext(vectors, vectors, texts=(english[1:], english))


def test_the_copy_of_a_line_that_has_a_translation_is_no_pair(run: Runner, tmp_path: Path) -> None:
    german = ["Drücken Sie Start, um das Gerät einzuschalten.", "Drücken Sie Stopp, um das Gerät auszuschalten."]
    english = ["Press Start to switch the device on.", "Press Stop to switch the device off."]
    src = write_lines(tmp_path / "de.txt", [*german, "Alt.", "Es regnet.", "Nur in Innenräumen."])
    trg = write_lines(tmp_path / "en.txt", [*english, german[0], german[0], "Page 8", "Nine cats."])
    for swapped in (False, True):
        sides = (trg, src) if swapped else (src, trg)
        found = {(*sorted(pair),) for pair in pairs_of(run("mine", *sides, "--threshold", "1.1")[1])}
        assert found == {*zip(german, english, strict=True)}


def test_the_beginning_of_a_central_text() -> None:
    assert _beginning("請求書" * 40) == "請求書" * 26 + "請…"
    assert _beginning("a b") == "a b"
