"""Graphs that read text, run by onnxruntime with onnxruntime-extensions as on a phone."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from sentencepiece import SentencePieceProcessor
from texts import multilingual
from trainings import export_command

from xsent.clean import remove_format
from xsent.encoder import SentenceEncoder

extensions = pytest.importorskip("onnxruntime_extensions")
ODD = ["", " ", "a\u00adb", "ge\u200böffnet", "\ufeffx", "ﬁ Å ①", "<unk> <s>", "🙂\n\t猫", "the cat " * 60, "\u202eabc"]


@pytest.fixture(scope="module")
def folder(mini_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("text") / "out"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # onnxruntime's tool leaves a file open
        export_command(mini_bundle, out, "--format", "text")
    return out


def open_session(graph: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(extensions.get_library_path())
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
@pytest.mark.parametrize("file", ["text.onnx", "text.ort"])
def test_text_goes_in_and_the_vector_of_the_bundle_comes_out(file: str, folder: Path, mini_bundle: Path) -> None:
    texts = [*ODD, *multilingual(300)]
    session = open_session(str(folder / file))
    vectors = np.concatenate([session.run(["vector"], {"text": np.array([text])})[0] for text in texts])
    np.testing.assert_allclose(vectors, SentenceEncoder(mini_bundle).encode(texts), atol=1e-5)


def test_its_ids_are_those_of_sentencepiece_and_its_operators_are_listed(folder: Path, mini_bundle: Path) -> None:
    model = onnx.load(folder / "text.onnx")
    model.graph.output.append(onnx.helper.make_tensor_value_info("kept", onnx.TensorProto.INT64, ["tokens"]))
    session = open_session(model.SerializeToString())
    processor = SentencePieceProcessor(model_file=str(mini_bundle / "sentencepiece.model"))
    most = SentenceEncoder(mini_bundle).max_length
    for text in [*ODD, *multilingual(2000)]:
        (ids,) = session.run(["kept"], {"text": np.array([text])})
        assert ids.tolist() == processor.encode(remove_format(text))[:most], text
    lines = (folder / "text.required_operators.config").read_text().splitlines()  # of a reduced build
    assert "ai.onnx.contrib;1;SentencepieceTokenizer,StringRegexReplace" in lines
    assert not any(line.startswith("#") for line in lines)
