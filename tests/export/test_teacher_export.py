"""A teacher in 8 bits: its vectors, and the folder that holds it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused
from tiny_bert import WIDTH
from trainings import export_command

from xsent.errors import BundleError, DataError, ParityError
from xsent_export import teacher as teachers
from xsent_export.options import ExportOptions
from xsent_export.teacher import export_teacher
from xsent_train.teacher.base import open_int8_teacher
from xsent_train.teacher.bert import open_sentence_transformer
from xsent_train.teacher.setup import open_teacher

pytest.importorskip("sentence_transformers")

TEXTS = ["The cat sleeps under the old tree.", "dog", "", "Never see a wet bird! " * 20]


@pytest.fixture(scope="module")
def quick(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_teacher(bert, tmp_path_factory.mktemp("quick") / "out").path


def test_its_vectors_are_nearly_those_of_the_original(bert: Path, quick: Path) -> None:
    theirs = open_sentence_transformer(bert)
    assert theirs is not None
    teacher = open_teacher(quick)
    vectors = teacher.encode(TEXTS)
    assert teacher.dim == WIDTH and vectors.shape == (4, WIDTH) and vectors.dtype == np.float32
    assert (vectors * theirs.encode(TEXTS)).sum(axis=1).min() > 0.99
    np.testing.assert_array_equal(teacher.encode(TEXTS[:1] * 100), np.repeat(vectors[:1], 100, axis=0))
    assert open_int8_teacher(bert) is None


def test_float32_has_the_vectors_of_the_original(bert: Path, tmp_path: Path) -> None:
    written = export_teacher(bert, tmp_path / "out", ExportOptions("teacher", "float32"))
    assert written.agreement is not None and written.agreement.cosine_min == 1
    theirs, ours = open_sentence_transformer(bert), open_int8_teacher(written.path)
    assert theirs is not None and ours is not None and len(ours.encode([])) == 0
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)


def test_the_command_says_how_near_it_is_and_its_identity_is_its_own(bert: Path, quick: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("web\tfr\ta cat\tun chat\nweb\tfr\tthe old tree\tle vieil arbre\n")
    options = ["--format", "teacher", "--gate-data", pairs]
    code, out, err = export_command(bert, tmp_path / "out", *options)
    assert code == 0 and "cosine to the original over 2 sentences: mean 0.99" in out, err
    told = json.loads(export_command(bert, tmp_path / "b", *options, "--json")[1])
    assert told["agreement"]["sentences"] == 2 and told["bytes"] > 1000
    same, other = open_teacher(tmp_path / "b").identity, open_teacher(bert).identity
    assert open_teacher(quick).identity == same == told["fingerprint"] != other
    assert json.loads((quick / "teacher.json").read_bytes())["teacher"] == other


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin", "embeddings.bin", "tokenizer.json", "teacher.json"])
def test_a_damaged_teacher_is_one_line(name: str, quick: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(quick, tmp_path / "damaged"))
    content = (damaged / name).read_bytes()
    for broken in (content[: len(content) // 2], None):
        (damaged / name).unlink()
        if broken is not None:
            (damaged / name).write_bytes(broken)
        with pytest.raises(DataError, match=r"damaged.*export it again|known kinds: bundle, .*sentence-tr") as caught:
            open_teacher(damaged)
        assert "\n" not in str(caught.value)


def test_other_folders_are_refused_and_nothing_is_left(
    bert: Path, mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BundleError, match="exists; name another folder"):
        export_teacher(bert, tmp_path)
    with pytest.raises(DataError, match="whose layers can be taken over"):
        export_teacher(mini_bundle, tmp_path / "out")
    monkeypatch.setattr(teachers, "LEAST", 1.01)
    with pytest.raises(ParityError, match=r"to the original's vectors, expected at least 1\.01"):
        export_teacher(bert, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "a model of sentence-transformers; --format teacher makes a teacher of it"),
        (["--format", "teacher", "--layers", "2", "--force"], "--force, --layers: not for --format teacher"),
    ],
)
def test_what_makes_no_sense_is_one_line(options: list[str], message: str, bert: Path, tmp_path: Path) -> None:
    assert_refused(export_command(bert, tmp_path / "out", *options), message)
    assert not list(tmp_path.iterdir())
