"""A matrix into another model's space, fitted to that model's own vectors of a text and added to a bundle."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from xsent.bundle import MANIFEST, Bundle, matrix_file, problem_of_name, write_manifest
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, DataError
from xsent.evaluation.translation import finds_gold
from xsent.files.atomic import as_data_error, atomic_folder, read_json
from xsent.files.text import read_lines
from xsent.similarity import Floats, row_cosines, unit_rows
from xsent_train.derive import CARD, model_path
from xsent_train.fitting import fit_space

MOST = 16_000  # texts to learn from
FEWEST = 500  # texts; a matrix from fewer finds too little
HELD_OUT, HELD_OUT_SHARE = 1_000, 0.1  # most texts to measure on, and their largest share
REMEDY = "expected an array [n, D] of floats as numpy.save writes it, one vector per line of the text"

CARD_SECTION = """
## The space {name}

`encode(sentences, space="{name}")` maps vectors into it. The matrix was fitted to {texts:,} texts. Of {held_out:,}
others, {found}% find the other model's vector of them among all of these; their mean cosine to it is {cosine}.
"""


@dataclass(frozen=True)
class AddedSpace:
    """A bundle with one more space, and what was measured on held-out texts."""

    path: Path
    fingerprint: str  # of mapped vectors
    texts: int  # learnt from
    held_out: int
    found: float  # of the held-out texts, in %: those whose mapped vector is nearest to the other model's of them
    cosine: float  # of these two vectors, the mean


def add_space(bundle: Path, text_file: Path, vectors: Path, out: Path, *, name: str, threads: int) -> AddedSpace:
    """Fit a matrix into another model's space, and write a copy of a bundle with it.

    Args:
        bundle: The bundle, or `builtin`; vectors without the new space keep their fingerprint.
        text_file: A text per line.
        vectors: The other model's vector of each text, as `numpy.save` writes them.
        out: The folder to create.
        name: Name of the space.
        threads: Threads to use.

    Raises:
        BundleError: `out` exists, or the bundle has that space or cannot have it.
        DataError: The texts or the vectors cannot be read or do not belong together, or there are too few.
    """
    opened = Bundle.open(model_path(bundle))
    if out.exists():
        raise BundleError(f"{out}: exists; name another folder")
    if problem := problem_of_name(name):
        raise BundleError(f"--name: {problem}")
    if opened.space or name in opened.spaces:
        known = opened.space or name
        raise BundleError(f"{opened.path}: already maps into the space {known}; use another --name or bundle")
    examples, theirs = read_examples(text_file, vectors)
    own = SentenceEncoder(opened.path, threads=threads).encode(examples, on_long="split", show_progress_bar=None)
    held = min(HELD_OUT, int(len(theirs) * HELD_OUT_SHARE))
    torch.set_num_threads(threads)
    matrix = fit_space([torch.from_numpy(own[held:])], torch.from_numpy(theirs[held:])).numpy().astype("<f2")
    mapped = unit_rows(own[:held] @ matrix.astype(np.float32))
    found = round(100 * float(finds_gold(mapped, theirs[:held], range(held)).mean()), 1)
    cosine = round(float(row_cosines(mapped, theirs[:held]).mean()), 3)
    texts = len(theirs) - held
    section = CARD_SECTION.format(name=name, texts=texts, held_out=held, found=found, cosine=cosine)
    fingerprint = write_with_space(opened, out, name, matrix, section)
    return AddedSpace(out, fingerprint, texts, held, found, cosine)


def read_examples(texts: Path, vectors: Path) -> tuple[list[str], Floats]:
    """Different texts in random order, and the other model's unit vectors of them."""
    lines = list(read_lines(texts))
    with as_data_error(vectors, REMEDY):
        theirs = np.load(vectors, mmap_mode="r", allow_pickle=False)
    if not isinstance(theirs, np.ndarray):
        theirs.close()
        raise DataError(f"{vectors}: an archive of arrays; {REMEDY}")
    if theirs.ndim != 2 or theirs.dtype.kind != "f":
        raise DataError(f"{vectors}: {theirs.dtype} of shape {list(theirs.shape)}; {REMEDY}")
    if len(theirs) != len(lines):
        raise DataError(f"{vectors}: {len(theirs):,} vectors for the {len(lines):,} lines of {texts}; {REMEDY}")
    places = {line: row for row, line in enumerate(lines) if line.strip()}  # of equal texts, the last
    if len(places) < FEWEST:
        raise DataError(f"{texts}: {len(places):,} different texts, expected at least {FEWEST:,}; add more")
    chosen = np.random.default_rng(0).permutation(list(places.values()))[: MOST + HELD_OUT]
    found = np.asarray(theirs[chosen], np.float32)
    if not np.isfinite(found).all() or not np.abs(found).sum(axis=1).all():
        raise DataError(f"{vectors}: has vectors that are zero or not finite; {REMEDY}")
    return [lines[row] for row in chosen], unit_rows(found)


def write_with_space(bundle: Bundle, out: Path, name: str, matrix: Floats, section: str) -> str:
    """Write a copy of a bundle with a matrix in a file of its own, and a section about it on its card.

    Returns the fingerprint of mapped vectors.
    """
    file = matrix_file(name)
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(out.resolve(), replaces=False) as folder:
        for known in (MANIFEST, *bundle.files):
            (folder / known).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(bundle.path / known, folder / known)
        matrix.tofile(folder / file)
        with (folder / CARD).open("a", encoding="utf-8") as card:
            card.write(section)
        manifest = read_json(folder / MANIFEST, "copy the whole bundle again")
        entry = {"file": file, "offset": 0, "dtype": "float16", "shape": list(matrix.shape)}
        manifest["spaces"] = [*bundle.spaces, name]
        manifest["network"]["tensors"][f"space.{name}"] = entry
        write_manifest(folder, manifest)
        return Bundle.open(folder).fingerprint_of(name)
