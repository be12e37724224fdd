"""The parity gate: compare a bundle with the trained encoder on held-out pairs.

Calibration uses up to 256 sentences of these pairs, see `xsent_export.quantization`.
"""

import logging
import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import OTHER
from xsent.encoder import LongSentenceWarning, SentenceEncoder, UnknownTextWarning
from xsent.errors import DataError, ParityError
from xsent.evaluation.translation import finds_gold
from xsent.open_model import SupportsEncode
from xsent.similarity import Floats, nearest
from xsent_export.options import Budget, BundleSpec, ExportOptions
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder
from xsent_train.data.corpus import Corpus

T = TypeVar("T")
logger = logging.getLogger(__name__)
Pairs = Mapping[str, Sequence[tuple[str, str]]]  # language to (English, translation)

MAX_PAIRS = 1000  # per language; one more wrong answer is then 0.05 points of P@1
ADVICE = {  # what to do if an export loses too much, by its precision
    "int4-table": "--int8 keeps 8 bits for the table",
    "int8": "--fp32 keeps the trained weights",
    "float32": "its weights are the trained ones, so export an earlier checkpoint",
}
LARGER_SAMPLE = "a larger --sample keeps more pieces"
# Golden sentences cover what can differ between machines: scripts, signs, case, bytes outside the vocabulary, length.
GOLDEN = (
    "The cat sleeps.",
    "Le chat dort près de la fenêtre.",
    "Wir haben gestern 3,5 Kilometer zurückgelegt.",
    "¿Dónde está la estación de tren más cercana?",
    "PERCHÉ NO?",
    "ﬁne ½ ☃ 猫が眠る 🙂",
    "If it rains tomorrow, we shall meet in the large room on the second floor, and not in the garden.",
)
# Largest difference of a number, as a share of its typical size, 1 / sqrt(dim). Integer sums are equal on all CPUs, but
# a last digit that is rounded differently grows, layer by layer, to a part of the whole rounding noise: between
# onnxruntime and numpy, one number in tens of thousands differs by 4 times its deviation. A wrong tokenizer or
# saturated sums move numbers by their own size.
FLOAT, SAME, FOREIGN, NOISE = 0.001, 0.02, 0.2, 6.0
KNOWN_CPUS = ("avx512_vnni", "avx_vnni", "avx512", "avx2", "arm64_dot", "arm64")  # see `xsent.cpu.instruction_set`


@dataclass(frozen=True)
class LanguageParity:
    """The measurements in one language.

    They are cosines between the vectors before and after, P@1 in per cent, and the share of each sentence's ten nearest
    in the other language that stay among its ten nearest.
    """

    pairs: int  # the cosines are over both sides
    cosine_mean: float
    cosine_p1: float  # 1st percentile
    cosine_min: float
    p1_before: float
    p1_after: float
    first_ten: float


