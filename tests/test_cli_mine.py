"""`xsent mine` and `xsent score`."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused
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


def test_translations_are_printed_best_first(run: Runner, src: Path, trg: Path) -> None:
    code, out, err = run("mine", src, trg)
    rows = columns(out)
    assert code == 0 and "6 pairs of 6 source and 6 target lines" in err
    assert {(source, target) for _, source, target in rows} == PAIRS
    scores = [float(score) for score, _, _ in rows]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 1
    for kept in (2, 4):  # a printed score is a threshold that keeps its pair
        assert columns(run("mine", src, trg, "--threshold", rows[kept - 1][0])[1]) == rows[:kept]
    found = [json.loads(line) for line in run("mine", src, trg, "--json")[1].splitlines()]
    assert {(row["source"], row["target"]) for row in found} == PAIRS
    assert all(row["source_line"] + row["target_line"] == 7 for row in found)
    assert [set(row) for row in found] == [{"score", "source", "target", "source_line", "target_line"}] * 6
    text(trg, [line.replace(" ", "\t", 1) for line in FRENCH])  # a tab in a sentence makes no column
    assert {(source, target) for _, source, target in columns(run("mine", src, trg)[1])} == PAIRS


def test_vectors_that_do_not_fit(run: Runner, src: Path, trg: Path, tmp_path: Path) -> None:
    ours, short = encode(tmp_path / "s.npy", ENGLISH), encode(tmp_path / "short.npy", ENGLISH[:5])
    other = encode(tmp_path / "t.npy", FRENCH, fingerprint="feedfeedfeedfeed")
    bits = encode(tmp_path / "bits.npy", ENGLISH, "binary")
    both = f"feedfeedfeedfeed.*{SentenceEncoder().fingerprint}|{SentenceEncoder().fingerprint}.*feedfeedfeedfeed"
    for given, message in (
        (["--trg-vectors", other], both),
        (["--src-vectors", ours, "--trg-vectors", other], both),
        (["--src-vectors", short], "5 vectors for 6 lines"),
        (["--src-vectors", bits, "--trg-vectors", ours], "binary vectors have no cosines"),
    ):
        assert_refused(run("mine", src, trg, *given), message)


@pytest.mark.parametrize(
    ("command", "target", "arguments", "message"),
    [
        ("mine", FRENCH, ["-k", 7], "k = 7 neighbours, but one side has only 6"),
        ("mine", FRENCH, ["--threshold", 99], "no pairs of .*the best scores"),
        ("mine", FRENCH, ["--src-vectors", "none.npy"], "none.npy"),
        ("mine", FRENCH, ["--model", "none"], "none"),
        ("mine", [], [], "empty"),
        ("mine", ["", " "], [], "no sentences"),
        ("mine", None, [], "in.txt: cannot be read"),
        ("mine", b"caf\xe9\n", [], "in.txt:1: not UTF-8"),
        ("score", [], [], "empty; expected a pair a line"),
        ("score", ["a\tb", "a"], [], ":2: 1 fields"),
        ("score", ["a\tb", "c\td", "e\tf"], [], "k = 4 neighbours, but one side has only 3 .* absolute"),
        ("score", ["\t".join(pair) for pair in sorted(PAIRS)], ["--precision", 0.999], "no threshold reaches"),
        ("score", ["\t".join(pair) for pair in sorted(PAIRS)], ["--precision", 95], "must be between 0 and 1"),
    ],
)
def test_what_cannot_be_done(
    run: Runner,
    src: Path,
    tmp_path: Path,
    command: str,
    target: list[str] | bytes | None,
    arguments: list[object],
    message: str,
) -> None:
    file = tmp_path / "in.txt"
    if target is not None:
        file.write_bytes(target) if isinstance(target, bytes) else text(file, target)
    assert_refused(run(command, *([src, file] if command == "mine" else [file]), *arguments), message)
