"""The ablation as a whole: rows are trained once, measured, reported; what is finished survives anything."""

import math
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_toy import write_toy_data, write_toy_tests
from numpy.typing import NDArray
from toy import ENGLISH

from xsent.bench.ablation.groups import Group, Row, chosen, groups, variants
from xsent.bench.ablation.plan import Plan
from xsent.bench.ablation.report import Value, section, values
from xsent.bench.ablation.rows import open_results, prepare_rows, run_ablation, train_and_measure
from xsent.bench.quality import every_score, write_small_xsr
from xsent.bench.results import Measurement, Results
from xsent.errors import DataError, XsentError

GROUP = "matryoshka"  # three rows over the shared table, with the encoders inside them
ROWS = ("table", "layers-2", "prefixes", "layer-prefixes")


def toy_plan(data: Path) -> Plan:
    sizes = {"pairs": 160, "table_pairs": 8_000, "vocabulary": 360, "dim": 32, "max_tokens": 12, "batch_size": 16}
    held_out = {"validation_share": 0.1, "validation_pairs": 20}
    return Plan(data=str(data), clusters=5, distractors=10, **sizes, **held_out)  # type: ignore[arg-type]


def run(plan: Plan, folder: Path, only: str = GROUP) -> Path:
    return run_ablation(plan, folder, seeds=[1], only=[only], processes=2, command="xsent-bench ablation")


