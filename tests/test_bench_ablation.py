"""The ablation as a whole: rows are trained once, measured, reported; what is finished survives anything."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bench_toy import write_toy_data

from xsent.bench.ablation.groups import chosen, groups
from xsent.bench.ablation.place import Place
from xsent.bench.ablation.plan import Plan, load_plan
from xsent.bench.ablation.preparation import prepare_rows
from xsent.bench.ablation.row import train_and_measure
from xsent.bench.ablation.schedule import all_jobs, run_ablation
from xsent.bench.ablation.variants import variants
from xsent.errors import DataError, XsentError

GROUP = "matryoshka"  # three rows over the shared table, with the encoders inside them
ROWS = ("table-1", "layers-2-1", "prefixes-1", "layer-prefixes-1")


def toy_plan(data: Path) -> Plan:
    return Plan(
        data=str(data),
        pairs=160,
        table_pairs=8_000,
        vocabulary=360,
        dim=32,
        max_tokens=12,
        batch_size=16,
        clusters=5,
        validation_share=0.1,
        validation_pairs=20,
        distractors=10,
    )


def run(plan: Plan, folder: Path, only: str = GROUP, seeds: tuple[int, ...] = (1,)) -> None:
    run_ablation(plan, folder, seeds=seeds, only=[only], processes=2, command="xsent-bench ablation")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return toy_plan(write_toy_data(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def finished(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ablation whose rows were trained in this process, which is quicker than in one each."""
    folder = tmp_path_factory.mktemp("ablation") / "new"
    plan.open(folder)
    prepare_rows(folder)
    for row in ROWS:
        train_and_measure(Place(folder, row.removesuffix("-1"), 1))
    run(plan, folder)
    return folder


def test_every_row_is_trained_and_measured(finished: Path) -> None:
    for row in ROWS:
        result = json.loads((finished / "rows" / row / "result.json").read_text())
        assert result["scores"]["Tatoeba fr→en"] > 50  # word by word: a table learns it in no time
        assert {"Tatoeba en→de", "XSR en→fr", "SIB en→de", "STS fr"} <= result["scores"].keys()
        assert 0 < result["costs"]["s/1,000 steps"] < 1000 and result["costs"]["peak MiB"] > 50
        assert result["validation"]["loss"] > 0
    scores = json.loads((finished / "rows" / "layer-prefixes-1" / "result.json").read_text())["scores"]
    assert {"Tatoeba fr→en 8 dimensions", "Tatoeba en→de 0 layers"} <= scores.keys()


def test_the_report_has_the_rows_and_the_plot(finished: Path) -> None:
    report = (finished / "ablation.md").read_text()
    assert "## Matryoshka prefixes" in report and "| layers: 0 layers | " in report
    assert "## Generative tasks" not in report  # no row of it is finished
    assert "10 distractors" in report and "`xsent-bench ablation`" in report
    assert (finished / "plots" / "matryoshka.png").read_bytes().startswith(b"\x89PNG")


def test_a_finished_row_is_never_trained_again(plan: Plan, finished: Path) -> None:
    before = {row: (finished / "rows" / row / "result.json").stat().st_mtime_ns for row in ROWS}
    run(plan, finished)
    assert {row: (finished / "rows" / row / "result.json").stat().st_mtime_ns for row in ROWS} == before


def test_a_killed_ablation_loses_the_running_rows_alone(plan: Plan, finished: Path) -> None:
    place = Place(finished, "cluster", 1)
    program = f"""
from pathlib import Path
from xsent.bench.ablation.plan import load_plan
from xsent.bench.ablation.schedule import run_ablation
folder = Path({str(finished)!r})
run_ablation(load_plan(folder), folder, seeds=[1], only=["negatives"], processes=1, command="x")
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 120
    while not place.log.exists():  # layers-2 is finished, this one has begun
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    done = Place(finished, "layers-2", 1).run / "result.json"
    before = done.stat().st_mtime_ns
    run(plan, finished, "negatives")
    assert place.result is not None and done.stat().st_mtime_ns == before
    assert "| cluster | " in (finished / "ablation.md").read_text()


def test_a_failed_row_is_named_with_those_that_need_it(plan: Plan, finished: Path) -> None:
    tests, away = Path(plan.data) / "eval" / "stsb", Path(plan.data) / "away"
    tests.rename(away)
    try:
        with pytest.raises(XsentError, match=r"3 rows failed.*distil-1\.log.*tries them again") as raised:
            run(plan, finished, "distillation")
    finally:
        away.rename(tests)
    assert "\n" not in str(raised.value)
    assert Place(finished, "distil", 1).log.read_text().splitlines()[-1].startswith("Error: ")
    assert not Place(finished, "co", 1).run.exists()


def test_another_plan_needs_another_folder(plan: Plan, finished: Path) -> None:
    with pytest.raises(DataError, match=r"pairs = 160; name another --out"):
        run(replace(plan, pairs=320), finished)
    assert load_plan(finished) == plan


def test_missing_data_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no train/pairs\.tsv"):
        run(toy_plan(tmp_path), tmp_path / "out")


def test_every_row_has_a_variant_and_every_variant_a_row() -> None:
    plan = Plan(data=".")
    shown = {row.key for group in groups(plan) for row in group.rows}
    assert shown == set(variants(plan))
    for group in groups(plan):
        assert all(len(row.paper) in (0, len(group.paper)) for row in group.rows)
    with pytest.raises(DataError, match="no group layer; there are generative"):
        chosen(plan, ["layer"])


def test_budgets_are_equal() -> None:
    plan = Plan(data=".")
    for variant in variants(plan).values():
        seen = variant.stage.steps * variant.stage.batch_size
        assert seen == (plan.table_pairs if variant.key == "table" else plan.pairs), variant.key


def test_rows_wait_for_the_table_and_for_the_teachers_vectors() -> None:
    plan, folder = Plan(data="."), Path("x")
    jobs = {job.place: job for job in all_jobs(plan, folder, groups(plan), [1, 2])}
    places = list(jobs)
    table, distil = Place(folder, "table", 1), Place(folder, "distil", 2)
    assert places[0] == table and not jobs[table].needs
    assert jobs[Place(folder, "mlm", 1)].needs == {table}
    assert jobs[Place(folder, "co", 2)].needs == {table, distil}
    assert [place.seed for place in places] == sorted(place.seed for place in places)