@dataclass(frozen=True)
class Parity:
    """The measurements in all languages, and the allowed loss."""

    languages: Mapping[str, LanguageParity]
    budget: Budget
    # P@1 by language with all layers, dimensions and pieces, if the bundle has fewer of them.
    whole: Mapping[str, float] = field(default_factory=dict)
    # Agreement of each smaller depth with all layers, see `measure_depths`.
    depths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    openvino: Mapping[str, object] = field(default_factory=dict)  # the same measurements for OpenVINO's files

    @property
    def cosine_mean(self) -> float:
        """The mean cosine of the worst language."""
        return min(measured.cosine_mean for measured in self.languages.values())

    @property
    def remark(self) -> str:
        """A remark if a single answer changes P@1 by more than the allowed loss; else empty."""
        language, fewest = min(self.languages.items(), key=lambda item: item[1].pairs)
        step = 50 / fewest.pairs  # points of P@1 for one answer in one direction
        if step <= self.budget.p1_loss:
            return ""
        return (
            f"{language}: P@1 of {fewest.pairs} pairs moves in steps of {step:.2f}, more than the "
            f"{self.budget.p1_loss} that may be lost; name more pairs with --gate-data"
        )

    def check(self, suffix: str = "", advice: str = ADVICE["int8"]) -> None:
        """Raise ParityError if a language lost more than the budget; `suffix` names the form of the encoder."""
        min_cosine = self.budget.cosine_mean
        max_loss = self.budget.p1_loss
        failures = []
        for language, measured in self.languages.items():
            # Negated so that NaN fails too.
            if not measured.cosine_mean >= min_cosine:
                failures.append(f"{language} mean cosine {measured.cosine_mean:.4f} (at least {min_cosine})")
            if not measured.p1_before - measured.p1_after <= max_loss:
                change = f"{measured.p1_before:.2f} -> {measured.p1_after:.2f}"
                failures.append(f"{language} P@1 {change} (loss at most {max_loss})")
            if not measured.first_ten >= self.budget.first_ten:
                least = f"at least {self.budget.first_ten}"
                failures.append(f"{language} keeps {measured.first_ten:.3f} of the ten nearest sentences ({least})")
        if failures:
            raise ParityError(
                f"the exported encoder{suffix} differs too much from the trained one: {', '.join(failures)}; "
                f"nothing was written; {'; '.join(filter(None, (advice, self.remark)))}"
            )

    def rows(self) -> list[dict[str, object]]:
        """The measurements as a table, one row per language."""
        return [
            {
                "language": language,
                "pairs": m.pairs,
                "cosine mean": f"{m.cosine_mean:.4f}",
                "1st percentile": f"{m.cosine_p1:.4f}",
                "minimum": f"{m.cosine_min:.4f}",
                **({"P@1 whole": f"{self.whole[language]:.2f}"} if self.whole else {}),
                "P@1 trained": f"{m.p1_before:.2f}",
                "P@1 bundle": f"{m.p1_after:.2f}",
                "first ten kept": f"{m.first_ten:.3f}",
            }
            for language, m in self.languages.items()
        ]

    def depth_rows(self) -> list[dict[str, object]]:
        """The agreement of each smaller depth with all layers as a table, one row per depth."""
        return [
            {"layers": depth, "cosine to all": f"{near['cosine']:.4f}", "P@1 in all": f"{near['found']:.2f}"}
            for depth, near in self.depths.items()
        ]

    def as_json(self) -> dict[str, object]:
        """The `parity` field of a manifest."""
        languages = {language: asdict(measured) for language, measured in self.languages.items()}
        extra = {"whole": self.whole, "depths": self.depths, "openvino": self.openvino}
        measured = {name: dict(scores) for name, scores in extra.items() if scores}
        return {"languages": languages, "tolerance": asdict(self.budget), **measured}


def check_bundle(
    exported: SentenceEncoder,
    spec: BundleSpec,
    checkpoint: Checkpoint,
    *,
    pruned: bool,
    pairs: Pairs,
    options: ExportOptions,
) -> Parity:
    """Compare a bundle with its checkpoint. Raises ParityError if it lost more than the budget.

    The checkpoint has pieces that a `pruned` bundle lacks.
    """
    folder = exported.bundle.path
    depths = exported.bundle.depths
    trained = {depth: CheckpointEncoder(checkpoint, depth=depth, dim=spec.dim) for depth in depths}
    config = checkpoint.config
    is_part = pruned or (spec.num_layers, spec.dim) != (config.num_layers, config.dim)
    whole = CheckpointEncoder(checkpoint) if is_part else None
    advice = LARGER_SAMPLE if pruned else ADVICE[spec.precision]
    parity = measure_parity(trained[spec.num_layers], exported, pairs, spec.budget, whole)
    parity.check(advice=advice)
    shallower = {depth: SentenceEncoder(folder, layers=depth) for depth in depths[:-1]}
    for depth, shallow in shallower.items():
        measure_parity(trained[depth], shallow, pairs, spec.budget).check(f" with layers={depth}", advice)
    parity = replace(parity, depths=measure_depths(exported, shallower, pairs))
    if options.format == "openvino":
        # The other half: its scales are calibrated on every other pair.
        others = {language: sides[::2] for language, sides in pairs.items()}
        openvino = SentenceEncoder(folder, backend="openvino")
        measured = measure_parity(trained[spec.num_layers], openvino, others, spec.budget)
        exact = spec.precision == "float32"
        measured.check(" in OpenVINO", ADVICE["float32" if exact else "int8"])
        kind = "fp32" if exact else "int8"
        parity = replace(parity, openvino={"kind": kind, **measured.as_json()})
    return parity


