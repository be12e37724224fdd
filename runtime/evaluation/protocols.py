"""The protocols by name."""

from collections.abc import Callable, Mapping

from xsent.evaluation.contrasts import contrasts
from xsent.evaluation.result import Evaluation
from xsent.evaluation.sts import sts
from xsent.evaluation.translation import space, tatoeba, xsr
from xsent.evaluation.xsim import xsim

PROTOCOLS: Mapping[str, Callable[..., Evaluation]] = {
    "tatoeba": tatoeba,
    "xsr": xsr,
    "xsim": xsim,
    "sts": sts,
    "contrasts": contrasts,
    "space": space,
}
