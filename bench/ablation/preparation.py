"""What all rows of an ablation read, made once: the corpus, and from it vocabulary, held-out pairs and store.

In a process of its own, so that its memory is not counted as a row's.
"""

import logging
import sys
from pathlib import Path

from xsent.bench.ablation.place import Place
from xsent.bench.ablation.plan import load_plan
from xsent.bench.ablation.variants import TABLE, table
from xsent.bench.processes import end_with_parent
from xsent.failures import one_line_errors
from xsent.train.data.preparation import prepare


def prepare_rows(folder: Path) -> None:
    """Make what is not there yet.

    Args:
        folder: The ablation's; it has a plan.

    Raises:
        DataError: The data cannot be used.
    """
    plan, place = load_plan(folder), Place(folder, TABLE, 1)
    plan.write_corpus(place.corpus)
    recipe = table(plan).recipe(plan, 1)
    made = prepare(recipe, [place.corpus], place.prepared(warm=False), threads=plan.threads)
    # The same once more, under the key of trainings that start from a checkpoint, whose vocabulary is given.
    warm = place.prepared(warm=True)
    prepare(recipe, [place.corpus], warm, threads=plan.threads, vocabulary=made.tokenizer)


def main() -> None:
    """Prepare the ablation folder that the command line names."""
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    with one_line_errors():
        prepare_rows(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
