"""`xsent mine` and `xsent score`."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, is_one_line
from conftest import sentences

from xsent import SentenceEncoder
from xsent.vector_output import vector_file
from xsent.vectors import VectorNote

ENGLISH = [
    "The cat sleeps on the sofa.",
    "It will rain tomorrow.",
    "Where is the railway station?",
    "She bought three apples.",
    "The president signed the law.",
    "My brother plays the piano.",
]
FRENCH = [
    "Mon frère joue du piano.",
    "Le président a signé la loi.",
    "Elle a acheté trois pommes.",
    "Où est la gare ?",
    "Il pleuvra demain.",
    "Le chat dort sur le canapé.",
]
PAIRS = set(zip(ENGLISH, reversed(FRENCH), strict=True))


def text(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def src(tmp_path: Path) -> Path:
    return text(tmp_path / "en.txt", ENGLISH)


@pytest.fixture
def trg(tmp_path: Path) -> Path:
    return text(tmp_path / "fr.txt", FRENCH)


def encode(path: Path, lines: list[str], precision: str = "float32", fingerprint: str | None = None) -> Path:
    encoder = SentenceEncoder()
    vectors = encoder.encode(lines, precision=precision)  # type: ignore[arg-type]
    note = VectorNote(fingerprint or encoder.fingerprint, encoder.dim, precision, normalized=True)
    with vector_file(path, note) as writer:
        for line, vector in zip(lines, vectors, strict=True):
            writer.write(line, vector)
    return path


def columns(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_translations_are_printed_best_first(run: Runner, src: Path, trg: Path) -> None:
    code, out, err = run("mine", src, trg)
    rows = columns(out)
    assert code == 0
    assert {(source, target) for _, source, target in rows} == PAIRS
    scores = [float(score) for score, _, _ in rows]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 1
    assert "6 pairs of 6 source and 6 target lines" in err


def test_json_has_the_numbers_of_the_lines(run: Runner, src: Path, trg: Path) -> None:
    _, out, _ = run("mine", src, trg, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert {(row["source"], row["target"]) for row in rows} == PAIRS
    assert all(row["source_line"] + row["target_line"] == 7 for row in rows)
    assert [set(row) for row in rows] == [{"score", "source", "target", "source_line", "target_line"}] * 6


def test_a_printed_score_is_a_threshold_that_keeps_its_pair(run: Runner, src: Path, trg: Path) -> None:
    rows = columns(run("mine", src, trg)[1])
    for kept in (2, 4):
        assert columns(run("mine", src, trg, "--threshold", rows[kept - 1][0])[1]) == rows[:kept]


@pytest.mark.parametrize("retrieval", ["fwd", "bwd", "intersect"])
def test_retrieval(run: Runner, src: Path, tmp_path: Path, retrieval: str) -> None:
    trg = text(tmp_path / "short.txt", FRENCH[:4])
    code, out, _ = run("mine", src, trg, "--retrieval", retrieval, "--margin", "distance", "-k", 2)
    assert code == 0
    found = {(source, target) for _, source, target in columns(out)}
    assert len(columns(out)) == {"fwd": 6, "bwd": 4, "intersect": 4}[retrieval]
    assert found >= {pair for pair in PAIRS if pair[1] in FRENCH[:4]}


def test_standard_input(run: Runner, trg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def feed(lines: list[str]) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))

    feed(ENGLISH)
    assert {(source, target) for _, source, target in columns(run("mine", "-", trg)[1])} == PAIRS
    feed(["\t".join(pair) for pair in sorted(PAIRS)])
    assert [(source, target) for _, source, target in columns(run("score")[1])] == sorted(PAIRS)


def test_empty_and_repeated_lines(run: Runner, tmp_path: Path) -> None:
    src = text(tmp_path / "en.txt", ["", *ENGLISH, ENGLISH[0], "  ", ENGLISH[0]])
    trg = text(tmp_path / "fr.txt", [*FRENCH, "", FRENCH[5]])
    code, out, _ = run("mine", src, trg)
    assert code == 0
    assert {(source, target) for _, source, target in columns(out)} == PAIRS
    _, out, _ = run("mine", src, trg, "--no-unify", "--retrieval", "fwd")
    assert [row[1] for row in columns(out)].count(ENGLISH[0]) == 3
    assert not any("" in row for row in columns(out))


def test_a_tab_in_a_sentence_makes_no_column(run: Runner, src: Path, tmp_path: Path) -> None:
    trg = text(tmp_path / "fr.txt", [line.replace(" ", "\t", 1) for line in FRENCH])
    assert {(source, target) for _, source, target in columns(run("mine", src, trg)[1])} == PAIRS


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_vectors_may_be_made_before(run: Runner, src: Path, trg: Path, tmp_path: Path, precision: str) -> None:
    left, right = encode(tmp_path / "s.npy", ENGLISH, precision), encode(tmp_path / "t.npy", FRENCH, precision)
    _, expected, _ = run("mine", src, trg)
    for given in (["--src-vectors", left], ["--trg-vectors", right], ["--src-vectors", left, "--trg-vectors", right]):
        code, out, _ = run("mine", src, trg, *given)
        assert code == 0
        assert [row[1:] for row in columns(out)] == [row[1:] for row in columns(expected)]
        if precision == "float32":
            assert out == expected


def test_vectors_of_another_model(run: Runner, src: Path, trg: Path, tmp_path: Path) -> None:
    ours = encode(tmp_path / "s.npy", ENGLISH)
    other = encode(tmp_path / "t.npy", FRENCH, fingerprint="feedfeedfeedfeed")
    for given in (["--trg-vectors", other], ["--src-vectors", ours, "--trg-vectors", other]):
        code, out, err = run("mine", src, trg, *given)
        assert (code, out) == (1, "")
        assert is_one_line(err)
        assert "feedfeedfeedfeed" in err
        assert SentenceEncoder().fingerprint in err


def test_vectors_of_another_text(run: Runner, src: Path, trg: Path, tmp_path: Path) -> None:
    vectors = encode(tmp_path / "s.npy", ENGLISH[:5])
    assert_refused(run("mine", src, trg, "--src-vectors", vectors), "5 vectors for 6 lines")


def test_vectors_without_cosines(run: Runner, src: Path, trg: Path, tmp_path: Path) -> None:
    left, right = encode(tmp_path / "s.npy", ENGLISH, "binary"), encode(tmp_path / "t.npy", FRENCH, "binary")
    assert_refused(run("mine", src, trg, "--src-vectors", left, "--trg-vectors", right), "binary")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", 7], "k = 7 neighbours, but one side has only 6"),
        (["--threshold", 99], "no pairs of .*the best scores"),
        (["--src-vectors", "none.npy"], "none.npy"),
        (["--model", "none"], "none"),
    ],
)
def test_mining_that_cannot_be_done(run: Runner, src: Path, trg: Path, arguments: list[object], message: str) -> None:
    assert_refused(run("mine", src, trg, *arguments), message)


def test_texts_that_cannot_be_mined(run: Runner, src: Path, tmp_path: Path) -> None:
    for name, lines, message in (("empty.txt", [], "empty"), ("blank.txt", ["", " "], "no sentences")):
        code, out, err = run("mine", src, text(tmp_path / name, lines))
        assert (code, out) == (1, "")
        assert message in err
        assert is_one_line(err)
    assert_refused(run("mine", src, tmp_path / "none.txt"), "none.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    assert "latin.txt:1: not UTF-8" in run("mine", src, tmp_path / "latin.txt")[2]


def tsv(path: Path, pairs: list[tuple[str, str]]) -> Path:
    return text(path, ["\t".join(pair) for pair in pairs])


def test_scores_keep_the_order_of_the_pairs(run: Runner, tmp_path: Path) -> None:
    pairs = [*sorted(PAIRS), (ENGLISH[0], FRENCH[0]), sorted(PAIRS)[0]]
    code, out, err = run("score", tsv(tmp_path / "pairs.tsv", pairs))
    rows = columns(out)
    assert (code, err) == (0, "")
    assert [(source, target) for _, source, target in rows] == pairs
    scores = [float(score) for score, _, _ in rows]
    assert min(scores[:6]) > 1 > scores[6]
    assert scores[7] == scores[0]


def test_cosines_of_few_pairs(run: Runner, tmp_path: Path) -> None:
    file = tsv(tmp_path / "pairs.tsv", [(ENGLISH[0], FRENCH[5]), ("", FRENCH[0]), (ENGLISH[1], ENGLISH[1])])
    code, out, _ = run("score", file, "--margin", "absolute", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert rows[0].keys() == {"score", "source", "target"}
    a, b = SentenceEncoder().encode([ENGLISH[0], FRENCH[5]])
    assert rows[0]["score"] == pytest.approx(float(a @ b), abs=1e-6)
    assert rows[1]["score"] == 0
    assert rows[2]["score"] == pytest.approx(1)


def test_a_margin_needs_some_pairs(run: Runner, tmp_path: Path) -> None:
    code, out, err = run("score", tsv(tmp_path / "pairs.tsv", sorted(PAIRS)[:3]))
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert "k = 4 neighbours, but one side has only 3" in err
    assert "absolute" in err


def test_threshold_for_a_precision(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    english, french = sentences("en"), sentences("fr")
    pairs = [*zip(english, french, strict=True), ("", french[0])]
    file = tsv(tmp_path / "pairs.tsv", pairs)
    code, out, err = run("score", file, "--model", mini_bundle, "--precision", 0.9)
    assert code == 0
    scores = np.array([row[0] for row in columns(out)], np.float32)
    words = err.split()
    assert words[0] == "threshold"
    threshold, accepted = np.float32(words[1].rstrip(":")), int(words[2])
    assert (scores[:-1] >= threshold).sum() == accepted
    assert f"of {len(english)} pairs reach it" in err
    assert float(words[-4].rstrip("%")) >= 90


def test_a_precision_out_of_reach_prints_no_scores(run: Runner, tmp_path: Path) -> None:
    file = tsv(tmp_path / "pairs.tsv", sorted(PAIRS))
    code, out, err = run("score", file, "--precision", 0.999)
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert "no threshold reaches" in err
    assert run("score", file, "--precision", 95)[0] == 1


@pytest.mark.parametrize(("content", "message"), [("", "empty; expected a pair a line"), ("a\tb\na\n", ":2: 1 fields")])
def test_pairs_that_cannot_be_read(run: Runner, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "pairs.tsv").write_text(content)
    assert_refused(run("score", tmp_path / "pairs.tsv"), message)
