"""The model card, the README of a bundle, and the scores that it quotes."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from xsent.bundle import TABLE, TOKENIZER, WEIGHTS
from xsent.classification.topics import COLUMNS, ENGLISH, SEEDS_NOTE, accuracy_rows, transfer_from_english
from xsent.cli.terminal import format_table
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation.protocols import PROTOCOLS, as_stored
from xsent_export.check import Parity
from xsent_export.options import BundleSpec, space_of
from xsent_train.checkpoint import Checkpoint

logger = logging.getLogger(__name__)

FOLDER = "DATA/eval"
# What may lie in a folder of tests, and the protocol that reads it.
TESTS = {
    "tatoeba": "tatoeba",
    "xsr": "xsr",
    "flores": "xsim",
    "stsb": "sts",
    "contrasts.tsv": "contrasts",
    "words.tsv": "words",
}
TOPICS = "sib200"


@dataclass(frozen=True)
class Score:
    """The result of one test: the command that prints it, its table, and what to know when comparing."""

    command: str
    rows: Sequence[Mapping[str, object]]
    note: str


def refuse_empty_tests(folder: Path) -> None:
    """Refuse a folder that has nothing to score."""
    if not any((folder / name).exists() for name in [*TESTS, TOPICS]):
        raise DataError(f"{folder}: no tests; expected a folder with one of {', '.join([*TESTS, TOPICS])}")


def scores(encoder: SentenceEncoder, folder: Path, dims: Sequence[int]) -> Iterator[Score]:
    """Score a bundle by every test in a folder that can be read, Tatoeba by each of several trained `dims` too."""
    measures: list[tuple[str, Callable[[SentenceEncoder, Path], Score]]]
    measures = [(name, partial(_protocol, task)) for name, task in TESTS.items()]
    if len(dims) > 1:
        measures.append(("tatoeba", partial(_by_dimensions, dims)))
    for name, measure in [*measures, (TOPICS, _topics)]:
        if (folder / name).exists():
            logger.info("scores: %s", name)
            try:
                yield measure(encoder, folder / name)
            except DataError as error:
                logger.warning("no score: %s", error)


def _protocol(task: str, encoder: SentenceEncoder, place: Path) -> Score:
    found = PROTOCOLS[task](encoder, place)
    return Score(f"xsent evaluate {task} {FOLDER}/{place.name}", found.rows(), found.note)


def _by_dimensions(dims: Sequence[int], encoder: SentenceEncoder, folder: Path) -> Score:
    """The means over all languages by the dimensions that are kept."""
    rows = []
    for dim in dims:
        measured = PROTOCOLS["tatoeba"](as_stored(encoder, truncate_dim=dim), folder)
        rows.append({"dimensions": dim, **measured.mean})
    command = f"xsent evaluate tatoeba {FOLDER}/tatoeba --truncate-dim DIMENSIONS"
    return Score(command, rows, "The last row of each, the mean of all languages.")


def _topics(encoder: SentenceEncoder, folder: Path) -> Score:
    command = f"xsent classify evaluate {FOLDER}/{TOPICS} --columns {','.join(COLUMNS)} --train {ENGLISH}"
    return Score(command, accuracy_rows(transfer_from_english(encoder, folder, encoder.languages)), SEEDS_NOTE)


CARD = "README.md"

FACTS = ("dim", "num_layers", "vocab_size", "max_length", "precision", "fingerprint")  # what a card has of it

HEAD = """---
language: {language_tags}
license: {licence_tag}
pipeline_tag: sentence-similarity
tags: [sentence-similarity, cross-lingual, sentence-embeddings, {tags}]
---

# {name}

A compact cross-lingual sentence encoder: sentences that mean the same get similar vectors, whatever their
language. """

ORIGIN = """## Training

{training}

{data}

Exported with `{command}`.

## Licence

The weights: {licence}.
"""

BUNDLE = """It runs offline on a CPU.

| property | value |
|---|---|
| languages | {languages} |
| vector | {dim} numbers |
| layers | {num_layers} |
| vocabulary | {vocab_size:,} pieces, SentencePiece |
| longest sentence | {max_length} tokens |
| precision | {precision} |
| size | {megabytes:.1f} MB |
| memory | {held:.1f} MB for layers and vocabulary; of the table's {table:.1f} MB only the rows that sentences use |
| fingerprint | `{fingerprint}` |
{space}{spaces}
## Use

```python
from xsent import SentenceEncoder

encoder = SentenceEncoder("path/to/{name}")
vectors = encoder.encode(["The cat sleeps.", "Le chat dort."])  # [2, {dim}], of length 1
```

{parity}
{depths}{tatoeba}{scores}
"""

SPACE = "| space | that of {}: vectors of both can be compared |\n"

SPACES = '| spaces | {}: `encode(sentences, space="{}")` gives vectors that can be compared with its own |\n'

DEPTHS = """
## Depths

`SentenceEncoder("path/to/{name}", layers=N)` reads the vector after fewer layers, sooner. All lie in one space. On the
same pairs: the cosine to the vector of all layers, and P@1 where fewer layers ask and all answer.

{table}
"""

PARITY = """## Parity

Measured at export on pairs held out from training. The cosine compares a sentence's vector with that of the
trained encoder; P@1 is the share of sentences, in per cent, whose nearest neighbour in the other language is their
translation, the mean of both directions.

