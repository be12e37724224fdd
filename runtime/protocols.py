"""The published protocols by name: an encoder and files in, a table with a note out."""

from collections.abc import Callable
from typing import Protocol

from xsent.contrasts import contrasts
from xsent.evaluation import tatoeba, xsr
from xsent.sts import sts
from xsent.xsim import xsim_folder


class Evaluated(Protocol):
    """What every protocol returns."""

    @property
    def note(self) -> str:
        """What to know when comparing."""

    def rows(self) -> list[dict[str, object]]:
        """The table."""


PROTOCOLS: dict[str, Callable[..., Evaluated]] = {
    "tatoeba": tatoeba,
    "xsr": xsr,
    "xsim": xsim_folder,
    "sts": sts,
    "contrasts": contrasts,
}
