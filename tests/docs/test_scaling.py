"""The function for Spark on docs/scaling.md runs."""

from typing import Any

import numpy as np
import pytest
from pages import blocks

from xsent import SentenceEncoder

pa = pytest.importorskip("pyarrow")


def test_the_function_for_spark_gives_the_vectors_of_the_local_path() -> None:
    """Spark passes record batches of a partition to it and takes record batches."""
    [code] = [block.text for block in blocks("docs/scaling.md", "python") if block.text.startswith("def ")]
    names: dict[str, Any] = {}
    exec(code, names)
    texts = ["The cat sleeps.", None, "", "Le chat dort.", "Die Katze schläft."]
    batch = pa.record_batch([pa.array(range(5)), pa.array(texts)], names=["id", "text"])
    found = pa.Table.from_batches(names["encode_batches"](iter([batch[:2], batch[2:]])))
    assert found.schema.names == ["id", "text", "vector"]
    assert found["vector"].type == pa.list_(pa.float32())
    assert found.select(["id", "text"]).to_pylist() == batch.to_pylist()
    expected = SentenceEncoder().encode([text or "" for text in texts])
    assert np.array_equal(np.array(found["vector"].to_pylist(), np.float32), expected)