{table}"""

FOREIGN = """Languages: {languages}; {dim} numbers a vector, {layers} layers.{space}

{use}
{parity}
"""

USES = {
    "onnx": """`model.onnx` takes `input_ids` and `attention_mask` (int64 [B, T]) and gives `sentence_embedding`
(float32 [B, D], not of length 1). The ids are those of `sentencepiece.model`; {frame}.""",
    "sentence-transformers": """```python
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("path/to/{name}").encode(["The cat sleeps.", "Le chat dort."])
```""",
    "web": """```js
import {{ AutoModel, AutoTokenizer }} from "@huggingface/transformers";

const tokenizer = await AutoTokenizer.from_pretrained("path/to/{name}");
const model = await AutoModel.from_pretrained("path/to/{name}");
const tokens = tokenizer(["The cat sleeps.", "Le chat dort."], {{ padding: true }});
const {{ sentence_embedding }} = await model(tokens);
```

The vectors are not of length 1.""",
}

TATOEBA = """
Tatoeba similarity search: P@1, in per cent, of up to 1,000 sentences a language, by cosine.

{table}
"""

SCORES = """
## Scores

Of this bundle, each as the command prints it with `--model` and the bundle's folder.
"""

SCORE = """
`{command}`

```text
{table}
```

{note}
"""


def render_card(
    checkpoint: Checkpoint, manifest: Mapping[str, Any], parity: Parity, scores: Sequence[Score], command: str
) -> str:
    """The card of a bundle, whose manifest does not list it yet."""
    size = {name: entry["bytes"] for name, entry in manifest["files"].items()}
    return _render(
        BUNDLE,
        checkpoint,
        command,
        **{name: manifest[name] for name in FACTS},
        tags=f"{manifest['precision']}, onnx, xsent",
        megabytes=sum(size.values()) / 1e6,
        # Calculated: what is measured differs from run to run, and a bundle may not.
        held=(size[WEIGHTS] + size[TOKENIZER]) / 1e6,
        table=size[TABLE] / 1e6,
        space=SPACE.format(manifest["space"]) if manifest["space"] else "",
        spaces="".join(SPACES.format(space, space) for space in manifest.get("spaces", ())),
        parity=PARITY.format(table=_table(parity.rows())),
        depths=DEPTHS.format(name=checkpoint.name, table=_table(parity.depth_rows())) if parity.depths else "",
        tatoeba=TATOEBA.format(table=_table(parity.tatoeba_rows())) if parity.tatoeba else "",
        scores=_scores(scores),
    )


def render_foreign_card(
    checkpoint: Checkpoint, spec: BundleSpec, parity: Parity | None, kind: str, command: str
) -> str:
    """The card of a folder for another tool, one of `USES`."""
    config = checkpoint.config
    framed = spec.num_layers or config.depths
    frame = f"id {config.first} stands before them, id {config.last} behind" if framed else "nothing is added"
    return _render(
        FOREIGN,
        checkpoint,
        command,
        tags=kind,
        dim=spec.dim,
        layers=spec.num_layers,
        space=f" They can be compared with those of {space}." if (space := space_of(checkpoint, spec)) else "",
        use=USES[kind].format(name=checkpoint.name, frame=frame),
        parity="\n" + PARITY.format(table=_table(parity.rows())) + "\n" if parity else "",
    )


def _render(template: str, checkpoint: Checkpoint, command: str, **facts: object) -> str:
    return (HEAD + template + ORIGIN).format(
        name=checkpoint.name,
        languages=", ".join(checkpoint.languages),
        licence=checkpoint.licence,
        # Quoted: Norwegian is "no", which YAML takes for false.
        language_tags=json.dumps(checkpoint.languages),
        licence_tag=json.dumps(checkpoint.licence.lower()),
        training=_training(checkpoint),
        data=_data(checkpoint.about.get("attribution", [])),
        command=command,
        **facts,
    )


def _scores(scores: Sequence[Score]) -> str:
    parts = (SCORE.format(command=score.command, table=format_table(score.rows), note=score.note) for score in scores)
    return SCORES + "".join(parts) if scores else ""


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _training(checkpoint: Checkpoint) -> str:
    recipe = checkpoint.about.get("recipe", {})
    stages = recipe.get("stages") or [{"name": "training", "steps": checkpoint.step}]
    parent, seed = checkpoint.about.get("started_from"), recipe.get("seed")
    origin = f"Started from the weights of {parent}. " if parent else ""
    lines = [origin + ("Stages:" if seed is None else f"Seed {seed}; stages:"), ""]
    for number, stage in enumerate(stages, 1):
        done = stage["steps"] if number < len(stages) else checkpoint.step
        steps = f"{done:,} steps" if done == stage["steps"] else f"{done:,} of {stage['steps']:,} steps"
        pairs = f", {stage['batch_size']:,} pairs a step" if "batch_size" in stage else ""
        lines.append(f"{number}. {stage['name']}: {steps}{pairs}")
    return "\n".join(lines)


def _data(attribution: Sequence[str]) -> str:
    listed = "".join(f"\n- {source}" for source in attribution)
    return f"Trained on text from:\n{listed}" if listed else "The sources of the training text are not recorded."
