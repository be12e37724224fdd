"""One thread for a product of matrices, where many are calculated at once."""

import ctypes
import sys
from collections.abc import Callable
from threading import Lock

import numpy as np

# OpenBLAS as numpy's wheels bring it, with and without 64-bit sizes, and as a system has it.
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


class OneThread:
    """Keeps numpy's OpenBLAS to one thread while any thread of this process is inside.

    Its own threads spin while they wait for work: with sentences encoded in parallel, or with anything else that runs,
    they cost several times what they gain. Other libraries than OpenBLAS are left as they are.
    """

    def __init__(self) -> None:
        self._get, self._set = _functions()
        self._lock = Lock()
        self._inside = self._before = 0

    @property
    def threads(self) -> int:
        """Threads that a product takes now; 0 where it is not OpenBLAS that calculates it."""
        return self._get()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._get()
                self._set(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._set(self._before)


def _functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """What tells the number of threads, and what changes it."""
    package = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    file = sys.modules[f"{package}._multiarray_umath"].__file__
    try:
        library = ctypes.CDLL(file)  # loaded already; a search in it is one in all that it is linked to
    except OSError:
        return lambda: 0, lambda _: None
    for name in _NAMES:
        get, change = (getattr(library, name.format(f"{verb}_num_threads"), None) for verb in ("get", "set"))
        if get is not None and change is not None:
            return get, change
    return lambda: 0, lambda _: None


ONE_THREAD = OneThread()
