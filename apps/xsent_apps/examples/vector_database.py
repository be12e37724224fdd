"""Sentence vectors in LanceDB: filled from a Parquet file of `xsent encode`, queried in any language.

    xsent encode sentences.txt --output sentences.parquet
    python -m xsent_apps.examples.vector_database fill sentences.parquet sentences.lance
    python -m xsent_apps.examples.vector_database ask sentences.lance "Où dort le chat ?"

The metadata keep the encoder's fingerprint, from Parquet to the table; another encoder is refused. LanceDB comes
with `pip install 'xsent[database]'`.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from xsent import DataError, FingerprintError, SentenceEncoder
from xsent.cli.options import BundleOption
from xsent.cli.program import App
from xsent.cli.terminal import format_table, one_line_errors
from xsent.errors import require_extra

with require_extra("database"):
    import lancedb
    import pyarrow.dataset
    from lancedb.index import HnswSq

TABLE = "sentences"
INDEXED = 100_000  # rows from which an index pays off; fewer are compared one by one

app = App()


def fill(vectors: Path, database: Path) -> int:
    """Create a table from a Parquet file, or a folder of them, in constant memory; returns the number of rows."""
    files = sorted(vectors.glob("*.parquet")) if vectors.is_dir() else vectors  # Ray's folder has other files, too
    source = pyarrow.dataset.dataset(files, format="parquet")
    if b"xsent" not in (source.schema.metadata or {}):
        raise DataError(
            f"{vectors}: its metadata does not name an encoder; write it with xsent encode --output NAME.parquet"
        )
    precision = json.loads(source.schema.metadata[b"xsent"])["precision"]
    if precision not in ("float32", "float16"):
        raise DataError(f"{vectors} contains {precision}, which LanceDB cannot compare; encode to float32 or float16")
    table = lancedb.connect(database).create_table(TABLE, source.to_batches(), schema=source.schema)
    rows: int = table.count_rows()
    if rows >= INDEXED:
        table.create_index("vector", config=HnswSq(distance_type="cosine"))
    return rows


class VectorDatabase:
    """A table and its encoder. Raises FingerprintError if the vectors are of another encoder."""

    def __init__(self, database: Path, encoder: SentenceEncoder) -> None:
        if not database.is_dir():  # LanceDB would create one
            raise DataError(f"{database}: no such database; fill one first")
        self._table = lancedb.connect(database).open_table(TABLE)
        self._note = json.loads(self._table.schema.metadata[b"xsent"])
        self._encoder = encoder
        if self._note["fingerprint"] != encoder.fingerprint:
            raise FingerprintError(
                f"{database} has vectors of {self._note['fingerprint']}, the encoder is {encoder.fingerprint}; "
                "use the model that computed them"
            )

    def ask(self, question: str, k: int = 3) -> list[dict[str, Any]]:
        """The k nearest sentences with their cosines, best first."""
        vector = self._encoder.encode(question, truncate_dim=self._note["dim"])
        found = self._table.search(vector).distance_type("cosine").limit(k).to_list()
        return [{"cosine": 1 - row["_distance"], "sentence": row["sentence"]} for row in found]


@app.command("fill")
@one_line_errors()
def fill_command(vectors: Path, database: Path) -> None:
    """Put a Parquet file of vectors, or a folder of its parts, into a new database."""
    typer.echo(f"{fill(vectors, database):,} rows in {database}", err=True)


@app.command("ask")
@one_line_errors()
def ask_command(
    database: Path,
    question: str,
    k: Annotated[int, typer.Option("-n", "--top-k", min=1, help="Number of sentences to find.")] = 3,
    model: BundleOption = None,
) -> None:
    """Find the sentences nearest to a question."""
    typer.echo(format_table(VectorDatabase(database, SentenceEncoder(model)).ask(question, k)))


if __name__ == "__main__":
    app()
