"""The ablation: rows are trained once, measured and reported; finished ones survive a kill."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from bench_toy import write_toy_data
from commands import raises

import ablation
from ablation import (
    CONTENTS,
    GROUPS,
    AblationPlan,
    Row,
    RowGroup,
    choose_rows,
    group_orders,
    group_section,
    main,
    run_ablation,
)
from xsent.errors import DataError, XsentError
from xsent_train.trainer import Trainer

pytestmark = pytest.mark.slow
ROWS = ("table", "layers-2", "prefixes", "layer-prefixes")  # of matryoshka, with the encoders inside them


def toy_plan(data: Path) -> AblationPlan:
    sizes = {"pairs": 160, "table_pairs": 4_000, "vocabulary": 360, "dim": 32, "max_tokens": 12, "batch_size": 16}
    held_out = {"validation_share": 0.1, "validation_pairs": 20}
    return AblationPlan(data=str(data), clusters=5, distractors=10, **sizes, **held_out)  # type: ignore[arg-type]


def run(plan: AblationPlan, folder: Path, only: str = "matryoshka") -> Path:
    return run_ablation(plan, folder, "ablation.py data", [1], [only])


@contextmanager
def in_this_process(rows: bool = True) -> Iterator[None]:
    """The data is prepared in this process, and rows are trained in it, which is quicker than a process each."""
    real = ablation.answers

    def answers(arguments: Sequence[str], **settings: Any) -> Iterable[object]:  # noqa: ANN401
        is_row = len(arguments) > 3
        return real(arguments, **settings) if is_row and not rows else [main(*arguments[2:])]

    with mock.patch.object(ablation, "answers", answers):
        yield


def figures(folder: Path) -> dict[str, dict[str, float]]:
    return {file.stem[:-2]: json.loads(file.read_text()) for file in (folder / "rows").glob("*.json")}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> AblationPlan:
    return toy_plan(write_toy_data(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def finished(plan: AblationPlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ablation") / "new"
    with in_this_process():
        assert run(plan, folder) == folder / "ablation.md"
    return folder


def test_every_row_is_trained_and_measured(finished: Path) -> None:
    found = figures(finished)
    assert {*found} == {*ROWS}
    for row in found.values():
        assert row["Tatoeba fr→en"] > 50  # the translations are word by word, which a table learns quickly
        assert {"Tatoeba en→de", "XSR en→fr", "SIB en→de", "STS fr"} <= row.keys()
        assert 0 < row["s/1,000 steps"] < 1000 and row["peak MiB"] > 50 and row["held-out loss"] > 0
    assert {"Tatoeba fr→en ¼ of the dimensions", "Tatoeba en→de 0 layers"} <= found["layer-prefixes"].keys()
    report = (finished / "ablation.md").read_text()
    assert "## Matryoshka prefixes" in report and "| layers: 0 layers | " in report
    assert "## Generative tasks" not in report  # no row of it is finished
    assert "## Distillation" not in report  # one row compares nothing
    assert "10 distractors" in report and "`ablation.py data`" in report


def test_an_ablation_that_was_ended_resumes(
    plan: AblationPlan, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(finished, tmp_path / "new")
    rows = [Row("no teacher", "layers-2"), Row("a teacher", "distil")]  # the first is finished
    monkeypatch.setattr(ablation, "GROUPS", [RowGroup("teachers", "Teachers", "", rows)])
    before = figures(folder)
    stop = mock.patch.object(Trainer, "train", side_effect=KeyboardInterrupt)
    with in_this_process(), stop, pytest.raises(SystemExit):
        run(plan, folder, "teachers")
    assert figures(folder) == before
    with in_this_process():
        run(plan, folder, "teachers")
    found = figures(folder)
    assert found.pop("distil")["Tatoeba fr→en"] > 50 and found == before


def test_the_log_of_a_row_whose_process_does_not_start_is_closed(plan: AblationPlan, tmp_path: Path) -> None:
    answers = mock.Mock(side_effect=[[], OSError("no process")])  # of the preparation, and of the first row
    with mock.patch.object(ablation, "answers", answers), pytest.raises(OSError, match="no process"):
        run(plan, tmp_path / "new")
    assert answers.call_args.kwargs["messages"].closed


def test_failed_rows_are_named(tmp_path: Path) -> None:
    """Each is trained in a process of its own."""
    data = write_toy_data(tmp_path / "data", 100)
    (data / "eval" / "stsb" / "en-test.csv").unlink()
    message = r"^table-1 failed: .*stsb: has nothing in en; available: fr.*table-1\.log; the same command"
    with in_this_process(rows=False):
        raises(XsentError, message, run, replace(toy_plan(data), table_pairs=16), tmp_path / "out", "negatives")
    assert "has nothing in en" in (tmp_path / "out" / "rows" / "table-1.log").read_text().splitlines()[-1]


def test_bad_input_is_one_clear_line(plan: AblationPlan, finished: Path, tmp_path: Path) -> None:
    for wrong, folder, message in (
        (replace(plan, pairs=320), finished, r"pairs = 160; choose another --out"),
        (toy_plan(tmp_path), tmp_path / "out", r"no train/pairs\.tsv"),
        (replace(plan, teacher="nowhere"), tmp_path / "out", "nowhere: no such folder; --teacher takes"),
    ):
        raises(DataError, message, run, wrong, folder)
    raises(DataError, "no group or row layer; there are generative, .*, co-filter$", choose_rows, ["layer"])


def test_budgets_are_equal_and_every_row_has_its_variant() -> None:
    plan = AblationPlan(data=".")
    variants = {key: plan.variant(key) for key in CONTENTS["variants"]}
    assert {row.key for group in GROUPS for row in group.rows} == variants.keys() and len(variants) == 37
    for key, variant in variants.items():
        seen = variant.stage.steps * variant.stage.batch_size
        assert seen == (plan.table_pairs if key == "table" else plan.pairs)
    assert all(len(row.paper) in (0, len(group.papers)) for group in GROUPS for row in group.rows)


def test_a_table_has_our_numbers_and_the_papers() -> None:
    group = RowGroup("toy", "Toy", "A note.", (Row("A", "a", (90, 80)), Row("B", "b", (80, 85)), Row("C", "c")))
    rest = {"held-out P@1": 97.0, "held-out loss": 0.25, "s/1,000 steps": 123.4, "peak MiB": 456.7}
    seeds = {"a": [(50.0, 30.0), (54.0, 30.0)], "b": [(60.0, 20.0)]}
    found = {key: [{"XSR en→fr": x, "SIB en→fr": s, **rest} for x, s in rows] for key, rows in seeds.items()}
    section = group_section(group, found)
    assert (section.title, section.text) == ("Toy", "A note.")
    head = "held-out P@1 | held-out loss | s/1,000 steps | peak MiB | paper XSR en→fr | paper MLDoc en→fr |"
    # Of 50 and 54 the deviation of the sample is the root of 8.
    lines = section.table.splitlines()
    assert [lines[0], *lines[2:]] == [
        f"|  | XSR en→fr | SIB en→fr | {head}",
        "| A | 52.0 ± 2.8 | 30.0 ± 0.0 | 97.0 ± 0.0 | 0.250 ± 0.000 | 123.4 ± 0.0 | 457 ± 0 | 90.0 | 80.0 |",
        "| B | 60.0 | 20.0 | 97.0 | 0.250 | 123.4 | 457 | 80.0 | 85.0 |",
    ]


def test_an_order_holds_only_if_every_seed_says_so() -> None:
    rows = (Row("A", "a", (90, 80)), Row("B", "b", (80, 85)), Row("C", "c", (70, 85)), Row("D", "d"))
    seeds = {"a": [(50, 30), (54, 33), (49, 31)], "b": [(40, 32), (41, 34), (42, 39)], "c": [(45, 20)]}
    found = {key: [{"XSR en→fr": x, "SIB en→fr": s} for x, s in measured] for key, measured in seeds.items()}
    assert group_orders(RowGroup("toy", "Toy", "", rows), found) == [
        ["A > B", "XSR en→fr", "+10.0", "+10.0", "yes"],
        ["B > C", "XSR en→fr", "+10.0", "-4.0", "open"],  # one seed
        ["C > A", "SIB en→fr", "+5.0", "-11.3", "open"],
    ]
    del found["c"]
    assert group_orders(RowGroup("toy", "Toy", "", rows), found)[1] == ["B > A", "SIB en→fr", "+5.0", "+3.7", "open"]
    found["b"] = [{"XSR en→fr": 60, "SIB en→fr": 20}] * 3
    assert [row[-1] for row in group_orders(RowGroup("toy", "Toy", "", rows), found)] == ["no", "no"]


def test_rows_are_chosen_by_their_group_or_key() -> None:
    assert choose_rows(["negatives", "ugt"]) == ["ugt", "layers-2", "cluster"]


def test_translators_are_compared_with_the_paper(finished: Path, tmp_path: Path) -> None:
    pytest.importorskip("sacrebleu")
    folder = shutil.copytree(finished, tmp_path / "new")
    main(str(folder), "translation", "1")
    found = json.loads((folder / "rows" / "translation-1.json").read_text())
    (group,) = (group for group in GROUPS if group.name == "translation")
    section = group_section(group, {"translation": [found]})
    heading, _, random, started = section.table.splitlines()
    assert heading == "|  | BLEU fr→en | chrF fr→en | BLEU de→en | chrF de→en | paper BLEU de→en |"
    assert random.startswith("| Transformer, from nothing | ") and random.endswith(" | 34.5 |")
    assert f" {found['chrF de→en start']:.1f} | 36.3 |" in started
