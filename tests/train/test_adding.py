"""A third language for an encoder of two: it is found afterwards, and nothing old moves."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from commands import assert_refused
from conftest import NAMES, PHRASES, MakeEncoder, save_encoder
from numpy.typing import NDArray
from toy import GREEK
from trainings import Says, command

from xsent.bundle import TABLE, Bundle
from xsent.files.text import read_fields
from xsent_export.export import export
from xsent_export.options import ExportOptions
from xsent_train.checkpoint import Checkpoint, load_checkpoint
from xsent_train.data.corpus import Pair
from xsent_train.data.preparation import Sample, read_new_language
from xsent_train.language import Addition, LanguageComparison, OwnTeacher, Untranslated, add_language, compare_languages
from xsent_train.teacher.open import Teacher, open_teacher


def say(language: str, names: Sequence[str]) -> str:
    """A sentence; in Greek in letters that no old piece has."""
    greek = PHRASES["en"].format(*names).lower().translate(GREEK)
    return greek if language == "el" else PHRASES[language].format(*names)


def write_tatoeba(folder: Path, step: int) -> None:
    """Tests of sentences of each so many."""
    for language in ("fr", "el"):
        lines = (f"{say('en', names)}\t{say(language, names)}\n" for names in list(combinations(NAMES, 4))[::step])
        (folder / f"en-{language}.tsv").write_text("".join(lines))


Added = tuple[Checkpoint, Checkpoint, Untranslated]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs in Greek, and fewer in the two languages that the mini bundle knows."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    with path.open("w", encoding="utf-8") as file:
        for number, names in enumerate(combinations(NAMES, 4)):
            for language in ("el", "fr", "de") if number % 2 else ("el",):
                file.write(f"names\t{language}\t{say('en', names)}\t{say(language, names)}\n")
    return path


@pytest.fixture(scope="module")
def addition(pairs: Path, mini_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Addition:
    return Addition(mini_bundle, pairs, "el", tmp_path_factory.mktemp("runs") / "el", pieces=400, lines_seen=2_000)


@pytest.fixture(scope="module")
def added(addition: Addition) -> Added:
    return add_language(addition, threads=1)


def test_the_new_language_is_found_and_what_was_there_stays_to_the_bit(added: Added) -> None:
    before, after, untranslated = added
    assert untranslated.sentences == []
    assert after.config == replace(before.config, vocab_size=after.config.vocab_size)
    assert after.config.vocab_size > before.config.vocab_size
    for name, weight in before.weights.items():
        assert torch.equal(after.weights[name][: len(weight)], weight), name
    assert after.tokenizer.read_bytes().startswith(before.tokenizer.read_bytes())
    comparison = compare_languages(*added, None)
    assert list(comparison.changes) == [("held_out", language, 2) for language in ("fr", "de", "el")]
    assert comparison.before["held_out", "el", 2] < 40 < 80 < comparison.after["held_out", "el", 2]
    for old in ("fr", "de"):
        assert comparison.pairs[old] > 2 and comparison.changes["held_out", old, 2] == 0
    assert comparison.failures() == []
    assert comparison.sentences == comparison.same_pieces > 10


def test_a_table_of_4_bits_keeps_them_with_a_language_more(addition: Addition, tmp_path: Path) -> None:
    pairs = addition.pairs
    asked = ExportOptions(precision="int4-table", gate_data=pairs, tolerance=50)
    small = export(addition.model, tmp_path / "small", asked).path
    _, after, _ = add_language(replace(addition, model=small, out=tmp_path / "run", lines_seen=100), threads=1)
    grown = export(after, tmp_path / "grown", replace(asked, precision=None, least_cosine=0.5)).path
    assert Bundle.open(grown).precision == "int4-table"
    assert (grown / TABLE).read_bytes().startswith((small / TABLE).read_bytes())


def test_the_result_is_complete(added: Added, addition: Addition, tmp_path: Path) -> None:
    after = added[1]
    assert after.path == addition.out / "checkpoint"
    assert (after.name, after.licence) == ("mini-el", "CC0-1.0")
    assert after.languages == ["en", "fr", "de", "el"]
    assert after.about["attribution"] == ["names"]
    held_out = {tuple(pair) for pair in read_fields(after.validation, 4, "")}
    assert {pair[1] for pair in held_out} == {"fr", "de", "el"}
    new = read_new_language(addition.pairs, "el", ["en", "fr", "de"], 0.03)
    read = {*new.text, *(sentence.english for sentence in new.kept)}
    assert len(read) > 1000 and not {text for pair in held_out for text in pair[2:]} & read
    bundle = export(after, tmp_path / "bundle")
    card = (bundle.path / "README.md").read_text()
    assert "- names\n" in card
    assert "1. el: 62 steps, 32 pairs per step" in card


@pytest.mark.parametrize(("num_layers", "depths"), [(0, ()), (2, (0, 1, 2))])
def test_another_encoder_and_pairs_of_no_old_language(
    num_layers: int,
    depths: tuple[int, ...],
    mini_checkpoint: Path,
    make_encoder: MakeEncoder,
    pairs: Path,
    tmp_path: Path,
) -> None:
    old = load_checkpoint(mini_checkpoint)
    encoder = make_encoder(old.config.vocab_size, num_layers=num_layers, out_scale=0.05, depths=depths)
    for depth in depths:  # in one space
        readout = encoder.readout(depth)
        readout.load_state_dict({"weight": torch.eye(32), "bias": torch.zeros(32), "query": torch.zeros(32)})
    model = save_encoder(encoder, tmp_path / "model", old.tokenizer, old.validation, languages=old.languages)
    alone = tmp_path / "greek.tsv"
    alone.write_text("".join(line for line in pairs.read_text().splitlines(keepends=True) if "\tel\t" in line))
    addition = Addition(model, alone, "el", tmp_path / "run", pieces=400, lines_seen=4_000)
    _, after, _ = added = add_language(addition, threads=1)
    comparison = compare_languages(*added, None)
    assert [language for _, language, _ in comparison.changes] == ["fr", "de", "el"]  # it came with held-out pairs
    assert comparison.after["held_out", "el", num_layers] > 80
    assert comparison.failures() == []
    assert after.config.depths == depths
    own = [tuple(pair) for pair in read_fields(old.validation, 4, "")]
    assert [tuple(pair) for pair in read_fields(after.validation, 4, "")][: len(own)] == own


def teacher_of_words(seed: int, *languages: str) -> Says:
    """A teacher of 24 numbers: the sum of random vectors of words, the same in Greek letters, far from the middle."""

    @cache
    def direction(word: str) -> NDArray[np.float64]:
        return np.random.default_rng([seed, *word.encode()]).normal(size=24)

    def vector(text: str) -> NDArray[np.float32]:
        return np.float32(1 + sum(map(direction, re.findall(r"\w+", text.lower().translate(GREEK)))))

    says = Says(vector)
    says.languages = languages
    return says


def open_toy(path: Path) -> Teacher:
    """Open one of them by its name, or another teacher as ever."""
    toys = {"words": teacher_of_words(5), "some": teacher_of_words(9, "en", "fr", "el")}
    return Teacher(path, toys[path.name], path.name) if path.name in toys else open_teacher(path)


@pytest.fixture(scope="module")
def plain(addition: Addition, tmp_path_factory: pytest.TempPathFactory) -> Addition:
    """To add Greek from sentences without any translation, by two teachers."""
    folder = tmp_path_factory.mktemp("plain")
    with (folder / "plain.tsv").open("w", encoding="utf-8") as file:
        for number, names in enumerate(combinations(NAMES, 4)):
            file.writelines(f"test\t{language}\t{say(language, names)}\n" for language in ("el", "fr") if number % 5)
            file.write(f"test\t{say('en', names)}\n" if number % 5 else "")
    teachers = Path("words"), Path("some")
    return replace(addition, pairs=folder / "plain.tsv", out=folder / "el", teachers=teachers, lines_seen=4_000)


@pytest.fixture(scope="module")
def taught(plain: Addition) -> Added:
    with mock.patch("xsent_train.language.open_teacher", open_toy):
        return add_language(plain, threads=1)


def test_plain_sentences_are_learnt_from_teachers(taught: Added, tmp_path: Path) -> None:
    before, after, untranslated = taught
    assert not after.validation.exists()
    assert len(untranslated.sentences) > 2
    comparison = compare_languages(*taught, None)
    [row] = comparison.rows()
    assert row["text"] == "teacher" and row["before"] < 40 < 80 < row["after"], row
    assert comparison.failures() == []
    assert [note[:20] for note in comparison.notes()[1:]] == ["no old language was "]
    nothing = compare_languages(before, after, Untranslated([], untranslated.targets[:0]), None)
    assert nothing.rows() == []
    assert [note[:20] for note in nothing.notes()[1:]] == ["no old language was ", "el was not measured:"]
    write_tatoeba(tmp_path, step=5)  # of sentences that were not in the text
    comparison = compare_languages(*taught, tmp_path)
    assert comparison.after["tatoeba", "el", 2] > 40 > 10 > comparison.before["tatoeba", "el", 2]
    assert comparison.changes["tatoeba", "fr", 2] == 0
    assert len(comparison.notes()) == 1


def test_what_the_model_would_say_is_found_by_regression(plain: Addition) -> None:
    encoder, teachers = open_teacher(plain.model), [open_toy(path) for path in plain.teachers]
    known = [say(language, names) for names in list(combinations(NAMES, 4))[:400] for language in ("en", "fr")]
    told = OwnTeacher(encoder, teachers, known)
    unseen = list(combinations(NAMES, 4))[400:]
    pairs = [Pair("", "el", say("en", names), say("el", names)) for names in unseen]
    assert np.array_equal(told.targets(pairs), encoder.targets(pairs))
    alone = [pair._replace(english=pair.translation) for pair in pairs]
    near = (told.targets([pairs[0], *alone])[1:] * encoder.targets(pairs)).sum(axis=1)
    assert near.mean() > 0.9


def test_it_goes_on_where_it_stopped(plain: Addition, taught: Added, tmp_path: Path) -> None:
    again = replace(plain, out=tmp_path / "el")
    shutil.copytree(plain.out, again.out)
    parts = ["grown"], ["training/checkpoints", "training/teachers"], ["checkpoint"]
    with mock.patch("xsent_train.language.open_teacher", open_toy):
        for done, gone in enumerate(parts):
            kept = [again.out / part for part, *_ in parts[:done]]
            made = [path.stat().st_mtime_ns for path in kept]
            for part in gone:
                shutil.rmtree(again.out / part)
            after = add_language(again, threads=1)[1]
            assert [path.stat().st_mtime_ns for path in kept] == made
            assert all(torch.equal(after.weights[name], weight) for name, weight in taught[1].weights.items())


def add(addition: Addition, *more: object, **changes: object) -> tuple[int, str, str]:
    """What the command does."""
    asked = replace(addition, **changes)
    options = {"language": asked.language, "out": asked.out, "pieces": asked.pieces, "lines-seen": asked.lines_seen}
    named = [*options.items(), *(("teacher", teacher) for teacher in asked.teachers)]
    words = [word for name, value in named for word in (f"--{name}", value)]
    with mock.patch("xsent_train.language.open_teacher", open_toy):
        return command("add-language", asked.model, asked.pairs, *words, "--threads", 1, *more)


def test_what_cannot_be_done_is_refused(addition: Addition, added: object, plain: Addition, tmp_path: Path) -> None:
    full, other, few, none = (tmp_path / name for name in ("full", "other.tsv", "few.tsv", "none"))
    full.mkdir()
    (full / "notes.txt").touch()
    other.write_text(addition.pairs.read_text() + "test\tel\tOne more.\tενα\n")
    few.write_text("".join(plain.pairs.read_text().splitlines(keepends=True)[:300]))
    begun, new = {"out": addition.out}, tmp_path / "new"
    for changes, message in (
        ({"language": "de"}, r"already knows 'de' \(its languages: en, fr, de\)"),
        ({"language": "nl"}, r"no text in 'nl'; it has el 495, fr 247, de 247"),
        ({"model": none}, "none: neither a bundle nor a checkpoint"),
        ({"model": full}, "full: neither a bundle nor a checkpoint"),
        ({"pairs": none}, r"none: no such file"),
        ({"out": full}, "full: is not empty and not a run"),
        ({"pairs": other, **begun}, "was started with other pairs; name another --out"),
        ({"pieces": 300, **begun}, "was started with other pieces; name another --out"),
        ({"teachers": ["words"], **begun}, "was started with other teachers"),
        ({"lines_seen": 99, **begun}, r"with other settings \(table\.steps: 62 became 3, .*name another folder"),
        (
            {"pairs": plain.pairs},
            "396 sentences in 'el' have no translation; name a model that knows the language with",
        ),
        ({"pairs": few, "teachers": ["words", "some"]}, "that the model and its teachers know, .* it takes 384"),
        ({"teachers": [none]}, "none: no such folder"),
        ({"teachers": [addition.model]}, f"teacher {addition.model}: does not know 'el', only en, fr, de"),
    ):
        assert_refused(add(addition, **{"out": new, **changes}), message)
        assert not new.exists()


def test_losses_are_failures() -> None:
    def compare(**points: tuple[float, ...]) -> LanguageComparison:
        named = {code: zip(("held_out", "tatoeba"), more, strict=False) for code, more in points.items()}
        gains = {(text, code, 2): gain for code, more in named.items() for text, gain in more}
        after = {row: 50 + gain for row, gain in gains.items()}
        pairs = dict.fromkeys(points, 100)
        return LanguageComparison(Path(), dict.fromkeys(gains, 50.0), after, "el", pairs, 200, 199)

    comparison = compare(fr=(0, -0.25), de=(0.5, -0.5), el=(0.0, 0.0))
    assert comparison.failures() == ["tatoeba de at 2 layers -0.5", "el gained nothing"]
    assert comparison.notes()[0] == "held-out pairs: fr 100, de 100, el 100" and "199 (99.50%)" in comparison.notes()[1]
    assert compare(fr=(0.0, 0.0), el=(1.0, -0.5)).failures() == []
    alone = compare(el=(1.0,))
    assert alone.failures() == []
    assert "no old language was measured" in alone.notes()[2]


def test_the_command_fails_if_the_new_language_gained_nothing(addition: Addition, added: object) -> None:
    with mock.patch.object(LanguageComparison, "failures", return_value=["el gained nothing"]):
        code, _, said = add(addition)
    assert code == 1
    assert re.search(
        "Error: el gained nothing; .*was still written; add more text in these languages to .*pairs.tsv", said
    )


def test_english_alone_says_what_must_be_read_as_before(pairs: Path, tmp_path: Path) -> None:
    path = tmp_path / "more.tsv"
    alone = [f"Sentence number {number}." for number in range(100)]
    path.write_text(pairs.read_text() + "".join(f"wiki\t{text}\n" for text in alone))
    new = read_new_language(path, "el", ["en", "fr", "de"], 0.03)
    kept = [sentence.english for sentence in new.kept]
    assert len(set(alone) & set(kept)) > 90 and all(kept)
    assert not any(pair.alone for pair in new.held_out) and (new.found, new.plain) == (495, 0)


def test_a_sample_is_the_smallest_ranks() -> None:
    sample = Sample[str](3)
    for rank in (5, 9, 1, 7, 3, 8, 2, 1):
        sample.add((rank,), f"item {rank}")
    assert sample.items() == ["item 1", "item 2", "item 3"]


def test_the_command(addition: Addition, added: object, tmp_path: Path) -> None:
    write_tatoeba(tmp_path, step=30)
    code, out, err = add(addition, "--tatoeba", tmp_path)
    assert code == 0, err
    heading, *rows = out.splitlines()
    assert heading.split() == ["text", "language", "layers", "before", "after", "change"]
    texts = [*(["held_out", code] for code in ("fr", "de", "el")), ["tatoeba", "el"], ["tatoeba", "fr"]]
    assert [row.split()[:2] for row in rows[:5]] == texts
    assert rows[5].startswith("held-out pairs: fr ") and "(100.00%)" in rows[6]
    assert f"next: xsent-export {addition.out / 'checkpoint'} MY-BUNDLE\n" in err
    code, out, _ = add(addition, "--json")
    report = json.loads(out)
    assert (code, report["language"]) == (0, "el")
    assert report["rows"][0]["change"] == 0 and report["pairs"]["fr"] > 2
    assert_refused(add(addition, "--tatoeba", addition.out), "no en-el.tsv")
    with mock.patch("xsent_train.language.LanguageComparison.failures", lambda _: ["tatoeba fr -0.4"]):
        code, out, err = add(addition)
    assert code == 1 and out.startswith("text")
    assert err.splitlines()[-1].startswith("Error: tatoeba fr -0.4; ")
