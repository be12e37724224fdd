"""What docs/scaling.md tells people to run, run."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xsent import SentenceEncoder

pa = pytest.importorskip("pyarrow")

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


def documented_function() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function of the page that Spark calls."""
    (block,) = re.findall(r"```python\n(def .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    names: dict[str, Any] = {}
    exec(block, names)
    function: Callable[[Iterable[Any]], Iterator[Any]] = names["encode_batches"]
    return function


def test_the_function_for_spark_gives_the_vectors_of_the_local_path() -> None:
    """Spark hands it record batches of a partition, and takes record batches."""
    texts = ["The cat sleeps.", None, "", "Le chat dort.", "Die Katze schläft."]
    batch = pa.record_batch([pa.array(range(5)), pa.array(texts)], names=["id", "text"])
    found = pa.Table.from_batches(documented_function()(iter([batch[:2], batch[2:]])))
    assert found.schema.names == ["id", "text", "vector"]
    assert found["vector"].type == pa.list_(pa.float32())
    assert found.select(["id", "text"]).to_pylist() == batch.to_pylist()
    expected = SentenceEncoder().encode([text or "" for text in texts])
    assert np.array_equal(np.array(found["vector"].to_pylist(), np.float32), expected)
