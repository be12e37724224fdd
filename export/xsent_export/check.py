"""What quantisation costs: the bundle against the encoder it was made from; and its golden vectors."""

import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import OTHER
from xsent.cpu import SATURATING, instruction_set
from xsent.encoder import LongSentenceWarning, SentenceEncoder, UnknownTextWarning
from xsent.errors import DataError, ParityError
from xsent.files.text import read_fields
from xsent.open_model import SupportsEncode
from xsent_export.options import Budget, BundleSpec
from xsent_export.quantization import Target
from xsent_train.checkpoint import Checkpoint

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


def tolerances(form: BundleSpec, cosine: float) -> dict[str, float]:
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


def golden(encoder: SentenceEncoder, form: BundleSpec, cosine: float) -> dict[str, object]:
    """The sentences that fit into a bundle, their vectors, and the `tolerances`."""
    sentences = [text for text in GOLDEN if encoder.count_tokens(text) <= encoder.max_length]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownTextWarning)  # they are of many scripts on purpose
        encoded = encoder.encode(sentences)
    vectors = [[round(float(number), 6) for number in row] for row in encoded]
    return {"sentences": sentences, "vectors": vectors, "tolerance": tolerances(form, cosine)}


T = TypeVar("T")

MAX_PAIRS = 1000  # a language; one more wrong answer is then 0.05 points of P@1
# What to do about an export that costs too much.
EXACT = "--fp32 keeps the trained weights"
ADVICE = {"int4-table": "--int8 keeps 8 bits for the table"}  # by precision, where it is another
MORE_PIECES = "a larger --sample keeps more pieces"
TATOEBA = {  # columns of its table, and what they show
    "xx→en trained": "xx_en_before",
    "xx→en bundle": "xx_en_after",
    "en→xx trained": "en_xx_before",
    "en→xx bundle": "en_xx_after",
}

Pairs = Mapping[str, Sequence[tuple[str, str]]]  # language to (English, translation)


@dataclass(frozen=True)
class LanguageParity:
    """What was measured in one language: cosines between the vectors before and after, and P@1, in per cent."""

    pairs: int  # the cosines are over both their sides
    cosine_mean: float
    cosine_p1: float  # 1st percentile
    cosine_min: float
    p1_before: float
    p1_after: float

    @property
    def step(self) -> float:
        """Points of P@1 that one answer makes, in one of the directions."""
        return 50 / self.pairs


@dataclass(frozen=True)
class Parity:
    """What was measured in all languages, and what was allowed."""

    languages: Mapping[str, LanguageParity]
    budget: Budget
    # P@1 of all layers, dimensions and pieces by language, where the bundle holds fewer of them.
    whole: Mapping[str, float] = field(default_factory=dict)
    # P@1 of the test by language, before and after, in both directions, if measured.
    tatoeba: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    # How near fewer layers are to all, see `measure_depths`, by their number.
    depths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def cosine_mean(self) -> float:
        """The mean cosine of the worst language."""
        return min(measured.cosine_mean for measured in self.languages.values())

    @property
    def remark(self) -> str:
        """What to know of P@1 where one answer more or less is more than may be lost; empty elsewhere."""
        language, fewest = min(self.languages.items(), key=lambda item: item[1].pairs)
        if fewest.step <= self.budget.p1_loss:
            return ""
        return (
            f"{language}: P@1 of {fewest.pairs} pairs moves in steps of {fewest.step:.2f}, more than the "
            f"{self.budget.p1_loss} that may be lost; --gate-data names more pairs"
        )

    def check(self, form: str = "", advice: str = EXACT) -> None:
        """Refuse an export, of what `form` says, that costs more than its budget; names each language with numbers."""
        least, most = self.budget.cosine_mean, self.budget.p1_loss
        failures = []
        for language, measured in self.languages.items():
            # ExportResult so that NaN fails too.
            if not measured.cosine_mean >= least:
                failures.append(f"{language} mean cosine {measured.cosine_mean:.4f} (at least {least})")
            if not measured.p1_before - measured.p1_after <= most:
                change = f"{measured.p1_before:.2f} -> {measured.p1_after:.2f}"
                failures.append(f"{language} P@1 {change} (loss at most {most})")
        if failures:
            raise ParityError(
                f"the exported encoder{form} differs too much from the trained one: {', '.join(failures)}; "
                f"nothing was written; {'; '.join(filter(None, (advice, self.remark)))}"
            )

    def rows(self) -> list[dict[str, object]]:
        """The measurements for a table, one row a language."""
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
            }
            for language, m in self.languages.items()
        ]

    def tatoeba_rows(self) -> list[dict[str, object]]:
        """The Tatoeba scores for a table, one row a language and one for the mean; none if not measured."""
        scores, every = {**self.tatoeba}, self.tatoeba.values()
        if scores:
            scores["mean"] = {key: sum(score[key] for score in every) / len(every) for key in TATOEBA.values()}
        columns = TATOEBA.items()
        return [
            {"language": name, **{to: f"{score[key]:.2f}" for to, key in columns}} for name, score in scores.items()
        ]

    def depth_rows(self) -> list[dict[str, object]]:
        """How near fewer layers are to all for a table, one row for each number of them."""
        return [
            {"layers": depth, "cosine to all": f"{near['cosine']:.4f}", "P@1 in all": f"{near['found']:.2f}"}
            for depth, near in self.depths.items()
        ]

    def as_json(self) -> dict[str, object]:
        """The `parity` field of a manifest."""
        languages = {language: asdict(measured) for language, measured in self.languages.items()}
        extra = {"whole": self.whole, "tatoeba": self.tatoeba, "depths": self.depths}
        found = {name: dict(scores) for name, scores in extra.items() if scores}
        return {"languages": languages, "tolerance": asdict(self.budget), **found}


