"""What 8 bits change in results: the share of the ten passages nearest to a question that stay."""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from xsent.bundle import Bundle
from xsent.encoder import LongSentenceWarning, SentenceEncoder
from xsent.evaluation.retrieval import read_test
from xsent.open_model import SupportsEncode
from xsent.precision import pack_signs, to_int8, unpack_signs
from xsent.similarity import Floats
from xsent_export.parity import first_ten_kept
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder

PASSAGES = "passages"  # the folder of questions and passages, in a folder of tests
FORMS: Mapping[str, str] = {  # what is compared with float32, and its heading
    "bundle": "encoder",
    "int8": "int8 vectors",
    "binary": "binary vectors",
}


def kept_by_depth(
    bundle: Path, exact: Checkpoint, folder: Path, languages: Sequence[str]
) -> Iterator[tuple[int, dict[str, float]]]:
    """Each depth, the most layers first, and its shares in per cent: the mean of the languages, and the worst.

    The encoder of the bundle is compared with the checkpoint's in float32; stored vectors with its float32 vectors.
    """
    languages = [code for code in languages if (folder / f"{code}.passages.tsv").is_file()]
    for layers in reversed(Bundle.open(bundle).depths if languages else ()):
        encoder = SentenceEncoder(bundle, layers=layers)
        trained = CheckpointEncoder(exact, depth=layers, dim=encoder.dim)
        shares = defaultdict[str, list[float]](list)
        for code in languages:
            vectors = _vectors(encoder, folder, code)
            shares["bundle"].append(100 * first_ten_kept(_vectors(trained, folder, code), vectors))
            for form in ("int8", "binary"):
                stored = [_stored(side, form) for side in vectors]
                shares[form].append(100 * first_ten_kept(vectors, stored))
        worst = {f"{form}_worst": min(found) for form, found in shares.items()}
        yield layers, {form: float(np.mean(found)) for form, found in shares.items()} | worst


def kept_rows(kept: Iterator[tuple[int, Mapping[str, float]]]) -> list[dict[str, object]]:
    """The shares as a table, one row per depth; the worst language is in brackets."""
    return [
        {"layers": layers}
        | {heading: f"{shares[form]:.1f} ({shares[f'{form}_worst']:.1f})" for form, heading in FORMS.items()}
        for layers, shares in kept
    ]


def _vectors(encoder: SupportsEncode, folder: Path, language: str) -> list[Floats]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongSentenceWarning)  # both encoders cut a passage after the same tokens
        return [side.vectors for side in read_test(encoder, folder, language)]


def _stored(vectors: Floats, form: str) -> Floats:
    """Numbers with the cosines of the vectors [n, D] that a file stores in 8 bits or as signs."""
    if form == "binary":
        return unpack_signs(pack_signs(vectors))
    return np.stack([to_int8(vector) for vector in vectors]).astype(np.float32)
