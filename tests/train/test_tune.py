"""Tuning: what a text is, what is learnt and kept, and what the columns are if they are wrong."""

import json
import shutil
import signal
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from commands import assert_refused, raises
from safetensors.numpy import load_file
from toy import toy_pairs, write_toy_corpus, write_toy_passages, write_toy_scored
from trainings import assert_same_weights, command, export_command

from xsent.bundle import Bundle, builtin_path
from xsent.errors import DataError
from xsent_train.comparison import Comparison
from xsent_train.data.corpus import PAIRS, PASSAGES, SCORED, SENTENCES, Corpus, recognise_text, tally
from xsent_train.derive import checkpoint_from_bundle, model_path
from xsent_train.stage_loop import Validation
from xsent_train.tune import _tests, tune

KNOWN = ["en", "fr", "de"]
LAYER, UPPER, TABLE = "encoder.layers.0.qkv.weight", "encoder.layers.1.qkv.weight", "encoder.table.weight"


def german(path: Path) -> Path:
    """German pairs only."""
    lines = ("\t".join(pair) + "\n" for pair in toy_pairs(400, 3) if pair[1] == "de")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def columns(path: Path, *places: int) -> Path:
    """The toy corpus with only some of its columns."""
    lines = ("\t".join(pair[place] for place in places) + "\n" for pair in toy_pairs(400))
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_corpus(tmp_path_factory.mktemp("text") / "pairs.tsv")


