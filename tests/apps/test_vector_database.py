"""The example of a vector database; docs/guides/scale.md, which is run too, asks it from end to end."""

from pathlib import Path

import pytest
from commands import Runner, raises, write_lines
from lazy import Lazy, needs

from xsent import DataError, FingerprintError, SentenceEncoder

pytestmark = [pytest.mark.slow, needs("lancedb", "pyarrow")]
EXAMPLE = "xsent_apps.examples.vector_database"
VectorDatabase, fill = Lazy(f"{EXAMPLE}:VectorDatabase"), Lazy(f"{EXAMPLE}:fill")
pa, pq = Lazy("pyarrow"), Lazy("pyarrow.parquet")

TEXTS = ["The cat sleeps under the table.", "", "Parliament voted on the budget.", "The train to Vienna is late."]


@pytest.mark.parametrize("indexed", [300, 301])
def test_the_nearest_is_found_with_an_index_and_without(
    indexed: int, run: Runner, tmp_path: Path, mini_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{EXAMPLE}.INDEXED", indexed)
    lines = write_lines(tmp_path / "a.txt", (f"Anna sees Boris {n}" for n in range(300)))
    assert run("encode", lines, "--output", tmp_path / "a.parquet", "--model", mini_bundle)[0] == 0
    (tmp_path / "a.parquet.json").write_text("{}")  # as in a folder that Ray wrote
    assert fill(tmp_path, tmp_path / "a.lance") == 300
    encoder = SentenceEncoder(mini_bundle)
    [found] = VectorDatabase(tmp_path / "a.lance", encoder).ask("Anna sees Boris 7", k=1)
    cosine = encoder.similarity(*encoder.encode([found["sentence"], "Anna sees Boris 7"]))
    assert found["cosine"] == pytest.approx(float(cosine[0, 0]), abs=1e-2 if indexed == 300 else 1e-5)
    assert found["cosine"] > 0.99
    message = f"has vectors of {encoder.fingerprint}, the encoder is"
    raises(FingerprintError, message, VectorDatabase, tmp_path / "a.lance", SentenceEncoder())


def test_what_cannot_be_filled_or_asked(run: Runner, tmp_path: Path, mini_bundle: Path) -> None:
    pq.write_table(pa.table({"vector": [[1.0]]}), tmp_path / "theirs.parquet")
    raises(DataError, "its metadata does not name an encoder", fill, tmp_path / "theirs.parquet", tmp_path / "db")
    lines = write_lines(tmp_path / "a.txt", TEXTS)
    command = ["encode", lines, "--output", tmp_path / "a.parquet", "--model", mini_bundle, "--precision", "int8"]
    assert run(*command)[0] == 0
    raises(DataError, "contains int8, which LanceDB cannot compare", fill, tmp_path / "a.parquet", tmp_path / "db")
    raises(DataError, "no such database", VectorDatabase, tmp_path / "db", SentenceEncoder(mini_bundle))
    assert not (tmp_path / "db").exists()
