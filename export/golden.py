"""Golden vectors: sentences with the vectors that a healthy bundle gives them, and how far processors may differ."""

import math
import warnings

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.export.options import Form
from xsent.export.quantization import Target
from xsent.manifest import OTHER
from xsent.options import UnknownTextWarning
from xsent.probe import SATURATING, instruction_set

# Some of everything that can go wrong elsewhere: scripts, signs, case, bytes outside the vocabulary, length.
GOLDEN = (
    "The cat sleeps.",
    "Le chat dort près de la fenêtre.",
    "Wir haben gestern 3,5 Kilometer zurückgelegt.",
    "¿Dónde está la estación de tren más cercana?",
    "PERCHÉ NO?",
    "ﬁne ½ ☃ 猫が眠る 🙂",
    "If it rains tomorrow, we shall meet in the large room on the second floor, and not in the garden.",
)
# Largest difference of a number, as a share of their typical size, 1 / sqrt(dim). Integer sums are the same wherever
# they do not saturate, but where a last digit rounds another way, layer upon layer makes a part of the whole rounding
# noise of it: between onnxruntime and numpy a number in tens of thousands differs by 4 times its deviation. A wrong
# tokenizer or saturated sums move numbers by their own size.
FLOAT, SAME, FOREIGN, NOISE = 0.001, 0.02, 0.2, 6.0
INSTRUCTIONS: dict[Target, tuple[str, ...]] = {
    "portable": ("avx512_vnni", "avx_vnni", "avx512", "avx2", "arm64_dot", "arm64"),
    "vnni": ("avx512_vnni", "avx_vnni"),
    "arm64": ("arm64_dot",),
}


def tolerances(form: Form, cosine: float) -> dict[str, float]:
    """The largest difference of a number that is no fault, by processor; `cosine` is the mean that was measured."""
    if form.precision == "float32":
        shares = {OTHER: FLOAT}
    else:
        noise = NOISE * math.sqrt(2 * (1 - cosine)) if form.num_layers else 0.0
        same = max(SAME, noise)
        shares = {name: same for name in INSTRUCTIONS[form.target]} | {OTHER: max(FOREIGN, noise)}
    return {name: round(share / math.sqrt(form.dim), 6) for name, share in shares.items()}


def check_processor(target: Target) -> None:
    """Refuse a target whose sums would saturate here: neither the gate nor golden vectors would say anything of it."""
    here = instruction_set()
    if target != "portable" and here in SATURATING:
        raise DataError(
            f"--target {target} cannot be measured here: 8-bit sums saturate on this processor ({here}); export on one "
            "with VNNI or on ARM, or use --target portable"
        )


def golden(encoder: SentenceEncoder, form: Form, cosine: float) -> dict[str, object]:
    """The sentences that fit into a bundle, their vectors, and the `tolerances`."""
    sentences = [text for text in GOLDEN if encoder.count_tokens(text) <= encoder.max_length]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # they are of many scripts on purpose
        encoded = encoder.encode(sentences)
    vectors = [[round(float(number), 6) for number in row] for row in encoded]
    return {"sentences": sentences, "vectors": vectors, "tolerance": tolerances(form, cosine)}