def measure_parity(
    before: SupportsEncode,
    after: SupportsEncode,
    pairs: Pairs,
    budget: Budget,
    whole: SupportsEncode | None = None,
) -> Parity:
    """Compare an exported encoder with the trained one on held-out pairs; `before` may be a part of `whole`."""
    languages = {}
    p1_whole = {}
    for language, sides in pairs.items():
        old, new = _encode(before, sides), _encode(after, sides)
        cosines = np.concatenate([np.einsum("nd,nd->n", a, b) for a, b in zip(old, new, strict=True)])
        languages[language] = LanguageParity(
            pairs=len(new[0]),
            cosine_mean=round(float(cosines.mean()), 6),
            cosine_p1=round(float(np.percentile(cosines, 1)), 6),
            cosine_min=round(float(cosines.min()), 6),
            p1_before=round(_p_at_1(*old), 3),
            p1_after=round(_p_at_1(*new), 3),
            first_ten=round(float(np.mean([first_ten_kept(old[::way], new[::way]) for way in (1, -1)])), 4),
        )
        if whole is not None:
            p1_whole[language] = round(_p_at_1(*_encode(whole, sides)), 3)
    return Parity(languages, budget, p1_whole)


def measure_depths(
    whole: SupportsEncode, shallower: Mapping[int, SupportsEncode], pairs: Pairs
) -> dict[str, dict[str, float]]:
    """The agreement of each smaller depth's vectors with those of all layers, averaged over languages.

    `cosine` is between the two vectors of a sentence; `found` is P@1 of the depth's queries among all layers' vectors.
    """
    encoded = [_encode(whole, sides) for sides in pairs.values()]
    agreement = {}
    for depth, encoder in shallower.items():
        cosines = []
        found = []
        for sides, (english, translations) in zip(pairs.values(), encoded, strict=True):
            asked = _encode(encoder, sides)
            for queries, same, candidates in zip(asked, (english, translations), (translations, english), strict=True):
                cosines.append(np.einsum("nd,nd->n", queries, same).mean())
                found.append(_share_found(queries, candidates))
        agreement[str(depth)] = {
            "cosine": round(float(np.mean(cosines)), 6),
            "found": round(100 * float(np.mean(found)), 3),
        }
    return agreement


def _encode(encoder: SupportsEncode, pairs: Sequence[tuple[str, str]]) -> list[NDArray[np.float32]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongSentenceWarning)  # both encoders cut it after the same tokens
        return [encoder.encode(list(side)) for side in zip(*pairs, strict=True)]


def _p_at_1(english: NDArray[np.float32], translations: NDArray[np.float32]) -> float:
    """Share of right nearest neighbours, the mean of both directions, in per cent."""
    return 50 * (_share_found(english, translations) + _share_found(translations, english))


def _share_found(queries: NDArray[np.float32], candidates: NDArray[np.float32]) -> float:
    """Share of the queries [n, D] whose nearest candidate [n, D] is that of the same number."""
    return float(finds_gold(queries, candidates, range(len(queries))).mean())


