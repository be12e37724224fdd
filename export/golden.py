"""Golden vectors: sentences with the vectors that a healthy bundle gives them, and how far processors may differ."""

import math
import warnings

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.export.form import Form
from xsent.export.quantization import Target
from xsent.instruction_set import instruction_set
from xsent.manifest import OTHER
from xsent.options import UnknownTextWarning
from xsent.tokenizer import Tokenizer

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
# they do not saturate, and activations round alike but in rare places: measured on the built-in model, AVX2 and AVX-512
# with VNNI agree to the last digit stored, and ARM differs by 0.003. A wrong tokenizer or saturated sums move numbers
# by their own size.
FLOAT, SAME, FOREIGN = 0.001, 0.02, 0.2
SATURATING = ("avx512", "avx2", "x86")
INSTRUCTIONS: dict[Target, tuple[str, ...]] = {
    "portable": ("avx512_vnni", "avx_vnni", "avx512", "avx2", "arm64_dot", "arm64"),
    "vnni": ("avx512_vnni", "avx_vnni"),
    "arm64": ("arm64_dot",),
}


def tolerances(form: Form) -> dict[str, float]:
    """The largest difference of a number that is no fault, by the processor's instructions."""
    if form.precision == "float32":
        shares = {OTHER: FLOAT}
    else:
        shares = {name: SAME for name in INSTRUCTIONS[form.target]} | {OTHER: FOREIGN}
    return {name: round(share / math.sqrt(form.dim), 6) for name, share in shares.items()}


def check_processor(target: Target, instructions: str | None = None) -> None:
    """Refuse a target whose sums would saturate here: neither the gate nor golden vectors would say anything of it.

    Args:
        target: What the weights are made for.
        instructions: This processor's; only tests need others.

    Raises:
        DataError: They would.
    """
    here = instructions or instruction_set()
    if target != "portable" and here in SATURATING:
        raise DataError(
            f"--target {target} cannot be measured here: 8-bit sums saturate on this processor ({here}); export on one "
            "with VNNI or on ARM, or use --target portable"
        )


def golden(encoder: SentenceEncoder) -> dict[str, object]:
    """The sentences that fit into a bundle, and their vectors."""
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    sentences = [text for text in GOLDEN if len(tokenizer.encode(text)) <= encoder.max_length]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # they are of many scripts on purpose
        encoded = encoder.encode(sentences)
    return {"sentences": sentences, "vectors": [[round(float(number), 6) for number in row] for row in encoded]}
