"""Fuzzes the readers of manifests, vectors and heads, guided by coverage, until it is stopped.

    pip install atheris && python tools/fuzz.py head -max_total_time=300

The first word is one of `TARGETS`. libFuzzer gets the rest. An error that is not an XsentError stops it. Its
input is in `crash-*`.
"""

import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["xsent", "json", "zipfile", "numpy.lib"]):
    from xsent.bundle import Bundle, builtin_path, compute_fingerprint
    from xsent.classification.classifier import LinearClassifier
    from xsent.errors import XsentError
    from xsent.files.vectors import VectorMeta, open_vectors, vector_file

ROWS = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)


def read_bundle(folder: Path) -> None:
    """Open the bundle, with a fingerprint that fits the damaged manifest."""
    file = folder / "bundle/xsent.json"
    with suppress(Exception):
        manifest = json.loads(file.read_bytes())
        file.write_text(json.dumps({**manifest, "fingerprint": compute_fingerprint(manifest)}))
    Bundle.open(folder / "bundle")


def read_head(folder: Path) -> None:
    """Load the head and predict, with a checksum that fits the damaged numbers."""
    with suppress(Exception):
        note = json.loads((folder / "b.json").read_bytes())
        numbers = sha256((folder / "b.npz").read_bytes()).hexdigest()
        (folder / "b.json").write_text(json.dumps({**note, "sha256": numbers}))
    LinearClassifier.load(folder / "b.npz", fingerprint="abc").predict(ROWS)


TARGETS: dict[str, tuple[str, Callable[[Path], object]]] = {  # the damaged file, and its reader
    "manifest": ("bundle/xsent.json", read_bundle),
    "head": ("b.npz", read_head),
    "head-note": ("b.json", read_head),
    "vectors": ("a.npy", lambda folder: open_vectors(folder / "a.npy")),
    "vectors-note": ("a.npy.json", lambda folder: open_vectors(folder / "a.npy")),
}


def main(folder: Path) -> None:
    """Fuzz the target of the command line."""
    name, read = TARGETS[sys.argv.pop(1)]
    shutil.copytree(builtin_path(), folder / "bundle")
    LinearClassifier.fit(ROWS, ["a", "b"] * 10, fingerprint="abc").save(folder / "b.npz")
    with vector_file(folder / "a.npy", VectorMeta("abc", 8, "float32", normalized=True)) as out:
        for row in ROWS:
            out.write("", row)
    (folder / "corpus").mkdir()
    shutil.copy(folder / name, folder / "corpus")

    def try_one(content: bytes) -> None:
        (folder / name).unlink()  # not overwritten, because it may still be mapped
        (folder / name).write_bytes(content)
        with suppress(XsentError):
            read(folder)

    atheris.Setup([*sys.argv, "-max_len=65536", str(folder / "corpus")], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # damaged numbers cause warnings
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