def measurements(folder: Path) -> dict[str, Measurement]:
    return {str(m.axes["variant"]): m for m in Results.read(folder / "results.json").measurements}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return toy_plan(write_toy_data(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def finished(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ablation whose rows were trained in this process, which is quicker than in one each."""
    folder = tmp_path_factory.mktemp("ablation") / "new"
    folder.mkdir()
    prepare_rows(plan, folder)
    results = open_results(plan, folder, "")
    for key in ROWS:
        figures = train_and_measure(plan, folder, key, 1)
        results.measurements.append(Measurement("ablation", {"variant": key, "seed": 1}, figures))
    results.write(folder / "results.json")
    assert run(plan, folder) == folder / "ablation.md"
    return folder


def test_every_row_is_trained_and_measured(finished: Path) -> None:
    found = measurements(finished)
    assert tuple(found) == ROWS  # none was trained again
    for m in found.values():
        assert m.figures["Tatoeba fr→en"] > 50  # word by word: a table learns it in no time
        assert {"Tatoeba en→de", "XSR en→fr", "SIB en→de", "STS fr"} <= m.figures.keys()
        assert 0 < m.figures["s/1,000 steps"] < 1000 and m.figures["peak MiB"] > 50
        assert m.figures["held-out loss"] > 0
    assert {"Tatoeba fr→en 8 dimensions", "Tatoeba en→de 0 layers"} <= found["layer-prefixes"].figures.keys()


def test_the_report_has_the_rows_and_the_plot(finished: Path) -> None:
    report = (finished / "ablation.md").read_text()
    assert "## Matryoshka prefixes" in report and "| layers: 0 layers | " in report
    assert "## Generative tasks" not in report  # no row of it is finished
    assert "10 distractors" in report and "`xsent-bench ablation`" in report
    assert (finished / "plots" / "matryoshka.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_ablation_that_was_ended_goes_on(plan: Plan, finished: Path, how: signal.Signals) -> None:
    group, key = ("negatives", "cluster") if how == signal.SIGKILL else ("distillation", "distil")
    program = f"""
from pathlib import Path
from test_bench_ablation import run, toy_plan
run(toy_plan({plan.data!r}), Path({str(finished)!r}), {group!r})
"""
    before = measurements(finished)
    process = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parent)
    log, deadline = finished / "rows" / f"{key}-1.log", time.monotonic() + 120
    while not log.exists():  # layers-2 is finished, this one has begun
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(how)
    assert process.wait(60) != 0
    assert measurements(finished) == before
    run(plan, finished, group)
    found = measurements(finished)
    assert key in found and {name: found[name] for name in before} == before
    assert "## Negatives" in (finished / "ablation.md").read_text()


def test_rows_that_fail_are_named(plan: Plan, finished: Path, tmp_path: Path) -> None:
    data = write_toy_data(tmp_path / "data")
    (data / "eval" / "stsb" / "en-test.csv").unlink()
    with pytest.raises(XsentError, match=r"^1 rows failed.*table-1\.log.*tries them again") as raised:
        run(toy_plan(data), tmp_path / "out", "negatives")
    assert "\n" not in str(raised.value)
    assert "en-test.csv" in (tmp_path / "out" / "rows" / "table-1.log").read_text().splitlines()[-1]


def test_another_plan_needs_another_folder(plan: Plan, finished: Path) -> None:
    with pytest.raises(DataError, match=r"pairs = 160; name another --out"):
        run(replace(plan, pairs=320), finished)


def test_missing_data_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no train/pairs\.tsv"):
        run(toy_plan(tmp_path), tmp_path / "out")
    with pytest.raises(DataError, match="no group layer; there are generative"):
        chosen(Plan(data="."), ["layer"])


def test_budgets_are_equal_and_variants_of_one_key_are_one() -> None:
    plan = Plan(data=".")
    for row in (row for group in groups(plan) for row in group.rows):
        assert row.variant == variants(plan)[row.variant.key]
        stage = row.variant.stage
        seen = stage.steps * stage.batch_size
        assert seen == (plan.table_pairs if stage.name == "table" else plan.pairs) and stage.name == row.variant.key
    for group in groups(plan):
        assert all(len(row.paper) in (0, len(group.paper)) for row in group.rows)
    assert len(variants(plan)) == 36


VARIANT = variants(Plan(data="."))["mlm"]
A, B, C = (replace(VARIANT, key=key) for key in "abc")
TABLE = Group("toy", "Toy", "A note.", (Row("A", A, (90.0, 80.0)), Row("B", B, (80.0, 85.0)), Row("C", C)), ("r", "c"))


def measured(key: str, seed: int, xsr: float, sib: float, **scores: float) -> Measurement:
    figures = {"XSR en→fr": xsr, "SIB en→fr": sib, **scores, "held-out P@1": 97.0, "held-out loss": 0.25}
    costs = {"s/1,000 steps": 123.4, "wall s/1,000 steps": 200.0, "peak MiB": 456.7, "waiting %": 1.0}
    return Measurement("ablation", {"variant": key, "seed": seed}, {**figures, **costs})


RESULTS = Results("x", {}, [measured("a", 1, 50.0, 30.0), measured("a", 2, 54.0, 30.0), measured("b", 1, 60.0, 20.0)])


def test_values_are_means_and_sample_deviations() -> None:
    numbers = values(TABLE.rows[0], RESULTS)
    assert numbers["XSR en→fr"] == Value(52.0, pytest.approx(math.sqrt(8)))
    assert numbers["held-out loss"].mean == 0.25 and numbers["peak MiB"].mean == 456.7
    assert values(TABLE.rows[1], RESULTS)["XSR en→fr"].deviation is None
    assert values(TABLE.rows[2], RESULTS) == {}
    assert Value(52.04, None).cell(1) == "52.0" and Value(0.25, None).cell(3) == "0.250"


def test_a_table_has_our_numbers_and_the_papers() -> None:
    found = section(TABLE, RESULTS)
    assert (found.title, found.text) == ("Toy", "A note.")
    text = found.tables[0].markdown().splitlines()
    assert "|  | XSR en→fr | SIB en→fr | held-out P@1 | held-out loss | s/1,000 steps | peak MiB | r | c |" in text
    assert "| A | 52.0 ± 2.8 | 30.0 ± 0.0 | 97.0 ± 0.0 | 0.250 ± 0.000 | 123.4 ± 0.0 | 457 ± 0 | 90.0 | 80.0 |" in text
    assert "| B | 60.0 | 20.0 | 97.0 | 0.250 | 123.4 | 457 | 80.0 | 85.0 |" in text
    assert "| C | – | – | – | – | – | – | – | – |" in text
    assert found.points == [
        *("XSR en→fr, best first, ours: B > A", "r, best first: A > B"),
        *("SIB en→fr, best first, ours: A > B", "c, best first: B > A"),
    ]


WORDS = {word: number for number, word in enumerate(ENGLISH)} | {
    word[::-1] + ending: number for number, word in enumerate(ENGLISH) for ending in ("en", "eau")
}


class Dictionary:
    """Counts words and knows their translations: a perfect encoder of the toy languages."""

    def encode(self, sentences: list[str], /) -> NDArray[np.float32]:
        """How often each word occurs in each sentence."""
        vectors = np.zeros((len(sentences), len(ENGLISH)), np.float32)
        for vector, sentence in zip(vectors, sentences, strict=True):
            for word in re.findall(r"[a-z]+", sentence):
                vector[WORDS[word]] += 1
        return vectors


def test_a_perfect_encoder_has_perfect_scores(tmp_path: Path) -> None:
    data = write_toy_tests(tmp_path / "tests")
    write_small_xsr(data / "xsr", tmp_path / "xsr", "fr", 7)
    scores = every_score(Dictionary(), data, tmp_path / "xsr", ["fr", "de"])
    retrieval = [score for name, score in scores.items() if name.startswith(("Tatoeba", "XSR"))]
    assert len(retrieval) == 6 and min(retrieval) > 95  # a few toy sentences have the same words in another order
    assert [name for name in scores if name.startswith("SIB")] == ["SIB en→en", "SIB en→fr", "SIB en→de"]
    assert all(score > 90 for name, score in scores.items() if name.startswith("SIB"))
    assert scores["STS en"] == pytest.approx(scores["STS fr"]) and scores["STS en"] > 99


def test_a_small_xsr_has_as_many_distractors_as_asked_for(tmp_path: Path) -> None:
    from xsent.evaluation.translation import xsr

    data = write_toy_tests(tmp_path / "tests")
    rows = len((data / "xsr" / "en-fr.tsv").read_text().splitlines())
    for distractors, more in ((0, 0), (7, 7), (1000, 30)):
        write_small_xsr(data / "xsr", tmp_path / "xsr", "fr", distractors)
        score = xsr(Dictionary(), tmp_path / "xsr", ["fr"]).scores["fr"]
        assert score["en_xx_candidates"] == rows + more and score["xx_en_candidates"] == rows
    (data / "xsr" / "en-fr.tsv").unlink()
    with pytest.raises(DataError, match=r"en-fr\.tsv: no such file"):
        write_small_xsr(data / "xsr", tmp_path / "xsr", "fr", 7)
