"""The encoder as OpenVINO IR, `model.xml` and `model.bin`: in float32, with 8-bit weights, or quantised with samples.

`input_ids` int64 [1, T] -> `sentence_embedding` float32 [1, D], not normalised: the contract of `model.onnx`, and one
thing more. An id below zero is padding: it changes nothing, so that sentences of different lengths can share the
shapes that OpenVINO has prepared. In "int8" the activations have fixed scales; nothing depends on company.

Not called `openvino`: whoever runs Python in this folder would import it instead of the package.
"""

import contextlib
import errno
import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from xsent.backends.openvino import FILES, import_openvino, without_telemetry
from xsent.errors import DataError, MissingExtraError, in_one_line, require_extra
from xsent.tokenizer import Tokenizer
from xsent_export.calibration import NOTHING, calibration_of
from xsent_export.check import spread
from xsent_export.formats.batch_graph import BatchGraph
from xsent_export.graph import INPUT, READOUT, EncoderGraph
from xsent_export.options import BundleSpec, Precision
from xsent_train.checkpoint import Checkpoint
from xsent_train.model import ModelConfig

Kind = Literal["fp32", "int8-weights", "int8"]

MAX_SENTENCES = 300  # to calibrate with; more moved no score


class PaddedGraph(BatchGraph):
    """An encoder as a graph of one sentence, whose negative ids are padding."""

    def model(self) -> ModelProto:
        """The graph with its weights, which asks for what our own graph asks for."""
        return EncoderGraph.model(self)

    def _frame(self, config: ModelConfig) -> str:
        """The ids after that of the first token, the last one in the place of the first padding."""
        first, last, none = (
            self._constant(name, np.array([[value]], np.int64))
            for name, value in (("first", config.first), ("last", config.last), ("none", -1))
        )
        zero = self._constant("first_id", np.array(0, np.int64))
        ids = self._node("Concat", [first, INPUT, none], "ids_and_padding", axis=1)
        before = self._node("Concat", [first, first, INPUT], "ids_before", axis=1)
        padding = self._node("Less", [ids, zero], "is_padding")
        after_real = self._node("GreaterOrEqual", [before, zero], "is_after_real")
        return self._node("Where", [self._node("And", [padding, after_real], "is_last"), last, ids], "framed")

    def _is_real(self, ids: str) -> str:
        # The table is read at negative ids too, from its end, as numpy does; the mask makes that of no account.
        return self._node("GreaterOrEqual", [ids, self._constant("first_id", np.array(0, np.int64))], "is_real")

    def _is_quantized(self) -> bool:
        return False  # NNCF does that; its tables would be float32 in memory

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        return super()._product(name, *self._smooth(name, x, weight), bias)


def write_openvino(
    checkpoint: Checkpoint, form: BundleSpec, folder: Path, *, kind: Kind, calibration: Sequence[str]
) -> None:
    """Write an encoder as OpenVINO IR into an existing folder; the same weights and sentences give the same bytes.

    "int8-weights" calculates in float32; "int8" in 8 bits, in the layers with weights that cannot saturate on AVX2. By
    `MAX_SENTENCES` of those for calibration "int8" finds the scales of the activations: give some in the languages and
    of the lengths that it will meet, not those that it is measured with.

    A DataError where "int8" has no sentences or the encoder is too large for OpenVINO's reader of ONNX, a
    MissingExtraError where openvino or nncf lacks what is needed.
    """
    openvino = import_openvino("export")
    precision: Precision = "float32" if kind == "fp32" else "int8"
    form = BundleSpec(form.num_layers, form.dim, precision)
    known = calibration_of(checkpoint, form, calibration) if kind == "int8" else NOTHING
    model = PaddedGraph(checkpoint.load_encoder(), form, known).serialized(
        checkpoint.given, "what OpenVINO reads, at most 2.1"
    )
    samples = _samples(checkpoint, calibration) if kind == "int8" else []
    try:
        converted = openvino.Core().read_model(model)
        if kind != "fp32":
            converted = _quantize(converted, samples)
        _name_by_place(converted)
    except MissingExtraError:
        raise
    except Exception as error:  # of an unsuitable version; theirs share no base class
        raise MissingExtraError(
            f"openvino {openvino.__version__} or its nncf cannot write this encoder ({in_one_line(error)}); "
            "pip install -U 'xsent[export]'"
        ) from error
    xml = folder / FILES[0]
    try:
        openvino.save_model(converted, xml, compress_to_fp16=False)
    except RuntimeError as error:  # its only one, whatever the reason
        reason = f"openvino cannot write it ({in_one_line(error)}); is there room?"
        raise OSError(errno.EIO, reason, str(xml)) from error


def _samples(checkpoint: Checkpoint, sentences: Sequence[str]) -> list[NDArray[np.int64]]:
    tokenizer, longest = Tokenizer(checkpoint.tokenizer), checkpoint.config.max_length
    found = (tokenizer.encode(text) for text in spread(sentences, MAX_SENTENCES))
    samples = [np.array([ids[:longest]], np.int64) for ids in found if ids]
    if not samples:
        languages = ", ".join(checkpoint.languages)
        raise DataError(f"{checkpoint.given}: no sentences to calibrate int8 with; give some in {languages}")
    return samples


def _quantize(model: Any, samples: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401  openvino has no types
    """8 bits for the weights, and for the activations too if there are samples."""
    with require_extra("export"), without_telemetry():
        import nncf
        from nncf.quantization.range_estimator import RangeEstimatorParametersSet
    logging.getLogger("nncf").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):  # tables and progress bars: standard output is for results
        exact = nncf.IgnoredScope(names=["row_scales", READOUT], validate=False)  # not all have a readout
        if not samples:
            mode = nncf.CompressWeightsMode.INT8_SYM
            return nncf.compress_weights(model, mode=mode, ignored_scope=exact)
        return nncf.quantize(
            model,
            nncf.Dataset(samples),
            subset_size=len(samples),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=exact,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                overflow_fix=nncf.OverflowFix.ENABLE,
                # The widest range met: typical ranges cut off what short sentences need. And no smoothing but ours:
                # through three layers of a teacher 0.995 mean cosine to float32, by theirs 0.994, by none 0.993.
                activations_range_estimator_params=RangeEstimatorParametersSet.MINMAX,
                smooth_quant_alphas=nncf.AdvancedSmoothQuantParameters(matmul=-1),
            ),
        )


def _name_by_place(model: Any) -> None:  # noqa: ANN401
    """Replace the numbers in names that count all nodes of this process, so that equal models get equal files."""
    for place, node in enumerate(model.get_ordered_ops()):
        name = node.get_friendly_name()
        if re.fullmatch(rf"{node.get_type_name()}_\d+", name):
            node.set_friendly_name(f"{node.get_type_name()}.{place}")
