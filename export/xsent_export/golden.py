"""Golden vectors: sentences and their vectors in a manifest, by which a bundle is verified on another machine."""

import math
import warnings

from xsent.bundle import OTHER
from xsent.encoder import SentenceEncoder, UnknownTextWarning
from xsent_export.options import BundleSpec

# They cover what differs between machines: scripts, signs, case, bytes outside the vocabulary, length.
GOLDEN = (
    "The cat sleeps.",
    "Le chat dort près de la fenêtre.",
    "Wir haben gestern 3,5 Kilometer zurückgelegt.",
    "¿Dónde está la estación de tren más cercana?",
    "PERCHÉ NO?",
    "ﬁne ½ ☃ 猫が眠る 🙂",
    "If it rains tomorrow, we shall meet in the large room on the second floor, and not in the garden.",
)
# Largest difference of a number, as a share of its typical size, 1 / sqrt(dim). Integer sums are equal on all CPUs,
# but a last digit that is rounded differently grows, layer upon layer, to a part of the whole rounding noise: between
# onnxruntime and numpy a number in tens of thousands differs by 4 times its deviation. A wrong tokenizer or saturated
# sums move numbers by their own size.
FLOAT, SAME, FOREIGN, NOISE = 0.001, 0.02, 0.2, 6.0
KNOWN_CPUS = ("avx512_vnni", "avx_vnni", "avx512", "avx2", "arm64_dot", "arm64")  # see `xsent.cpu.instruction_set`


def golden_vectors(encoder: SentenceEncoder, spec: BundleSpec, cosine: float) -> dict[str, object]:
    """The golden sentences that fit into a bundle, their vectors, and the `tolerances`."""
    sentences = [text for text in GOLDEN if encoder.count_tokens(text) <= encoder.max_length]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # they are of many scripts on purpose
        encoded = encoder.encode(sentences)
    vectors = [[round(float(number), 6) for number in row] for row in encoded]
    return {"sentences": sentences, "vectors": vectors, "tolerance": tolerances(spec, cosine)}


def tolerances(spec: BundleSpec, cosine: float) -> dict[str, float]:
    """The largest difference of a number that CPUs may cause, by CPU; `cosine` is the mean that was measured."""
    if spec.precision == "float32":
        shares = {OTHER: FLOAT}
    else:
        noise = NOISE * math.sqrt(2 * (1 - cosine)) if spec.num_layers else 0.0
        shares = {name: max(SAME, noise) for name in KNOWN_CPUS} | {OTHER: max(FOREIGN, noise)}
    return {name: round(share / math.sqrt(spec.dim), 6) for name, share in shares.items()}
