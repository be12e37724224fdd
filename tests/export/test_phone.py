"""Graphs that read text, run by onnxruntime with onnxruntime-extensions as on a phone."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from lazy import Lazy, needs
from texts import multilingual
from trainings import export_command

from xsent.encoder import SentenceEncoder

TextEncoder = Lazy("xsent_export.phone:TextEncoder")
pytestmark = needs("onnxruntime_extensions")
ODD = ["", " ", "a\u00adb", "ge\u200böffnet", "\ufeffx", "ﬁ Å ①", "<unk> <s>", "🙂\n\t猫", "the cat " * 60, "\u202eabc"]


@pytest.fixture(scope="module")
def folder(mini_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("text") / "out"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # onnxruntime's tool leaves a file open
        export_command(mini_bundle, out, "--format", "text")
    return out


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
@pytest.mark.parametrize("file", ["text.onnx", "text.ort"])
def test_text_goes_in_and_the_vector_of_the_bundle_comes_out(file: str, folder: Path, mini_bundle: Path) -> None:
    texts = [*ODD, *multilingual(500)]
    expected = SentenceEncoder(mini_bundle).encode(texts)
    np.testing.assert_allclose(TextEncoder(folder / file).encode(texts), expected, atol=1e-5)


def test_its_operators_are_listed(folder: Path) -> None:
    lines = (folder / "text.required_operators.config").read_text().splitlines()  # of a reduced build
    assert "ai.onnx.contrib;1;SentencepieceTokenizer,StringRegexReplace" in lines
    assert not any(line.startswith("#") for line in lines)
