"""xsim, as in LASER: how often the best by margin of a sentence's k nearest is not its translation, in per cent."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, Figures, choose_languages, measure_each
from xsent.lines import read_sentences
from xsent.mining.bitext import mine_bitext
from xsent.mining.margin import Margin
from xsent.models import SupportsEncode

_SUFFIXES = (".txt", ".dev", ".devtest")


def xsim(
    encoder: SupportsEncode,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    pivot: str = "en",
    margin: Margin = "ratio",
    k: int = 4,
) -> Evaluation:
    """Error rates in per cent of every language against the pivot, both directions; margin and k as in `mine_bitext`.

    The folder has one file of parallel lines a language, as FLORES and NTREX have them; the code is the file's name
    without its ending (`fr.txt`, `fra_Latn.devtest`), after the last dot in it (`newstest2019-ref.fra.txt`).
    """
    files = {file.stem.rpartition(".")[2]: file for file in sorted(Path(folder).glob("*")) if file.suffix in _SUFFIXES}
    asked = None if languages is None else [code for code in languages if code != pivot]
    languages = choose_languages(encoder, files.keys() - {pivot}, asked, folder, f"files beside {pivot}'s, as fr.txt")
    anchor = _sentences(files, folder, pivot)
    vectors, directions = encoder.encode(anchor), (f"xx_{pivot}", f"{pivot}_xx")

    def measure(code: str) -> Figures:
        texts = _sentences(files, folder, code)
        if len(texts) != len(anchor):
            lengths = f"{len(texts):,} lines, {files[pivot].name} {len(anchor):,}"
            raise DataError(f"{files[code]}: {lengths}; expected parallel lines")
        other = encoder.encode(texts)
        errors = (xsim_errors(*sides, margin=margin, k=k) for sides in ((other, vectors), (vectors, other)))
        rates = (100 * count / len(texts) for count in errors)
        return {"sentences": len(texts), **dict(zip(directions, rates, strict=True))}

    note = f"Error rate in percent of retrieval by margin ({margin}, k = {k}); lower is better."
    return measure_each(languages, measure, directions, note)


def xsim_errors(src: ArrayLike, trg: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> int:
    """Count the source vectors [n, D] whose best target by margin is not that of the same row, or that are zero."""
    n, m = len(np.asanyarray(src)), len(np.asanyarray(trg))
    if n != m:
        raise ValueError(f"{n:,} and {m:,} sentences are not parallel; expected as many on both sides")
    found = mine_bitext(src, trg, margin=margin, retrieval="fwd", k=k)
    return n - int((found.src == found.trg).sum())


def _sentences(files: dict[str, Path], folder: str | Path, code: str) -> list[str]:
    if code not in files:
        raise DataError(f"{folder}: no file of {code}; expected e.g. {code}.txt with one sentence a line")
    return read_sentences(files[code])