def first_ten_kept(before: Sequence[Floats], after: Sequence[Floats]) -> float:
    """The share of the ten candidates nearest to each query that stay; queries [n, D] and candidates [m, D] of both."""
    old, new = (nearest(queries, candidates, 10)[0].tolist() for queries, candidates in (before, after))
    return float(np.mean([len({*a} & {*b}) / len(a) for a, b in zip(old, new, strict=True)]))


def calibration_texts(pairs: Pairs) -> list[str]:
    """The texts of every other pair. The gate measures on all pairs, but OpenVINO's files on the other half.

    Of each language English comes first, then the translations: if they took turns, every n-th text could be English.
    """
    return [text for sides in pairs.values() for side in zip(*sides[1::2], strict=True) for text in side]


def held_out_pairs(checkpoint: Checkpoint, gate_data: Path | None) -> Pairs:
    """The pairs to measure an export on, from a file or the checkpoint. Raises DataError if a language has none."""
    file = gate_data or checkpoint.validation
    if gate_data is None and not file.is_file():
        raise DataError(
            f"{checkpoint.path}: has no held-out pairs to measure with; name a file of them with --gate-data: lines of "
            "source, language, English, translation, tab-separated, for example from tatoeba.org"
        )
    pairs = read_pairs(file)
    if missing := [language for language in checkpoint.languages if language != "en" and language not in pairs]:
        lacks = f"{file}: no pairs in {', '.join(missing)}, only in {', '.join(pairs)}"
        learnt = checkpoint.about.get("recipe", {}).get("languages", missing)
        if gate_data is not None or set(missing) & set(learnt):
            raise DataError(f"{lacks}; add some, to measure every language")
        logger.warning("%s; to measure all languages of its start, name pairs with --gate-data", lacks)
    kept = {language: pairs[language] for language in pairs if language in checkpoint.languages}
    if not kept:
        raise DataError(f"{file}: no pairs in {', '.join(checkpoint.languages)}")
    return kept


def read_pairs(path: Path, limit: int = MAX_PAIRS) -> Pairs:
    """Read pairs (source, language, English, translation) by language, at most `limit` each, spread over the file.

    Pairs with a side that an earlier pair of the language has are dropped. Raises DataError if no pair is left.
    """
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    seen: set[tuple[str, str, str]] = set()
    for pair in Corpus([path]):
        sides = {(pair.language, "en", pair.english), (pair.language, "xx", pair.translation)}
        if not (pair.alone or sides & seen):
            seen |= sides
            pairs[pair.language].append((pair.english, pair.translation))
    if not pairs:
        raise DataError(f"{path}: no translations; expected held-out pairs to measure the export with")
    return {language: evenly_spaced(pairs[language], limit) for language in sorted(pairs)}


def evenly_spaced(items: Sequence[T], limit: int) -> list[T]:
    """At most `limit` items, evenly spaced over all of them."""
    count = min(limit, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def golden_vectors(encoder: SentenceEncoder, spec: BundleSpec, cosine: float) -> dict[str, object]:
    """The golden sentences that fit a bundle, their vectors, and the `tolerances`."""
    sentences = [text for text in GOLDEN if encoder.count_tokens(text) <= encoder.max_length]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # they have many scripts on purpose
        encoded = encoder.encode(sentences)
    vectors = [[round(float(number), 6) for number in row] for row in encoded]
    return {"sentences": sentences, "vectors": vectors, "tolerance": tolerances(spec, cosine)}


def tolerances(spec: BundleSpec, cosine: float) -> dict[str, float]:
    """The largest difference of a number that a CPU may cause, by CPU; `cosine` is the measured mean."""
    if spec.precision == "float32":
        shares = {OTHER: FLOAT}
    else:
        noise = NOISE * math.sqrt(2 * (1 - cosine)) if spec.num_layers else 0.0
        shares = {name: max(SAME, noise) for name in KNOWN_CPUS} | {OTHER: max(FOREIGN, noise)}
    return {name: round(share / math.sqrt(spec.dim), 6) for name, share in shares.items()}
