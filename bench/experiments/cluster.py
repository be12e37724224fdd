"""Clusters beside k-means and HDBSCAN on the same vectors: docs/cluster.md.

python bench/experiments/cluster.py DATA/eval/sib200 bench/tickets.tsv
"""

from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, v_measure_score

from xsent import SentenceEncoder, cluster
from xsent.cli.options import BundleOption
from xsent.cli.terminal import format_table, one_line_errors
from xsent.evaluation.topics import COLUMNS, TEST_FILES, read_examples, topic_files

NONE = "none"  # label of the tickets that belong to no topic

Labels = NDArray[np.int64]


def hdbscan(vectors: NDArray[np.float32], size: int) -> Labels:
    """Groups of at least so many in 50 principal components, in which it is quick and finds more than in 384."""
    reduced = PCA(50, random_state=0).fit_transform(vectors).astype(np.float64)
    groups: Labels = HDBSCAN(min_cluster_size=size, min_samples=5, copy=False).fit_predict(reduced)
    return groups


WAYS: dict[str, Callable[[NDArray[np.float32], int], Labels]] = {
    "cluster": lambda vectors, number: cluster(vectors).labels,
    "cluster, number": lambda vectors, number: cluster(vectors, number).labels,
    "k-means": lambda vectors, number: KMeans(number, n_init=4, random_state=0).fit_predict(vectors),
    "HDBSCAN 10": lambda vectors, number: hdbscan(vectors, 10),
    "HDBSCAN 25": lambda vectors, number: hdbscan(vectors, 25),
}


@one_line_errors()
def clusters(
    sib: Annotated[Path, typer.Argument(help="SIB-200: LANG/test.tsv.")],
    tickets: Annotated[Path, typer.Argument(help="bench/tickets.tsv.")],
    model: BundleOption = None,
) -> None:
    """Measure how well clusters agree with the labels that people gave; texts in no cluster count as one cluster."""
    encoder = SentenceEncoder(model)
    files = topic_files(sib, TEST_FILES)
    rows = list[dict[str, object]]()
    for name, paths, columns in (
        ("SIB-200", [files[code] for code in encoder.languages if code in files], COLUMNS),
        ("tickets", [tickets], ["topic", "text"]),
    ):
        examples = [read_examples(path, columns) for path in paths]
        vectors = np.concatenate([one.encode(encoder) for one in examples])
        known = np.array([label for one in examples for label in one.labels])
        number = len({*known.tolist()} - {NONE})
        for way, find in WAYS.items():
            began = process_time()
            labels = find(vectors, number)
            seconds = process_time() - began
            agreement = {"ARI": adjusted_rand_score(known, labels), "V": v_measure_score(known, labels)}
            shape = {"texts": len(known), "labels": number, "clusters": len({*labels.tolist()} - {-1})}
            none = {"none %": float(100 * np.mean(labels == -1)), "CPU s": seconds}
            rows.append({"set": name, "way": way, **shape, **agreement, **none})
    typer.echo(format_table(rows))


if __name__ == "__main__":
    typer.run(clusters)
