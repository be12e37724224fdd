"""Evaluation protocols on made-up files, with encoders whose vectors are written down."""

import lzma
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import raises, write_lines
from toy_documents import Angles, Letters

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation import as_stored, translation
from xsent.evaluation.judgements import HEADER, contrasts, ranks, spearman, sts, words
from xsent.evaluation.translation import space, tatoeba, xsim, xsim_errors, xsr

Protocol = Callable[..., Any]
BENCH = Path(__file__).parents[2] / "bench"
ENGLISH = ["abc", "bcd", "cde", "def", "efg"]
FRENCH = ["cba", "dcb", "edc", "fed", "gfe"]
TEXTS = ["The cat sleeps.", "Pay the rent before the first.", ""]


def test_tatoeba_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    (tmp_path / "en-xx.tsv").write_text("ab\tba\ncd\tdc\nef\teg\n")
    (tmp_path / "en-yy.tsv").write_text("ab\tba\nab\tba\n")
    xx, yy, mean = tatoeba(Letters(), tmp_path).rows()
    counts = {"queries": 3, "xx_en_candidates": 3, "en_xx_candidates": 3}
    assert xx == {"language": "xx", **counts, "xx_en": 100.0, "en_xx": 100.0}
    assert yy["xx_en"] == 50  # of equal candidates the first is found
    assert mean == {"language": "mean", "xx_en": 75.0, "en_xx": 75.0}
    assert "2 of 2 languages" in capsys.readouterr().err
    assert translation.languages_of(Letters("en", "yy", "zz"), tmp_path) == ["yy"]
    with pytest.raises(DataError, match=r"nowhere: no such folder; expected an en-XX\.tsv"):
        tatoeba(Letters("en", "fr"), tmp_path / "nowhere")
    blocks = translation.encoded(Angles(), iter(["30"] * 9999 + ["0"]))
    found = translation.retrieve("en_xx", Angles().encode(["1"]), blocks, [9999])
    assert found == {"en_xx": 100, "en_xx_candidates": 10_000}


def test_xsr_by_hand(tmp_path: Path) -> None:
    (tmp_path / "en-xx.tsv").write_text("C\ts\tab\tba\nQ\ts\tcd\tdc\nQ\ts\tef\teg\nQ\ts\tgh\tgi\n")
    (tmp_path / "distractors.xx.txt.xz").write_bytes(lzma.compress(b"gh\nzz\n"))
    result = xsr(Letters(), tmp_path, ["xx"])
    score = result.scores["xx"]
    assert (score["queries"], score["en_xx_candidates"], score["xx_en_candidates"]) == (3, 6, 4)
    assert score["en_xx"] == pytest.approx(200 / 3) == result.mean["en_xx"]  # "gh" finds a distractor
    assert score["xx_en"] == 100
    assert "Europarl" in result.note


def test_xsim_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    eye = np.eye(6)
    assert xsim_errors(eye, eye, k=1) == 0
    assert xsim_errors(eye, eye[[1, 0, 2, 3, 4, 5]], k=1) == 2
    eye[5] = 0  # an empty sentence finds nothing
    assert xsim_errors(eye, eye, k=1) == 1
    # The last target is nearer to all sources (0.91) than their translations (0.76) are; its own neighbours, all as
    # near, give it away: 0.91 / 0.79 is less than 0.76 / 0.61.
    src, trg = np.eye(5, 6), np.eye(5, 6)
    src[:, 5], trg[:, 5] = 3, 0.6
    trg[4] = [0, 0, 0, 0, 0.3, 1]
    assert (xsim_errors(src, trg, margin="absolute"), xsim_errors(src, trg, margin="ratio")) == (4, 0)
    raises(ValueError, "5 and 4 sentences are not parallel", xsim_errors, np.eye(5), np.eye(4, 5))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    (tmp_path / "README.md").write_text("about")
    swapped = [*FRENCH[1::-1], *FRENCH[2:]]
    for name, lines in (("en", ENGLISH), ("fr", FRENCH), ("de", swapped)):
        write_lines(tmp_path / f"{name}.txt", lines)
    result = xsim(Letters(), tmp_path)
    assert result.rows() == [
        {"language": "de", "sentences": 5, "xx_en": 40.0, "en_xx": 40.0},
        {"language": "fr", "sentences": 5, "xx_en": 0.0, "en_xx": 0.0},
        {"language": "mean", "xx_en": 20.0, "en_xx": 20.0},
    ]
    assert "ratio" in result.note and "2 of 2 languages" in capsys.readouterr().err
    assert list(xsim(Letters("en", "fr", "it"), tmp_path).scores) == ["fr"]
    assert list(xsim(Letters(), tmp_path, ["en", "fr"]).scores) == ["fr"]  # not compared with itself
    assert xsim(Letters(), tmp_path, ["de"], margin="absolute").rows()[0]["xx_en"] == 40
    raises(TypeError, "got one str; put it in a list", xsim, Letters(), tmp_path, "fr")