@dataclass(frozen=True)
class Agreement:
    """How near an exported teacher is to the original: over some sentences, the mean and the least cosine."""

    sentences: int
    cosine_mean: float
    cosine_min: float


def measure_parity(
    before: SupportsEncode,
    after: SupportsEncode,
    pairs: Pairs,
    budget: Budget,
    whole: SupportsEncode | None = None,
) -> Parity:
    """Compare an exported encoder with the trained one on held-out pairs; `before` may be a part of the `whole`."""
    measured = {}
    for language, sides in pairs.items():
        old, new = _encode(before, sides), _encode(after, sides)
        cosines = np.concatenate([np.einsum("nd,nd->n", a, b) for a, b in zip(old, new, strict=True)])
        measured[language] = LanguageParity(
            pairs=len(new[0]),
            cosine_mean=round(float(cosines.mean()), 6),
            cosine_p1=round(float(np.percentile(cosines, 1)), 6),
            cosine_min=round(float(cosines.min()), 6),
            p1_before=round(_p_at_1(*old), 3),
            p1_after=round(_p_at_1(*new), 3),
        )
    everything = {} if whole is None else {name: round(_p_at_1(*_encode(whole, s)), 3) for name, s in pairs.items()}
    return Parity(measured, budget, everything)


def measure_depths(
    whole: SupportsEncode, shallower: Mapping[int, SupportsEncode], pairs: Pairs
) -> dict[str, dict[str, float]]:
    """How near vectors of fewer layers are to those of all, by their number, the mean over languages.

    `cosine` is between the two vectors of a sentence; `found` is P@1 where fewer layers ask and all answer.
    """
    answers, near = [_encode(whole, sides) for sides in pairs.values()], {}
    for depth, encoder in shallower.items():
        cosines, found = [], []
        for sides, (english, translations) in zip(pairs.values(), answers, strict=True):
            asked = _encode(encoder, sides)
            for queries, same, candidates in zip(asked, (english, translations), (translations, english), strict=True):
                cosines.append(np.einsum("nd,nd->n", queries, same).mean())
                found.append((queries @ candidates.T).argmax(axis=1) == np.arange(len(queries)))
        shares = [right.mean() for right in found]
        near[str(depth)] = {
            "cosine": round(float(np.mean(cosines)), 6),
            "found": round(100 * float(np.mean(shares)), 3),
        }
    return near


def _encode(encoder: SupportsEncode, pairs: Sequence[tuple[str, str]]) -> list[NDArray[np.float32]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongSentenceWarning)  # both encoders read the same tokens of it
        return [encoder.encode(list(side)) for side in zip(*pairs, strict=True)]


def _p_at_1(english: NDArray[np.float32], translations: NDArray[np.float32]) -> float:
    """Share of right nearest neighbours, the mean of both directions, in per cent."""
    cosines = english @ translations.T
    gold = np.arange(len(cosines))
    return 50 * float((cosines.argmax(axis=0) == gold).mean() + (cosines.argmax(axis=1) == gold).mean())


def held_out_pairs(checkpoint: Checkpoint, gate_data: Path | None) -> Pairs:
    """The pairs to measure an export with: those of a file, else its own; a DataError where a language has none."""
    file = gate_data or checkpoint.validation
    if gate_data is None and not file.is_file():
        raise DataError(
            f"{checkpoint.given}: has no held-out pairs to measure with; name a file of pairs by --gate-data, lines of "
            "source, language, English, translation with tabs between, made of such as tatoeba.org offers"
        )
    pairs = read_pairs(file)
    if missing := [language for language in checkpoint.languages if language != "en" and language not in pairs]:
        raise DataError(
            f"{file}: no pairs in {', '.join(missing)}, but in {', '.join(pairs)}; every language has to be measured"
        )
    kept = {language: pairs[language] for language in pairs if language in checkpoint.languages}
    if not kept:
        raise DataError(f"{file}: no pairs in {', '.join(checkpoint.languages)}")
    return kept


def read_pairs(path: Path, limit: int = MAX_PAIRS) -> Pairs:
    """Read pairs (source, language, English, translation) by language, at most `limit` each, spread over the file.

    Within a language each sentence is kept once, on either side: a search among equals has no right answer. Neither has
    one for nothing: a pair with a blank side is left out. A DataError where nothing can be read.
    """
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    seen: set[tuple[str, str, str]] = set()
    for _, language, english, translation in read_fields(path, 4, "source, language, English, translation"):
        sides = {(language, "en", english), (language, "xx", translation)}
        if english.strip() and translation.strip() and not sides & seen:
            seen |= sides
            pairs[language].append((english, translation))
    if not pairs:
        raise DataError(f"{path}: empty; expected held-out pairs to measure the export with")
    return {language: spread(pairs[language], limit) for language in sorted(pairs)}


def spread(items: Sequence[T], limit: int) -> list[T]:
    """At most so many of some items, from all over them."""
    count = min(limit, len(items))
    return [items[i * len(items) // count] for i in range(count)]
