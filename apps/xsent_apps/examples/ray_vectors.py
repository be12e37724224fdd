"""Vectors of more text than one machine can encode in time: Ray's workers write one Parquet file per file of texts.

    python -m xsent_apps.examples.ray_vectors texts/ vectors/

Run it again after an interruption: files whose vectors are complete are skipped. Ray comes with `pip install
'xsent[ray]'`; all machines need xsent, and both folders and the model under the same paths.
"""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from xsent import DataError, SentenceEncoder, XsentError
from xsent.cli.options import BundleOption
from xsent.cli.program import App
from xsent.cli.terminal import one_line_errors
from xsent.errors import require_extra
from xsent.files.tables import TextSource
from xsent.files.vectors import VectorMeta, open_vectors, vector_file

with require_extra("ray"):
    import ray

app = App()


class EncodeFiles:
    """Encodes whole files, in a Ray process that keeps one encoder with one thread."""

    def __init__(self, model: Path | None) -> None:
        self._encoder = SentenceEncoder(model, threads=1)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Write the vectors of these files; returns an error message per file, empty if it succeeded."""
        return {"error": [self._encode(*paths) for paths in zip(batch["texts"], batch["vectors"], strict=True)]}

    def _encode(self, texts: str, vectors: str) -> str:
        note = VectorMeta(self._encoder.fingerprint, self._encoder.dim, "float32", normalized=True)
        try:
            with vector_file(Path(vectors), note, force=True) as writer:  # the file appears once it is complete
                for text, vector in self._encoder.encode_items(TextSource(texts)):
                    writer.write(text, vector)
        except (XsentError, OSError) as error:  # the other files are encoded anyway
            return str(error)
        return ""


def missing_files(texts: Path, vectors: Path, fingerprint: str) -> list[dict[str, str]]:
    """Files of texts whose vectors are missing, or older than the texts, each with the file to write.

    Raises DataError if the folder has no texts, and FingerprintError if the vectors are of another encoder.
    """
    files = [file for file in sorted(texts.iterdir()) if file.is_file() and file.name[0] not in "._"]
    if not files:
        raise DataError(f"{texts}: contains no files; expected files of texts, one text per line")
    missing = []
    for file in files:
        part = vectors / f"{file.name}.parquet"
        if part.exists():
            open_vectors(part).check_cosines(fingerprint)
        if not part.exists() or part.stat().st_mtime_ns < file.stat().st_mtime_ns:
            missing.append({"texts": str(file.absolute()), "vectors": str(part.absolute())})
    return missing


def encode_folder(texts: Path, vectors: Path, model: Path | None = None, workers: int | None = None) -> int:
    """Encode the files of a folder that are not encoded yet, and return their number.

    Args:
        texts: A folder of files, one text per line, optionally compressed.
        vectors: The folder of their Parquet files.
        model: A bundle; None uses the one that ships with the package.
        workers: Processes to encode in; None uses one per CPU of the cluster.

    Raises DataError if a file could not be encoded; the others are encoded anyway.
    """
    missing = missing_files(texts, vectors, SentenceEncoder(model, threads=1).fingerprint)
    if missing:
        vectors.mkdir(parents=True, exist_ok=True)
        workers = min(workers or int(ray.cluster_resources()["CPU"]), len(missing))
        files = ray.data.from_items(missing, override_num_blocks=len(missing))
        done = files.map_batches(
            EncodeFiles, fn_constructor_args=(model,), batch_size=1, compute=ray.data.ActorPoolStrategy(size=workers)
        )
        if errors := [row["error"] for row in done.take_all() if row["error"]]:
            raise DataError(errors[0] + (f"; and {len(errors) - 1:,} more files" if errors[1:] else ""))
    return len(missing)


@app.command()
@one_line_errors()
def main(
    texts: Path,
    vectors: Path,
    model: BundleOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per CPU of the cluster.")] = None,
    address: Annotated[str, typer.Option(help="Address of a Ray cluster, or auto on one of its machines.")] = "local",
) -> None:
    """Encode the files of a folder into a folder of Parquet files; run it again to add what is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would send usage statistics to its vendor
    ray.init(address, include_dashboard=False, logging_level="error", log_to_driver=False)
    typer.echo(f"{vectors}: {encode_folder(texts, vectors, model, workers):,} files encoded", err=True)


if __name__ == "__main__":
    app()
