"""`xsent encode --engine ray` on a cluster of two workers on this machine."""

import json
import logging
import os
import signal
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Runner, assert_refused, file_names, interrupt, write_lines
from texts import multilingual

from xsent import DataError, SentenceEncoder

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("ray")

from xsent.apps import partitions  # noqa: E402
from xsent.apps.partitions import find_partitions  # noqa: E402

TEXTS = ["Anna sees Boris.", "", "one\u2028line", *multilingual(20), "Clara sleeps.\r"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init("local", num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "ROWS", 5)


def rows(folder: Path) -> list[dict[str, Any]]:
    return list(chain.from_iterable(pq.read_table(part).to_pylist() for part in sorted(folder.glob("*.parquet"))))


@pytest.mark.usefixtures("cluster")
def test_two_workers_give_the_vectors_of_the_local_path(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    texts = write_lines(tmp_path / "texts.txt", TEXTS)
    options = ["--precision", "float16", "--truncate-dim", 16, "--model", mini_bundle]
    code, _, local_says = run("encode", texts, "--output", tmp_path / "local.parquet", *options)
    assert code == 0
    command = ["encode", texts, "--engine", "ray", "--workers", 2, "--output", tmp_path / "parts", *options]
    code, _, says = run(*command)
    assert (code, says.replace("part-000000.parquet: ", "")) == (0, local_says)
    local = pq.read_table(tmp_path / "local.parquet")
    found = rows(tmp_path / "parts")
    assert [row.pop("row") for row in found] == list(range(len(TEXTS))) and found == local.to_pylist()
    parts = sorted((tmp_path / "parts").iterdir())
    assert [part.name for part in parts] == [f"part-{number:06}.parquet" for number in range(-(-len(TEXTS) // 5))]
    note = json.loads(local.schema.metadata[b"xsent"])
    assert note["fingerprint"] == SentenceEncoder(mini_bundle).fingerprint
    assert json.loads(pq.read_schema(parts[1]).metadata[b"xsent"]).items() >= note.items()
