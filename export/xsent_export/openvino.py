"""OpenVINO's files, `model.xml` and `model.bin`, in float32, or in 8 bits with calibrated activations.

`input_ids` int64 [1, T] -> `sentence_embedding` float32 [1, D], not normalised, as in `model.onnx` of a bundle. In
addition, a negative id is padding and changes nothing, so that sentences of different lengths can share the shapes that
OpenVINO has prepared. In "int8" the activations have fixed scales, so a vector does not depend on other sentences.
"""

import contextlib
import errno
import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from xsent.backends.openvino import FILES, import_openvino, open_core, without_telemetry
from xsent.errors import DataError, MissingExtraError, in_one_line, install_advice, require_extra
from xsent.tokenizer import Tokenizer
from xsent_export.batch_graph import BatchGraph
from xsent_export.graph import INPUT, READOUT, SCORED, WEIGHED, EncoderGraph
from xsent_export.options import BundleSpec, Precision
from xsent_export.parity import evenly_spaced
from xsent_export.quantization import NOTHING, LayerStats
from xsent_train.checkpoint import Checkpoint
from xsent_train.model import Encoder, ModelConfig

MAX_SENTENCES = 300  # to calibrate on; more did not change any score
PRODUCTS = (SCORED, WEIGHED, READOUT)  # products of a readout, which stay in float32


class PaddedGraph(BatchGraph):
    """A graph for one sentence that treats negative ids as padding."""

    SENTENCES = 1

    def model(self) -> ModelProto:
        """The graph with its weights, and the input of `EncoderGraph`."""
        return EncoderGraph.model(self)

    def _frame(self, config: ModelConfig) -> str:
        """The ids after the id of the first token; the first padding becomes the last token."""
        first = self._constant("first", np.array([[config.first]], np.int64))
        last = self._constant("last", np.array([[config.last]], np.int64))
        none = self._constant("none", np.array([[-1]], np.int64))
        zero = self._constant("first_id", np.array(0, np.int64))
        ids = self._node("Concat", [first, INPUT, none], "ids_and_padding", axis=1)
        before = self._node("Concat", [first, first, INPUT], "ids_before", axis=1)
        padding = self._node("Less", [ids, zero], "is_padding")
        after_real = self._node("GreaterOrEqual", [before, zero], "is_after_real")
        return self._node("Where", [self._node("And", [padding, after_real], "is_last"), last, ids], "framed")

    def _is_real(self, ids: str) -> str:
        # Negative ids read rows from the end of the table, as in numpy; the mask discards them.
        return self._node("GreaterOrEqual", [ids, self._constant("first_id", np.array(0, np.int64))], "is_real")

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        # In float32, because NNCF quantises the layers itself.
        return self._float_product(name, *self._smooth(name, x, weight), bias)


def write_openvino(
    checkpoint: Checkpoint,
    encoder: Encoder,
    spec: BundleSpec,
    folder: Path,
    sentences: Sequence[str],
    stats: LayerStats = NOTHING,
) -> None:
    """Write an encoder as OpenVINO IR into an existing folder; equal weights and sentences give equal bytes.

    In 8 bits, layers are smoothed by `stats`, and the scales of the activations are calibrated on up to `MAX_SENTENCES`
    of the sentences. These should resemble later input in languages and lengths, and must not be those that the export
    is measured on. The weights cannot saturate on AVX2.

    Raises DataError if there are no sentences for 8 bits or the encoder is too large for OpenVINO's reader of ONNX, and
    MissingExtraError if this version of openvino or nncf cannot write it.
    """
    openvino = import_openvino("openvino-export")
    precision: Precision = "float32" if spec.precision == "float32" else "int8"  # a 4-bit table becomes an 8-bit one
    spec = BundleSpec(spec.num_layers, spec.dim, precision)
    graph = PaddedGraph(encoder, spec, stats)
    model = graph.serialized(checkpoint.path, "what OpenVINO reads, at most 2.1")
    samples = [] if precision == "float32" else _samples(checkpoint, sentences)
    try:
        converted = open_core().read_model(model)
        if samples:
            converted = _quantize(converted, samples)
        _name_by_place(converted)
    except MissingExtraError:
        raise
    except Exception as error:  # from an unsuitable version; the errors share no base class
        raise MissingExtraError(
            f"openvino {openvino.__version__} or its nncf cannot write this encoder ({in_one_line(error)}); "
            f"{install_advice('openvino-export', '-U ')}"
        ) from error
    xml = folder / FILES[0]
    try:
        openvino.save_model(converted, xml, compress_to_fp16=False)
    except RuntimeError as error:  # raised for any reason
        reason = f"openvino cannot write it ({in_one_line(error)}); check that there is enough room"
        raise OSError(errno.EIO, reason, str(xml)) from error


def _samples(checkpoint: Checkpoint, sentences: Sequence[str]) -> list[NDArray[np.int64]]:
    tokenizer = Tokenizer(checkpoint.tokenizer)
    longest = checkpoint.config.max_length
    encoded = (tokenizer.encode(text) for text in evenly_spaced(sentences, MAX_SENTENCES))
    samples = [np.array([ids[:longest]], np.int64) for ids in encoded if ids]
    if not samples:
        languages = ", ".join(checkpoint.languages)
        raise DataError(f"{checkpoint.path}: no sentences to calibrate int8 on; add some in {languages}")
    return samples


def _quantize(model: Any, samples: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401  openvino has no types
    """The model with weights and activations in 8 bits."""
    with require_extra("openvino-export"), without_telemetry():
        import nncf
        from nncf.quantization.range_estimator import RangeEstimatorParametersSet
    logging.getLogger("nncf").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):  # NNCF prints; standard output is for results
        return nncf.quantize(
            model,
            nncf.Dataset(samples),
            subset_size=len(samples),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=nncf.IgnoredScope(names=["row_scales", *PRODUCTS], validate=False),  # some may be missing
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                overflow_fix=nncf.OverflowFix.ENABLE,
                # The widest range, because typical ranges clip values of short sentences. Only the smoothing of
                # `stats`: three layers of a teacher keep a mean cosine to float32 of 0.995; with NNCF's 0.994, without
                # any 0.993.
                activations_range_estimator_params=RangeEstimatorParametersSet.MINMAX,
                smooth_quant_alphas=nncf.AdvancedSmoothQuantParameters(matmul=-1),
            ),
        )


def _name_by_place(model: Any) -> None:  # noqa: ANN401
    """Replace names numbered across the whole process, so that equal models get equal files."""
    for place, node in enumerate(model.get_ordered_ops()):
        name = node.get_friendly_name()
        if re.fullmatch(rf"{node.get_type_name()}_\d+", name):
            node.set_friendly_name(f"{node.get_type_name()}.{place}")