@pytest.fixture(scope="module")
def tuned(mini_bundle: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return tune(mini_bundle, pairs, tmp_path_factory.mktemp("tuned") / "run", lines_seen=9600, threads=1)


def logged_steps(tuned: Comparison) -> list[int]:
    lines = (tuned.checkpoint.parents[1] / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def test_own_pairs_are_found_and_the_bundle_keeps_what_it_was(
    tuned: Comparison, mini_bundle: Path, tmp_path: Path
) -> None:
    for language in ("de", "fr"):
        assert tuned.after["own", language, 2] > tuned.before["own", language, 2] + 5
    assert {0, 100} <= set(logged_steps(tuned))
    code, _, said = export_command(tuned.checkpoint.parents[1], tmp_path / "bundle", "--fp32")
    assert code == 0, said
    card = (tmp_path / "bundle" / "README.md").read_text()
    assert "- manual\n- talk\n" in card and "Started from the weights of mini" in card
    assert Bundle.open(tmp_path / "bundle").languages == Bundle.open(mini_bundle).languages


def test_languages_without_own_text_are_kept_and_need_no_pairs_to_export(mini_bundle: Path, tmp_path: Path) -> None:
    text = german(tmp_path / "german.tsv")
    tune(mini_bundle, text, tmp_path / "run", lines_seen=48, threads=1)
    code, _, said = export_command(tmp_path / "run", tmp_path / "bundle", "--fp32")
    assert code == 0, said
    assert Bundle.open(tmp_path / "bundle").languages == ("en", "fr", "de")


def test_general_text_is_mixed_in_and_measured(mini_bundle: Path, pairs: Path, tmp_path: Path) -> None:
    text = german(tmp_path / "german.tsv")
    code, out, said = command("tune", mini_bundle, text, tmp_path / "run", "--keep", pairs, "--lines-seen", 96)
    assert code == 0, said
    assert {tuple(line.split()[:2]) for line in out.splitlines()[1:]} >= {("own", "de"), ("kept", "de"), ("kept", "fr")}
    assert f"next: xsent-export {tmp_path / 'run'} MY-BUNDLE" in said


def test_a_sentence_without_translation_is_not_measured_and_one_of_the_kept_text_is_left_out(
    mini_bundle: Path, pairs: Path, tmp_path: Path
) -> None:
    mixed, run = tmp_path / "mixed.tsv", tmp_path / "run"
    plain = [f"own\tde\tSatz {number} geht gut.\n" for number in range(200)]
    mixed.write_text(german(tmp_path / "german.tsv").read_text() + "".join(plain))
    keep = tmp_path / "keep.tsv"
    keep.write_text(pairs.read_text() + "".join(plain))
    tune(mini_bundle, mixed, run, keep=keep, lines_seen=48, threads=1)
    kept = [line.split("\t") for line in (run / "own" / "text.tsv").read_text().splitlines()]
    assert all(map(all, kept))
    validation = run / "validation.tsv"
    alone = [pair for pair in Corpus([validation]) if pair.english == pair.translation]
    assert alone
    measured = {
        text for test in _tests(checkpoint_from_bundle(mini_bundle), validation, PAIRS, run) for text in test.first
    }
    assert measured and not measured & {pair.english for pair in alone}


def test_one_group_for_all_lines_is_named(mini_bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    path.write_text("".join(f"own\tone\tquestion\tde\tFrage {n}?\tDie Antwort {n}.\n" for n in range(200)))
    raises(
        DataError, "text.tsv: too few different values of group", tune, mini_bundle, path, tmp_path / "run", threads=1
    )


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.parametrize("kind", [SENTENCES, SCORED, PASSAGES])
def test_other_text(kind: str, mini_bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    if kind == SCORED:
        write_toy_scored(path, 100)
    elif kind == PASSAGES:
        write_toy_passages(path, 150)
    else:
        columns(path, 0, 1, 3)
    assert recognise_text(path, KNOWN).kind == kind
    tuned = tune(mini_bundle, path, tmp_path / "run", lines_seen=96, threads=1)
    assert tuned.before.keys() == tuned.after.keys() >= {("own", "fr", 2), ("own", "de", 2)}
    if kind == SENTENCES:
        assert tuned.before["own", "fr", 2] == 100.0  # each finds its own vector
    assert max(logged_steps(tuned)) == (2 if kind == SENTENCES else 3)


def test_little_memory_trains_only_the_last_layer(
    tuned: Comparison, mini_bundle: Path, pairs: Path, tmp_path: Path
) -> None:
    small = tune(mini_bundle, pairs, tmp_path / "run", lines_seen=64, memory="1 GB", threads=1)
    start = checkpoint_from_bundle(mini_bundle).weights
    for result, learnt in ((small, {UPPER}), (tuned, {TABLE, LAYER, UPPER})):
        weights = load_file(result.checkpoint / "model.safetensors")
        names = (TABLE, LAYER, UPPER)  # a mean of two equal weights is rounded
        changed = {name for name in names if abs(weights[name] - start[name].numpy()).max() > 1e-6}
        assert changed == learnt
    for size in ("1", "300MB", "GB"):
        with pytest.raises(DataError, match=f"--memory {size}: expected at least"):
            tune(mini_bundle, pairs, tmp_path / "run", memory=size)


def test_interrupted_it_resumes_to_the_bit(mini_bundle: Path, pairs: Path, tmp_path: Path) -> None:
    given, measure, calls = {"lines_seen": 48 * 8, "threads": 1}, Validation.measure, iter([False, False, True])
    whole = tune(mini_bundle, pairs, tmp_path / "whole", **given)
    with mock.patch.object(Validation, "measure", autospec=True) as measured:
        measured.side_effect = lambda *known: (next(calls) and signal.raise_signal(signal.SIGINT)) or measure(*known)
        with pytest.raises(KeyboardInterrupt):
            tune(mini_bundle, pairs, tmp_path / "run", **given)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["own-0000004"]
    resumed = tune(mini_bundle, pairs, tmp_path / "run", **given)
    assert_same_weights(resumed.checkpoint, whole.checkpoint)
    assert resumed.rows() == whole.rows()


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ((2, 3), "the first column differs from line to line, so it is text instead of a source"),
        (
            (0, 2, 3),
            "no usable text; 400 lines with 3 columns, without a language code such as de where it should be; expected",
        ),
        ((2,), "400 lines with 1 field instead of 2, 3, 4 or 6; expected columns with tabs between: source, language"),
        ((0, 1, 2, 3, 0), "no usable text; 400 lines with 5 fields"),
    ],
)
def test_wrong_columns_are_named(places: tuple[int, ...], message: str, tmp_path: Path) -> None:
    raises(DataError, message, recognise_text, columns(tmp_path / "wrong.tsv", *places), KNOWN)


def test_languages_that_cannot_be_learnt(pairs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    raises(DataError, "300 lines in 'de', which the model does not know", recognise_text, pairs, ["en", "it"])
    assert recognise_text(pairs, ["en", "fr"]).languages == {"fr": 300} and "lines in 'de'" in caplog.text
    few = tmp_path / "few.tsv"
    few.write_text("".join(pairs.read_text().splitlines(keepends=True)[:20]))
    raises(DataError, "too little text, de 10, fr 10; expected at least 64", recognise_text, few, KNOWN)
    mixed = write_toy_scored(tmp_path / "mixed.tsv", 100)
    mixed.write_text(mixed.read_text() + pairs.read_text())
    raises(DataError, f"mixes {SCORED} and {PAIRS}; use one file for each", recognise_text, mixed, KNOWN)


def test_swapped_columns_are_noticed(mini_bundle: Path, tmp_path: Path) -> None:
    swapped = columns(tmp_path / "swapped.tsv", 0, 1, 3, 2)
    message = "English and its translations seem to be swapped; expected source, language, English, translation"
    raises(DataError, message, tune, mini_bundle, swapped, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_languages_and_sources_of_lines_that_are_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write_toy_scored(tmp_path / "scored.tsv", 100)
    file.write_text(file.read_text() + "wiki\tpl\t7\tPada deszcz.\tLeje.\t0.5\n" + "wiki\tfr\tx\ty\tz\n")
    assert "wiki" not in recognise_text(file, KNOWN).sources
    assert "skipped 1 lines in 'pl', which the model does not know" in caplog.text
    raises(DataError, "not a regular file, but it is read several times", recognise_text, tmp_path, KNOWN)
    assert tally(Counter(map(str, range(30)))).endswith(", 19 1, and 10 more")


def test_what_got_worse_is_said_beside_json_too(tmp_path: Path) -> None:
    row = ("own", "fr", 2)
    worse = Comparison(tmp_path, {row: 90.0}, {row: 89.5})
    with mock.patch("xsent_train.tune.tune", return_value=worse):
        code, out, err = command("tune", "builtin", "text.tsv", tmp_path, "--json")
        assert code == 0 and "worse than before: own fr at 2 layers -0.5; try fewer --lines-seen" in err
        report = json.loads(out)
        assert report["rows"][0]["change"] == -0.5 and report["losses"] == ["own fr at 2 layers -0.5"]
        code, out, _ = command("tune", "builtin", "text.tsv", tmp_path)
        assert code == 0 and "-0.5" in out


def test_a_folder_of_something_else_stays(mini_bundle: Path, pairs: Path, tmp_path: Path) -> None:
    mine = shutil.copy(pairs, tmp_path / "text.tsv")
    assert_refused(
        command("tune", mini_bundle, mine, tmp_path), "is not empty and not a run of tune; name a new folder"
    )
    without = command("tune", mini_bundle, mine, tmp_path / "run", "--tatoeba", tmp_path / "none")
    assert_refused(without, "none: no such folder; expected an en-XX.tsv such as en-fr.tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["text.tsv"]


def test_the_built_in_bundle_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert model_path(Path("builtin")) == builtin_path()
    (tmp_path / "builtin").mkdir()
    assert model_path(Path("builtin")) == Path("builtin")