STS = 'A cat.,A dog: 80.,1.0\n"One, two.",Three: 10.,4.5\na,b: 30,3\n'


def test_spearman_contrasts_by_hand(tmp_path: Path) -> None:
    assert ranks([10, 30, 20, 30]).tolist() == [0, 2.5, 1, 2.5]
    assert spearman([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)  # 1 - 6 * (0 + 1 + 1) / (3 * 8)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [3, 2, 1]) == 0  # an encoder that gives all the same vector
    (tmp_path / "en-test.csv").write_text(STS)
    result = sts(Angles(), tmp_path)
    assert result.scores == {"en": {"pairs": 3, "spearman": pytest.approx(1)}}
    assert result.rows()[-1] == {"language": "mean", "spearman": pytest.approx(1)}
    file = write_lines(tmp_path / "c.txt", [NAMED, *CHANGED, "numbers\tA\tfr\t10\t80"])
    assert contrasts(Angles(), file).rows() == [
        {"kind": "order", "sentences": 4, "de": 100.0, "fr": 50.0, "mean": 62.5},
        {"kind": "numbers", "sentences": 1, "fr": 100.0, "mean": 100.0},
        {"kind": "mean", "sentences": 5, "de": 100.0, "fr": 62.5, "mean": 70.0},
    ]
    (row, _) = contrasts(Angles(), file, ["de"]).rows()
    assert row == {"kind": "order", "sentences": 1, "de": 100.0, "mean": 100.0}


CHANGED = ["order\tA\tfr\t10\t80", "order\tA\tfr\t80\t10", "order\tA\tfr\t10\t10", "order\tA\tde\t10\t80"]
NAMED = "\t".join(HEADER)


WORDS = ["other\tfr\t20", "other\ten\t50", "other\ten\t60", "other\tde\t1", "other\tit\t0"]
PARTNERED = [  # 30 and 40 are as near as 30 and 20
    *("form\tfr\t0\tfr\t10", "form\tfr\t30\tfr\t40", "form\ten\t90\ten\t80", "form\tde\t31\tde\t30"),
    *("translation\tfr\t0\ten\t40", "translation\tfr\t55\ten\t70"),
    *("translation\ten\t9\tde\t8", "translation\ten\t9\tit\t9"),
]


def test_the_partner_must_be_nearer_than_all_others_of_its_language(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "w.txt", [*PARTNERED, *WORDS])
    assert words(Angles(), file).rows() == [  # without what is Italian, which they do not know
        {"kind": "form", "words": 4, "de": 100.0, "en": 100.0, "fr": 50.0, "mean": 75.0},
        {"kind": "translation", "words": 3, "en": 100.0, "fr": 50.0, "mean": pytest.approx(200 / 3)},
        {"kind": "mean", "words": 7, "de": 100.0, "en": 100.0, "fr": 50.0, "mean": pytest.approx(500 / 7)},
    ]
    assert words(Angles(), file, ["fr"]).mean == {"words": 4, "fr": 50.0, "mean": 50.0}


def test_an_encoder_among_the_vectors_of_another_by_hand(tmp_path: Path) -> None:
    angles = write_lines(tmp_path / "en-fr.tsv", ["0\t10°", "30\t40°", "60\t89°", "90\t100°"]).parent
    result = space(Angles(turn=15), angles, english_by=Angles())
    (row, mean) = result.rows()
    # Ours of 10°, 40°, 89° and 100° lie at 25, 55, 104 and 115: next to 30, 60, 90 and 90.
    assert (row["xx_en"], row["xx_en_candidates"]) == (25, 4)
    assert row["en_xx"] == 25  # 0, 30, 60 and 90 find those of 10°, 10°, 40° and 89°
    assert row["cosine_english"] == pytest.approx(np.cos(np.radians(15)))
    assert row["cosine_across"] == pytest.approx(np.cos(np.radians([25, 25, 44, 25])).mean())
    assert mean == {key: value for key, value in row.items() if key in mean} | {"language": "mean"}
    (row, _) = space(Angles(), angles, ["fr"], english_by=Angles()).rows()
    assert row["cosine_english"] == pytest.approx(1)
    with pytest.raises(ValueError, match=r"vectors have 2 numbers, those of the model for English 3; .* `xsent info`"):
        space(Angles(), angles, english_by=Angles(dim=3))
    raises(DataError, "has nothing in de; available: fr", space, Angles(), angles, ["de"], english_by=Angles())


PARALLEL = {"en.txt": "a\nb\nc\nd\n", "fr.txt": "a\n", "de.txt": ""}
CSV, SCORE = "en-test.csv", r"en-test.csv:\d+: expected sentence, sentence, score"


def test_what_cannot_be_measured_is_named(tmp_path: Path) -> None:
    cases: list[tuple[Protocol, dict[str, Any], str | None, str]] = [
        *((protocol, {}, "zz", r"has nothing to measure; expected an en-XX\.tsv such") for protocol in (tatoeba, xsr)),
        (tatoeba, {"en-zz.tsv": "a\tb\n"}, None, "has nothing in a language of the model; available: zz"),
        (tatoeba, {"en-zz.tsv": "a\tb\n"}, "fr", "has nothing in fr; available: zz"),
        (tatoeba, {"en-fr.tsv": ""}, "fr", r"en-fr\.tsv: empty; expected one pair per line"),
        (tatoeba, {"en-fr.tsv": "a\tb\tc\n"}, "fr", r"en-fr\.tsv:1: 3 fields"),
        (xsr, {"en-fr.tsv": "Q\ts\ta\tb\n"}, "fr", r"distractors\.fr\.txt\.xz: cannot be read \(No such file"),
        *((xsr, {"en-fr.tsv": lines}, "fr", r"en-fr\.tsv: (empty|has no queries)") for lines in ("", "C\ts\ta\tb\n")),
        (xsim, {}, None, "has nothing to measure; expected files beside en"),
        (xsim, PARALLEL, "en", "has nothing in the requested languages; available: de, fr"),
        (xsim, {"fr.txt": "a\n"}, "fr", "no en.txt; expected one"),
        (xsim, PARALLEL, "fr", r"fr\.txt: 1 lines, en\.txt 4; expected parallel"),
        (xsim, {"en.txt": "a\nb\n", "fr.txt": "a\nb\n"}, "fr", r"en\.txt: 2 lines; expected at least 4"),
        (xsim, PARALLEL, "de", r"de\.txt: empty"),
        (sts, {}, None, "has nothing to measure; expected an XX-test.csv"),
        *((sts, {CSV: STS + line}, "en", SCORE) for line in ("A,B\n", "A,B,much\n", "A,B,nan\n")),
        (sts, {CSV: STS + '"A,B,1\n' + "far " * 40_000}, "en", SCORE),
        (sts, {CSV: "A,B,1\nC,D,1\n"}, "en", "2 pairs with 1 scores; a correlation needs different ones"),
        (contrasts, {"": [NAMED, *CHANGED]}, "it", "has nothing in it; available: de, fr"),
        (contrasts, {"": [NAMED, "order\tA\tfr"]}, None, ":2: 3 fields, expected 5 separated by tabs: kind, English, "),
        (contrasts, {"": CHANGED}, None, "its first line must be kind english language translation changed"),
        (contrasts, {"": [NAMED]}, None, "c.txt: has nothing to measure"),
        (words, {"": WORDS}, None, "c.txt: has nothing to measure"),
        (
            words,
            {"": PARTNERED},
            None,
            "c.txt: has no 'other' words in en, fr; expected, separated by tabs: 'form' or ",
        ),
        (words, {"": ["form\tfr\tchat\tit\tgatto"]}, "fr", "c.txt: has no partners in en, fr; choose the languages"),
        (words, {"": [*WORDS, "forms\tfr\ta\tfr\tb"]}, None, "c.txt:6: 'forms' and 4 more fields; expected, separated"),
        (words, {"": [*WORDS, "form\tfr\ta\tfr"]}, None, "c.txt:6: 'form' and 3 more fields; expected, separated"),
        (words, {"": ["other\tfr\t"]}, None, "c.txt:1: 'other' and 2 more fields; expected.* none empty: 'form' or "),
    ]
    for number, (protocol, files, language, message) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files.items():
            (folder / (name or "c.txt")).write_text(content if name else "\n".join(content))
        place = folder / "c.txt" if protocol in (contrasts, words) else folder
        raises(DataError, message, protocol, Letters("en", "fr"), place, None if language is None else [language])


def test_the_files_of_contrasts_and_words_are_whole() -> None:
    """What only moves words moves only words; no other word is a query or a partner."""
    read = lambda name: [line.split("\t") for line in (BENCH / name).read_text("utf-8").splitlines()]  # noqa: E731
    rows = read("contrasts.tsv")
    assert rows.pop(0) == HEADER and len(rows) == 400 == len(set(map(tuple, rows)))
    words = lambda text: sorted(text.casefold().rstrip(".?!").split())  # noqa: E731
    for kind, language in product(("order", "negation", "names", "numbers"), ("fr", "de", "es", "it")):
        some = [row for row in rows if (row[0], row[2]) == (kind, language)]
        assert len(some) == 25 and all(row[3] != row[4] for row in some)
        same = [words(row[3]) == words(row[4]) for row in some]
        assert sum(same) >= 20 if kind in ("order", "names") else not any(same)
    rows = read("words.tsv")
    queries, others = ([row for row in rows if (row[0] == "other") is other] for other in (False, True))
    assert Counter(row[0] for row in queries) == {"form": 100, "translation": 100}
    assert len({(row[1], row[2]) for row in queries}) == 200 and len(rows) == len(set(map(tuple, rows)))
    for language in ("en", "fr", "de", "es", "it", "pt", "nl", "ru", "ja"):
        ours = [row for row in queries if row[1] == language]
        assert len(ours) in (22, 23) and all((row[3] == language) is (row[0] == "form") for row in ours)
        assert language == "en" or {row[3] for row in ours} == {language, "en"}
        taken = {row[2].casefold() for row in ours} | {row[4].casefold() for row in queries if row[3] == language}
        free = {row[2].casefold() for row in others if row[1] == language}
        assert len(free) == 50 and not free & taken
    assert len(others) == 9 * 50 and all(row[2].casefold() != row[4].casefold() for row in queries)


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_cosines_are_those_of_what_was_stored(mini_bundle: Path, precision: Any) -> None:  # noqa: ANN401
    encoder = SentenceEncoder(mini_bundle)
    assert as_stored(encoder) is encoder
    stored = encoder.encode(TEXTS, precision=precision, truncate_dim=16)
    vectors = as_stored(encoder, precision, 16).encode(TEXTS)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(unit @ unit.T, encoder.similarity(stored, stored), atol=1e-5)
    raises(ValueError, "are for bundles; export the checkpoint first", as_stored, Letters(), precision)
