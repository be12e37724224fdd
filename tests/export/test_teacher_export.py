"""A teacher in 8 bits: its vectors, and the folder that holds it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, raises
from lazy import needs
from tiny_bert import WIDTH
from trainings import export_command

from xsent.errors import DataError, ParityError
from xsent_export import teacher as exporting
from xsent_export.options import ExportOptions
from xsent_export.teacher import export_teacher
from xsent_train.teacher.bert import open_sentence_transformer
from xsent_train.teacher.open import open_int8_teacher, open_teacher

pytestmark = needs("sentence_transformers")

TEACHER = ExportOptions("teacher")
TEXTS = ["The cat sleeps under the old tree.", "dog", "", "Never see a wet bird! " * 20]


@pytest.fixture(scope="module")
def exported(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_teacher(bert, tmp_path_factory.mktemp("exported") / "out", TEACHER).path


def test_its_vectors_are_nearly_those_of_the_original(bert: Path, exported: Path, tmp_path: Path) -> None:
    original = open_sentence_transformer(bert)
    teacher = open_teacher(exported)
    vectors = teacher.encode(TEXTS)
    assert teacher.dim == WIDTH and vectors.shape == (4, WIDTH) and vectors.dtype == np.float32
    assert (vectors * original.encode(TEXTS)).sum(axis=1).min() > 0.99
    np.testing.assert_array_equal(teacher.encode(TEXTS[:1] * 100), np.repeat(vectors[:1], 100, axis=0))
    assert open_int8_teacher(bert) is None
    result = export_teacher(bert, tmp_path / "out", ExportOptions("teacher", "float32"))
    assert result.agreement.cosine_min == 1
    exact = open_int8_teacher(result.path)
    assert len(exact.encode([])) == 0
    np.testing.assert_allclose(exact.encode(TEXTS), original.encode(TEXTS), atol=1e-5)


def test_the_command_prints_the_agreement_and_the_identity(bert: Path, exported: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("web\tfr\ta cat\tun chat\nweb\tfr\tthe old tree\tle vieil arbre\n")
    options = ["--format", "teacher", "--gate-data", pairs]
    code, out, err = export_command(bert, tmp_path / "out", *options)
    assert code == 0 and "cosine to the original over 2 sentences: mean 0.99" in out, err
    printed = json.loads(export_command(bert, tmp_path / "b", *options, "--json")[1])
    assert printed["agreement"]["sentences"] == 2 and printed["bytes"] > 1000
    same, original = open_teacher(tmp_path / "b").identity, open_teacher(bert).identity
    assert open_teacher(exported).identity == same == printed["fingerprint"] != original
    assert json.loads((exported / "teacher.json").read_bytes())["teacher"] == original


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin", "tokenizer.json", "teacher.json"])
def test_a_damaged_teacher_is_one_line(name: str, exported: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(exported, tmp_path / "damaged"))
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
    out = tmp_path / "out"
    raises(DataError, "whose layers can be taken over", export_teacher, mini_bundle, out, TEACHER)
    assert_refused(export_command(bert, out), "export it as a teacher with --format teacher")
    useless = export_command(bert, out, "--format", "teacher", "--layers", 2, "--force")
    assert_refused(useless, "--force, --layers: not supported by --format teacher")
    monkeypatch.setattr(exporting, "LEAST_COSINE", 1.01)
    raises(ParityError, r"to the original's vectors, expected at least 1\.01", export_teacher, bert, out, TEACHER)
    assert not list(tmp_path.iterdir())
