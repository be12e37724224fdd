"""The size that a bundle may have."""

import re
from collections.abc import Mapping

from xsent.bundle import TABLE, TOKENIZER, WEIGHTS
from xsent.errors import DataError

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "KIB": 2**10, "MIB": 2**20}


class TooLargeError(DataError):
    """A bundle is larger than was asked for.

    Args:
        sizes: Bytes of its files by name.
        limit: Bytes that were asked for.
    """

    def __init__(self, sizes: Mapping[str, int], limit: int) -> None:
        self.bytes = sum(sizes.values())
        parts = {"table": sizes[TABLE], "layers and scales": sizes[WEIGHTS], "tokenizer": sizes[TOKENIZER]}
        parts["graph and card"] = self.bytes - sum(parts.values())
        listed = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in parts.items())
        super().__init__(
            f"{limit / 1e6:.1f} MB cannot be reached: the smallest is {self.bytes / 1e6:.1f} MB, {listed}; "
            "fewer --languages with a --sample, or fewer --layers, make it smaller"
        )


def parse_size(text: str) -> int:
    """A size such as 16MB, 15.5MiB or 16000000 in bytes.

    Raises:
        DataError: It is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in UNITS:
        raise DataError(f"--max-size {text!r} is no size; expected such as 16MB or 15.5MiB")
    return int(float(match[1]) * UNITS[match[2].upper()])
