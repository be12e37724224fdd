"""Files as broken disks and strangers leave them: hypothesis strategies that damage bytes and JSON."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from xsent.cpu import process_memory
from xsent.errors import XsentError

MOST = 128  # MiB that reading a file of a few KB may take

_SPANS = st.integers(0, 1 << 16) | st.integers(0, 40)
_DATA = st.binary(min_size=1, max_size=12) | st.sampled_from(
    [b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"9" * 20, b"-1", b"\n", b"\x1b[2J", "\u202e".encode()]
)
_DEEP = "a value that is nested too deeply for the one that writes JSON"
_STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 10**400, -0.5, 1e308, float("nan"), float("inf"), _DEEP),
    *("", "\0", "\x1b[2J", "../x", "x" * 5000, "\ud800", "\u202e", [], [[]], {}, {"": None}, [{}] * 9, ["a", 1]),
)


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes of which a few were flipped, cut out, put in, doubled, zeroed or swapped."""
    for _ in range(draw(st.integers(1, 4))):
        start, length, data = draw(st.integers(0, len(content))), draw(_SPANS), draw(_DATA)
        middle, rest = content[start : start + length], content[start + length :]
        damaged = {
            "flip": bytes(byte ^ data[0] for byte in middle[:1]) + middle[1:] + rest,
            "cut": rest,
            "end": b"",
            "insert": data + middle + rest,
            "overwrite": data + content[start + len(data) :],
            "double": middle + middle + rest,
            "zero": bytes(len(middle)) + rest,
            "swap": rest[:length] + middle + rest[length:],
        }
        content = content[:start] + draw(st.sampled_from(sorted(damaged.items())))[1]
    return content


@st.composite
def mutated_json(draw: st.DrawFn, content: bytes) -> bytes:
    """JSON in which some values were replaced, wrapped, doubled or taken away."""
    value = [json.loads(content)]
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(_places(value))))
        kind = draw(st.sampled_from(["replace", "replace", "remove", "wrap", "double", "huge"]))
        if kind == "remove" and holder is not value:
            del holder[key]
        elif kind == "wrap":
            holder[key] = [holder[key]]
        elif kind == "double" and isinstance(holder[key], list | str):
            holder[key] *= 2
        elif kind == "huge" and type(holder[key]) in (int, float):
            holder[key] *= draw(st.sampled_from([-1, 2, 1000, 10**12, 10**18]))
        else:
            holder[key] = deepcopy(draw(st.sampled_from(_STRANGE)))
    deep = "[" * 100_000 + "]" * 100_000
    return json.dumps(value[0]).replace(json.dumps(_DEEP), deep).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """All places in a value, each as what holds it and the key there; of a long list the first few."""
    keys = range(min(len(value), 5)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


@contextmanager
def little_memory(most: float = MOST) -> Iterator[None]:
    """Refuse a block that takes more memory, in MiB, at any time; on Linux only.

    Not by `tracemalloc`: it does not see the memory of C++, and in Python 3.11 it may end a process that has threads.
    """
    with suppress(OSError):  # not Linux
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
    before = process_memory("VmHWM")
    yield
    taken = process_memory("VmHWM") - before
    assert taken < most, f"{taken:,.0f} MiB"


def survive(data: st.DataObject, folder: Path, read: Callable[[Path], object]) -> None:
    """Damage a file of a folder and read the folder: all that may come of it is one line of ours, in little memory.

    Afterwards the folder is whole again. `read` may change files too.
    """
    whole = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    file = data.draw(st.sampled_from(list(whole)), "file")
    damage = mutated(whole[file])
    content = data.draw(damage | mutated_json(whole[file]) if file.suffix == ".json" else damage, "content")
    file.unlink()  # not written over: it may be mapped still
    file.write_bytes(content)
    try:
        with little_memory():
            try:
                read(folder)
            except XsentError as error:
                assert "\n" not in str(error)
    finally:
        shutil.rmtree(folder)
        for path, healthy in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(healthy)
