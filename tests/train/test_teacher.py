"""Teachers of every kind, and their vectors on disk: each once, resumable, refused when damaged."""

import errno
import json
import shutil
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import sentencepiece as spm
from commands import edit_json, raises
from numpy.typing import NDArray
from toy import toy_pairs
from trainings import Says, look

from xsent.errors import DataError
from xsent_train.data.corpus import Pair
from xsent_train.data.store import kept_pairs, tokenise
from xsent_train.teacher import cache as making
from xsent_train.teacher.cache import TeacherVectors, teacher_vectors
from xsent_train.teacher.open import Teacher, open_teacher

DIM = 6
ABOUT = {"teacher": "0123456789abcdef", "store": "k", "side": "english"}
PAIRS = [Pair(*pair) for pair in toy_pairs(300)]


@pytest.fixture
def encoder() -> Says:
    return Says(lambda text: 3 * look(text))


@pytest.fixture
def teacher(encoder: Says) -> Teacher:
    made = Teacher(Path("hashing"), encoder, "0123456789abcdef")
    encoder.asked.clear()
    return made


def expected(numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.stack([look(PAIRS[number].english) for number in numbers])


def every(step: int) -> NDArray[np.int64]:
    return np.arange(0, len(PAIRS), step)


def test_rows_are_the_unit_vectors_of_the_english_sides(tmp_path: Path, teacher: Teacher) -> None:
    vectors = teacher_vectors(teacher, PAIRS, every(3), tmp_path / "teachers", key="k")
    asked = np.random.default_rng(0).permutation(np.repeat(every(3), 2))  # any order, each twice
    assert vectors.rows(asked).dtype == np.float32
    assert np.array_equal(vectors.rows(asked), expected(asked).astype(np.float16).astype(np.float32))
    assert len(vectors) == 100 and vectors.rows(np.zeros(0, np.int64)).shape == (0, vectors.dim) == (0, DIM)


def test_only_what_is_missing_is_encoded_and_once(tmp_path: Path, teacher: Teacher, encoder: Says) -> None:
    teacher_vectors(teacher, PAIRS, every(4), tmp_path, key="k")
    assert encoder.asked == list(dict.fromkeys(PAIRS[i].english for i in every(4)))
    encoder.asked.clear()
    vectors = teacher_vectors(teacher, PAIRS, every(2), tmp_path, key="k")
    assert encoder.asked == list(dict.fromkeys(PAIRS[i].english for i in every(2) if i % 4))
    assert np.allclose(vectors.rows(every(2)), expected(every(2)), atol=1e-3)
    encoder.asked.clear()
    again = teacher_vectors(teacher, [], every(4), tmp_path, key="k")  # nothing is missing, so no pair is read
    assert not encoder.asked
    assert np.array_equal(again.rows(every(4)), vectors.rows(every(4)))
    pairs = [Pair("talk", language, english, "-") for english in ("one", "two", "one") for language in ("de", "fr")]
    rows = teacher_vectors(teacher, pairs, np.arange(6), tmp_path / "equal", key="k").rows(np.arange(6))
    assert encoder.asked == ["one", "two"] and np.array_equal(rows, rows[[0, 0, 2, 2, 0, 0]])


def test_an_interrupted_run_goes_on_after_its_last_batch(
    tmp_path: Path, teacher: Teacher, encoder: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "BATCH", 40)
    monkeypatch.setattr(making, "CHUNK", 16)
    stop = mock.Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):  # in the third batch
        teacher_vectors(teacher, chain(PAIRS[:100], iter(stop, None)), every(1), tmp_path, key="k")
    assert set(encoder.asked) == {pair.english for pair in PAIRS[:80]}
    with open(tmp_path / f"teacher-{teacher.identity}" / "vectors.f16", "ab") as file:
        file.write(b"part of a batch that was killed")
    encoder.asked.clear()
    vectors = teacher_vectors(teacher, PAIRS, every(1), tmp_path, key="k")
    assert set(encoder.asked) == {pair.english for pair in PAIRS[80:]}
    assert np.allclose(vectors.rows(every(1)), expected(every(1)), atol=1e-3)


