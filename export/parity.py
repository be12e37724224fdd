"""What quantisation costs: the bundle against the encoder it was made from, per language.

Both encode the same held-out pairs. The cosine of a sentence's two vectors says how far it moved; P@1 (retrieval
of translations within a language, the mean of both directions, in per cent) says whether that matters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from xsent.errors import ParityError
from xsent.export.pairs import Pairs
from xsent.models import SupportsEncode

# What to do about an export that costs too much.
EXACT = "--fp32 keeps the trained weights"
MORE_PIECES = "a larger --sample, or a larger --max-size, keeps more pieces"
TATOEBA = {  # columns of its table, and what they show
    "xx→en trained": "xx_en_before",
    "xx→en bundle": "xx_en_after",
    "en→xx trained": "en_xx_before",
    "en→xx bundle": "en_xx_after",
}


@dataclass(frozen=True)
class Budget:
    """What an export may cost in the worst language: the least mean cosine, and the most points of P@1 lost."""

    cosine_mean: float = 0.995
    p1_loss: float = 0.5


@dataclass(frozen=True)
class LanguageParity:
    """What was measured in one language: cosines between the vectors before and after, and P@1, in per cent."""

    pairs: int  # the cosines are over both their sides
    cosine_mean: float
    cosine_p1: float  # 1st percentile
    cosine_min: float
    p1_before: float
    p1_after: float


@dataclass(frozen=True)
class Parity:
    """What was measured in all languages, and what was allowed."""

    languages: Mapping[str, LanguageParity]
    budget: Budget
    # P@1 of all layers, dimensions and pieces by language, where the bundle holds fewer of them.
    whole: Mapping[str, float] = field(default_factory=dict)
    # P@1 of the test by language, before and after, in both directions, if measured.
    tatoeba: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def cosine_mean(self) -> float:
        """The mean cosine of the worst language."""
        return min(measured.cosine_mean for measured in self.languages.values())

    def check(self, form: str = "", advice: str = EXACT) -> None:
        """Refuse an export, of what `form` says, that costs more than its budget; names each language with numbers."""
        least, most = self.budget.cosine_mean, self.budget.p1_loss
        failures = []
        for language, measured in self.languages.items():
            # Written so that NaN fails too.
            if not measured.cosine_mean >= least:
                failures.append(f"{language} mean cosine {measured.cosine_mean:.4f} (at least {least})")
            if not measured.p1_before - measured.p1_after <= most:
                change = f"{measured.p1_before:.2f} -> {measured.p1_after:.2f}"
                failures.append(f"{language} P@1 {change} (loss at most {most})")
        if failures:
            raise ParityError(
                f"the exported encoder{form} differs too much from the trained one: {', '.join(failures)}; "
                f"nothing was written; {advice}"
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
        scores = list(self.tatoeba.items())
        if scores:
            scores.append(("mean", {key: sum(s[key] for _, s in scores) / len(scores) for key in TATOEBA.values()}))
        return [
            {"language": language, **{column: f"{score[key]:.2f}" for column, key in TATOEBA.items()}}
            for language, score in scores
        ]

    def as_json(self) -> dict[str, object]:
        """The `parity` field of a manifest."""
        languages = {language: asdict(measured) for language, measured in self.languages.items()}
        extra = {"whole": self.whole, "tatoeba": self.tatoeba}
        found = {name: dict(scores) for name, scores in extra.items() if scores}
        return {"languages": languages, "tolerance": asdict(self.budget), **found}


@dataclass(frozen=True)
class Agreement:
    """How near an exported teacher is to the original: over some sentences, the mean and the least cosine."""

    sentences: int
    cosine_mean: float
    cosine_min: float


class Gate:
    """The trained encoder's vectors of held-out pairs, to compare with; `whole` is all of it, if `before` is a part."""

    def __init__(
        self, before: SupportsEncode, pairs: Pairs, budget: Budget, whole: SupportsEncode | None = None
    ) -> None:
        self._pairs, self._budget = pairs, budget
        self._before = {language: _encode(before, sides) for language, sides in pairs.items()}
        self._whole = {}
        if whole is not None:
            self._whole = {language: round(_p_at_1(*_encode(whole, sides)), 3) for language, sides in pairs.items()}

    def measure(self, after: SupportsEncode) -> Parity:
        """Compare a bundle."""
        measured = {}
        for language, pairs in self._pairs.items():
            old, new = self._before[language], _encode(after, pairs)
            cosines = np.concatenate([np.einsum("nd,nd->n", a, b) for a, b in zip(old, new, strict=True)])
            measured[language] = LanguageParity(
                pairs=len(new[0]),
                cosine_mean=round(float(cosines.mean()), 6),
                cosine_p1=round(float(np.percentile(cosines, 1)), 6),
                cosine_min=round(float(cosines.min()), 6),
                p1_before=round(_p_at_1(*old), 3),
                p1_after=round(_p_at_1(*new), 3),
            )
        return Parity(measured, self._budget, self._whole)


def _encode(encoder: SupportsEncode, pairs: Sequence[tuple[str, str]]) -> list[NDArray[np.float32]]:
    return [encoder.encode(list(side)) for side in zip(*pairs, strict=True)]


def _p_at_1(english: NDArray[np.float32], translations: NDArray[np.float32]) -> float:
    """Share of right nearest neighbours, the mean of both directions, in per cent."""
    cosines = english @ translations.T
    gold = np.arange(len(cosines))
    return 50 * float((cosines.argmax(axis=0) == gold).mean() + (cosines.argmax(axis=1) == gold).mean())
