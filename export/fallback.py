"""When int8 costs too much: the one linear layer that costs most keeps float32."""

import logging
from collections.abc import Callable
from dataclasses import replace

from xsent.errors import ParityError
from xsent.export.form import Form
from xsent.export.parity import Parity

logger = logging.getLogger(__name__)

LINEARS = ("qkv", "attention_out", "ffn_in", "ffn_out")
FEW = 100  # pairs a language that the candidates are compared on

# Writes a form and measures it on so many pairs a language.
Measure = Callable[[Form, int | None], Parity]


def within_budget(form: Form, measure: Measure, *, pieces: bool = True) -> tuple[Form, Parity]:
    """A form of a bundle that is within its budget: the one asked for, or with one linear layer in float32.

    Args:
        form: The form that is asked for.
        measure: Writes a form and measures it.
        pieces: Whether all pieces are there; if not, no layer is to blame before they are.

    Returns:
        The form that was written last, and what was measured.

    Raises:
        ParityError: Neither is within the budget.
    """
    parity = measure(form, None)
    if not pieces:
        parity.check(advice="a larger --sample, or a larger --max-size, keeps more pieces")
        return form, parity
    try:
        parity.check()
        return form, parity
    except ParityError as error:
        if form.precision == "float32" or not form.num_layers:
            raise
        name = costliest(form, measure)
        logger.warning("%s; tried again with %s in float32", error, name)
        mixed = replace(form, floats=frozenset([name]))
        parity = measure(mixed, None)
        parity.check(f", even with {name} in float32,")
        return mixed, parity


def costliest(form: Form, measure: Measure) -> str:
    """The linear layer that gains most by keeping float32, by the mean cosine in the worst language."""
    gains = {}
    for name in (f"layer{number}.{linear}" for number in range(form.num_layers) for linear in LINEARS):
        parity = measure(replace(form, floats=frozenset([name])), FEW)
        gains[name] = min(measured.cosine_mean for measured in parity.languages.values())
    return max(gains, key=gains.__getitem__)