def test_a_full_disk(tmp_path: Path, teacher: Teacher, encoder: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "BATCH", 100)
    TeacherVectors(tmp_path / f"teacher-{teacher.identity}", dim=DIM, about=ABOUT)
    full = OSError(errno.ENOSPC, "No space left on device")
    after_the_first_batch = mock.patch("os.fsync", side_effect=chain([None, None], repeat(full)))
    with after_the_first_batch, pytest.raises(DataError, match="No space left on device; make room"):
        teacher_vectors(teacher, PAIRS, every(1), tmp_path, key="k")
    encoder.asked.clear()
    teacher_vectors(teacher, PAIRS, every(1), tmp_path, key="k")
    assert set(encoder.asked) == {pair.english for pair in PAIRS[100:]}


def test_what_is_missing_or_of_another_store_is_named(tmp_path: Path, teacher: Teacher) -> None:
    vectors = teacher_vectors(teacher, PAIRS, every(2), tmp_path, key="k")
    for pairs, first in (([6, 7, 8], 7), ([299], 299)):
        raises(DataError, f"no vector of pair {first};", vectors.rows, np.array(pairs))
    with pytest.raises(DataError, match="teacher vectors of another store; delete it"):
        teacher_vectors(teacher, PAIRS, every(2), tmp_path, key="other")
    with pytest.raises(DataError, match="pair 251 of the store is not in the corpus"):
        teacher_vectors(teacher, PAIRS[:250], every(1), tmp_path, key="k")
    broken = SimpleNamespace(encode=lambda texts: np.array([[1.0, 0.0], [np.nan, 0.0]])[: len(texts)])
    with pytest.raises(DataError, match="teacher broken: its vector of 'two' is not finite"):
        Teacher(Path("broken"), broken, "x").encode(["one", "two"])


@pytest.mark.parametrize("name", ["about.json", "vectors.f16"])
@pytest.mark.parametrize("size", [0, 20])
def test_a_damaged_cache_is_refused(tmp_path: Path, teacher: Teacher, name: str, size: int) -> None:
    path = teacher_vectors(teacher, PAIRS, every(2), tmp_path, key="k").path
    file = next(path.rglob(name))
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(DataError, match=r"delete the .*, and it is rebuilt") as caught:
        teacher_vectors(teacher, PAIRS, every(2), tmp_path, key="k")
    assert "\n" not in str(caught.value)


def test_two_trainings_do_not_write_over_each_other(tmp_path: Path) -> None:
    first, second = (TeacherVectors(tmp_path / "cache", dim=2, about={}) for _ in range(2))
    first.add(np.array([3, 1]), np.array([[1, 0], [0, 1]], np.float16))
    raises(DataError, "another training adds vectors to it", second.add, np.array([2]), np.zeros((1, 2), np.float16))
    assert np.array_equal(TeacherVectors(tmp_path / "cache", dim=2, about={}).rows(np.array([1, 3])), [[0, 1], [1, 0]])


def test_kept_pairs_are_those_of_the_store(toy_tokenizer: Path) -> None:
    codes = [*range(0x300), *range(0x1FF0, 0x2070), *range(0x3000, 0x3170), 0xFE0F, 0xFEFF, 0xFFFD, 0xE0041, 0x1F600]
    odd = [Pair("talk", "de", side, "x") for code in codes for side in (chr(code), f"\u200b{chr(code)}")]
    pairs = [*odd, *(pair._replace(english="x", translation=pair.english) for pair in odd)]
    pairs += [Pair("wiki", "en", pair.translation, "") for pair in odd] + PAIRS
    processor = spm.SentencePieceProcessor(model_file=str(toy_tokenizer))
    kept, _ = tokenise(processor, pairs, 1)
    assert list(kept_pairs(pairs, processor)) == kept
    assert len(PAIRS) < len(kept) < len(pairs)


def test_bundles_and_checkpoints_teach(mini_bundle: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    teacher = open_teacher(mini_bundle)
    assert teacher.dim == 32
    assert teacher.identity == json.loads((mini_bundle / "xsent.json").read_text())["fingerprint"]
    assert np.allclose(np.linalg.norm(teacher.encode(["Anna", "Boris and Clara"]), axis=1), 1)
    copy = Path(shutil.copytree(mini_checkpoint, tmp_path / "copy"))
    identity = open_teacher(copy).identity
    assert identity == open_teacher(mini_checkpoint).identity
    edit_json(copy / "checkpoint.json", step=8)
    assert open_teacher(copy).identity != identity  # that of its files
    assert open_teacher(copy).encode(["Anna"]).shape == (1, 32)
