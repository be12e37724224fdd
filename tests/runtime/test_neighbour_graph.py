"""The graph of an index."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from commands import raises
from indexes import LINES, Replay, encoder, path, replayed, until
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, MissingExtraError
from xsent.search.graph import NeighbourGraph
from xsent.search.index import SearchIndex
from xsent.search.write import build_index, extend_index

__all__ = ["encoder", "path"]


@pytest.fixture(scope="module")
def clustered() -> NDArray[Any]:
    """3,000 vectors around 100 centres, as texts are around topics."""
    pytest.importorskip("usearch")
    random = np.random.default_rng(0)
    return random.normal(size=(100, 32)).repeat(30, axis=0) + 0.5 * random.normal(size=(3000, 32))


def test_the_graph_finds_almost_all_with_exact_scores(path: Path, clustered: NDArray[Any]) -> None:
    index, encoder = replayed(path, clustered, graph=True)
    queries = (clustered[::10] + 0.3 * np.random.default_rng(1).normal(size=(300, 32))).astype(np.float32)
    (exact, cosines), (found, scores) = index.nearest(queries, exact=True), index.nearest(queries)
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(exact.tolist(), found.tolist(), strict=True)])
    assert recall > 0.95
    same = found == exact
    assert np.allclose(scores[same], cosines[same], atol=1e-6)
    assert not (scores > cosines + 1e-6).any()
    assert index.nearest(queries[:3], 750)[0].shape == (3, 750)  # a quarter of the rows is a case for exact search
    assert index.nearest(queries[:3], 10**12)[0].shape == (3, 3000)
    found_with_graph = index.search(encoder, ["", "5"], k=2)
    assert (found_with_graph[0], found_with_graph[1][0].text) == ([], "5")
    assert index.search(encoder, [], k=2) == []
    with mock.patch.object(NeighbourGraph, "propose", return_value=np.array([3])):  # parts that cannot be reached
        assert np.array_equal(index.nearest(queries[:3])[0], exact[:3])


def test_lines_behind_the_graph_are_found_and_a_new_graph_takes_them_in(path: Path, clustered: NDArray[Any]) -> None:
    encoder: Any = Replay(clustered)
    texts = list(map(str, range(3000)))
    build_index(path, texts[:2000], encoder, graph=True)
    extend_index(path, texts[2000:2990], encoder)
    assert SearchIndex(path).state.graph == 2000
    asked = texts[5::300]
    assert [hits[0].text for hits in SearchIndex(path).search(encoder, asked, k=2)] == asked
    extend_index(path, texts[2990:], encoder, graph=True)
    assert [file.name for file in path.glob("graph*")] == ["graph-3000.usearch"]
    assert [hits[0].text for hits in SearchIndex(path).search(encoder, asked, k=2)] == asked
    SearchIndex(path).verify()


def test_the_same_lines_give_the_same_graph_and_a_damaged_one_is_named(path: Path, clustered: NDArray[Any]) -> None:
    index, encoder = replayed(path, clustered[:500], graph=True)
    graph = path / "graph-500.usearch"
    whole = graph.read_bytes()
    graph.unlink()  # the open index still has it
    graph.write_bytes(b"x" * len(whole))
    assert index.search(encoder, ["3"])[0][0].text == "3"
    index = SearchIndex(path)
    raises(DataError, r"graph-500.usearch: damaged", index.search, encoder, ["3"])
    assert index.search(encoder, ["3"], exact=True)[0][0].text == "3"
    raises(DataError, r"graph-500.usearch: damaged", extend_index, path, ["3"], encoder, graph=True)
    graph.unlink()
    raises(DataError, r"graph-500.usearch: damaged", SearchIndex(path).search, encoder, ["3"])
    index, _ = replayed(path.with_name("again"), clustered[:500], graph=True)
    assert (index.path / "graph-500.usearch").read_bytes() == whole


def test_a_graph_that_finds_no_room_leaves_the_index_as_it_was(path: Path, clustered: NDArray[Any]) -> None:
    resource = pytest.importorskip("resource")
    _, encoder = replayed(path, clustered[:1000])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, hard))
    try:
        with pytest.raises(OSError, match=r"make room, then --resume goes on.*notes.index"):
            extend_index(path, ["3"], encoder, graph=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(SearchIndex(path)) == 1000
    assert not list(path.glob("graph*"))
    extend_index(path, ["3"], encoder, graph=True, resume=True)
    assert SearchIndex(path).state.graph == 1001


def test_a_graph_without_usearch_is_refused(
    path: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xsent.search.graph.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"usearch is not installed; pip install 'xsent\[index\]'"):
        build_index(path, until(LINES, 0), encoder, graph=True)
    assert not list(path.parent.iterdir())
