"""The model card of an export, which is its README, and the scores in it."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xsent.bundle import TABLE, TOKENIZER, WEIGHTS
from xsent.cli.terminal import format_table, markdown_table
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, counted, listed
from xsent.evaluation import PROTOCOLS
from xsent.evaluation.topics import (
    COLUMNS,
    ENGLISH,
    SEEDS_NOTE,
    accuracy_rows,
    transfer_from_english,
    unknown_rows,
)
from xsent.open_model import SupportsEncode
from xsent_export.kept import PASSAGES, kept_by_depth, kept_rows
from xsent_export.options import BundleSpec, ExportOptions
from xsent_export.parity import Parity
from xsent_train.checkpoint import Checkpoint
from xsent_train.derive import SOURCES

logger = logging.getLogger(__name__)

FACTS = ("dim", "num_layers", "vocab_size", "max_length", "precision", "fingerprint")  # fields of the manifest

TESTS_FOLDER = "DATA/eval"  # in the commands on the card
# Names in a folder of tests, and their protocols.
TESTS = {
    "tatoeba": "tatoeba",
    "xsr": "xsr",
    "flores": "xsim",
    "stsb": "sts",
    "passages": "retrieval",
    "contrasts.tsv": "contrasts",
    "words.tsv": "words",
}
TOPICS = "sib200"
UNKNOWN_NOTE = "Marked as unknown, in %. lost: texts with a label; found: texts whose label was omitted from training."

HEAD = """---
language: {language_tags}
license: {licence_tag}
library_name: {library}
pipeline_tag: sentence-similarity
tags: [sentence-similarity, feature-extraction, cross-lingual, sentence-embeddings, {tags}]
{model_index}---

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
| size | {megabytes:.1f} MB, without the manifest |
| memory | {held:.1f} MB for layers and vocabulary; of the table's {table:.1f} MB, only the rows that sentences use |
| fingerprint | `{fingerprint}` |
{space}{spaces}
## Use

```python
from xsent import SentenceEncoder

encoder = SentenceEncoder("path/to/{name}")
vectors = encoder.encode(["The cat sleeps.", "Le chat dort."])  # [2, {dim}], of length 1
```

{parity}
{depths}{kept}{scores}
"""

SPACE = "| space | that of {}; its vectors can be compared with these |\n"

SPACES = '| spaces | {}: `encode(sentences, space="{}")` gives vectors that can be compared with its own |\n'

DEPTHS = """
## Depths

`SentenceEncoder("path/to/{name}", layers=N)` stops after fewer layers, which takes less time. All depths share one
space. The table shows the cosine to the vector of all layers, and P@1 of queries with fewer layers among vectors of all
layers, on the same pairs.

{table}
"""

KEPT = f"""
## Results kept

Of the ten passages nearest to a question of `{TESTS_FOLDER}/{PASSAGES}`, the share that stay among the ten, in per
cent, mean of the languages (and the worst): of this encoder against the trained one in float32, and of its vectors
stored as int8 or binary against its float32 vectors.

{{table}}
"""

PARITY = """## Parity

Measured at export on pairs held out from training. The cosine compares a sentence's vector with that of the
trained encoder; P@1 is the share of sentences, in %, whose nearest neighbour in the other language is their
translation, the mean of both directions. Of the ten nearest sentences in the other language, the last column has the
share that are also the ten nearest with the trained encoder.

{table}"""

FOREIGN = """Languages: {languages}. Vectors of {dim} numbers, {layers}.{space}

{use}
{parity}{scores}
"""

LIBRARIES = {
    "web": "transformers.js",
    "gguf": "llama.cpp",
    "text": "onnx",
}

USES = {
    "onnx": """```python
import numpy, onnxruntime, sentencepiece

tokenizer = sentencepiece.SentencePieceProcessor(model_file="path/to/{name}/sentencepiece.model")
session = onnxruntime.InferenceSession("path/to/{name}/model.onnx")
ids = numpy.array([{ids}])
vectors = session.run(["sentence_embedding"], {{"input_ids": ids, "attention_mask": numpy.ones_like(ids)}})[0]
vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)  # [1, {dim}]
```

`model.onnx` takes `input_ids` and `attention_mask` (int64 [B, T]) and returns `sentence_embedding` (float32 [B, D], not
of length 1). The ids are at most {length} of `sentencepiece.model`; {frame}. For a batch, append zeros to the ids of
shorter sentences, and to their masks.""",
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
    "text": """`text.onnx` and `text.ort` take `text` (string [1]) and return `vector` (float32 [1, D], of length 1).
They need ONNX Runtime with the operators of onnxruntime-extensions.""",
    "gguf": """For llama.cpp and tools built on it, with mean pooling:

```sh
llama-server --embeddings --model {name}-TYPE.gguf
```

`Modelfile` is for Ollama: `ollama create {name} --file Modelfile`. Texts have at most {length} tokens.""",
}

SCORES = """
## Scores

The scores of this model, measured at export with these commands; add `--model` with its folder to repeat them.
"""

SCORE = """
`{command}`

```text
{table}
```

{note}
"""


@dataclass(frozen=True)
class Score:
    """The result of one test: its command, its table, and a note for comparisons."""

    command: str
    rows: Sequence[Mapping[str, object]]
    note: str
    ranked: bool = True  # whether a hub may compare it with scores of other models

    def result(self) -> dict[str, Any]:
        """The figures in the last row of the table, the mean, as a result in a hub's `model-index`."""
        figures = {name: value for name, value in self.rows[-1].items() if isinstance(value, float)}
        return {
            "task": {"type": "sentence-similarity"},
            "dataset": {"type": Path(self.command.split()[3]).stem, "name": self.command},
            "metrics": [{"type": name, "value": round(value, 4)} for name, value in figures.items()],
        }


def refuse_empty_tests(folder: Path) -> None:
    """Raise DataError if a folder has no tests."""
    if not any((folder / name).exists() for name in [*TESTS, TOPICS]):
        raise DataError(f"{folder}: no tests in this folder; expected one of {', '.join([*TESTS, TOPICS])}")


def scores(encoder: SupportsEncode, folder: Path | None, languages: Sequence[str]) -> Iterator[Score]:
    """Score an encoder on every readable test in a folder."""
    tests = [folder / name for name in [*TESTS, TOPICS]] if folder is not None else []
    for test in filter(Path.exists, tests):
        logger.info("scores: %s", test.name)
        try:
            yield from _measure(encoder, test, languages)
        except DataError as error:
            logger.warning("no score: %s", error)


def _measure(encoder: SupportsEncode, test: Path, languages: Sequence[str]) -> Iterator[Score]:
    place = f"{TESTS_FOLDER}/{test.name}"
    if test.name == TOPICS:
        command = f"xsent classify evaluate {place} --columns {','.join(COLUMNS)} --train {ENGLISH}"
        cells = transfer_from_english(encoder, test, languages)
        yield Score(command, accuracy_rows(cells), SEEDS_NOTE)
        yield Score(command, unknown_rows(cells), UNKNOWN_NOTE, ranked=False)
        return
    task = TESTS[test.name]
    command = f"xsent evaluate {task} {place}"
    measured = PROTOCOLS[task](encoder, test)
    yield Score(command, measured.rows(), measured.note)


def render_card(
    checkpoint: Checkpoint,
    manifest: Mapping[str, Any],
    parity: Parity,
    encoder: SentenceEncoder,
    options: ExportOptions,
) -> str:
    """The card of a bundle, whose manifest does not list the card yet."""
    size = {name: entry["bytes"] for name, entry in manifest["files"].items()}
    return _render(
        BUNDLE,
        checkpoint,
        options,
        scores(encoder, options.tests, checkpoint.languages),
        **{name: manifest[name] for name in FACTS},
        library="xsent",
        tags=f"{manifest['precision']}, onnx, xsent",
        megabytes=sum(size.values()) / 1e6,
        # Computed, because measurements differ from run to run, and equal bundles must have equal cards.
        held=(size[WEIGHTS] + size[TOKENIZER]) / 1e6,
        table=size[TABLE] / 1e6,
        space=SPACE.format(manifest["space"]) if manifest["space"] else "",
        spaces="".join(SPACES.format(space, space) for space in manifest.get("spaces", ())),
        parity=PARITY.format(table=_table(parity.rows())),
        depths=DEPTHS.format(name=checkpoint.name, table=_table(parity.depth_rows())) if parity.depths else "",
        kept=_kept(encoder.bundle.path, checkpoint, options.tests),
    )


def _kept(bundle: Path, checkpoint: Checkpoint, tests: Path | None) -> str:
    """The section about what 8 bits change in results; empty without a test that can be read."""
    try:
        rows = kept_rows(kept_by_depth(bundle, checkpoint, tests / PASSAGES, checkpoint.languages)) if tests else []
    except DataError as error:
        logger.warning("not compared with float32: %s", error)
        rows = []
    return KEPT.format(table=_table(rows)) if rows else ""


def render_foreign_card(
    checkpoint: Checkpoint,
    spec: BundleSpec,
    parity: Parity | None,
    encoder: SupportsEncode | None,
    options: ExportOptions,
) -> str:
    """The card of a folder for another tool, one of `USES`; without scores if the tool is not installed."""
    config, kind = checkpoint.config, options.format
    framed = spec.num_layers or config.depths
    frame = f"add id {config.first} before them and id {config.last} after them" if framed else "add nothing"
    ids = f'tokenizer.encode("The cat sleeps.")[:{config.max_length}]'
    return _render(
        FOREIGN,
        checkpoint,
        options,
        scores(encoder, options.tests, checkpoint.languages) if encoder else (),
        library=LIBRARIES.get(kind, kind),
        tags=kind,
        dim=spec.dim,
        layers=counted(spec.num_layers, "layer"),
        space=f" Vectors can be compared with those of {spec.space}." if spec.space else "",
        use=USES[kind].format(
            name=checkpoint.name,
            frame=frame,
            ids=f"[{config.first}, *{ids}, {config.last}]" if framed else ids,
            dim=spec.dim,
            length=config.max_length,
        ),
        parity="\n" + PARITY.format(table=_table(parity.rows())) + "\n" if parity else "",
    )


def _render(
    template: str, checkpoint: Checkpoint, options: ExportOptions, measured: Iterable[Score], **facts: object
) -> str:
    scores = list(measured)
    tables = (SCORE.format(command=score.command, table=format_table(score.rows), note=score.note) for score in scores)
    sources = "".join(f"\n- {source}" for source in checkpoint.about.get("attribution", []))
    index = [{"name": checkpoint.name, "results": [score.result() for score in scores if score.ranked]}]
    return (HEAD + template + ORIGIN).format(
        name=checkpoint.name,
        languages=", ".join(checkpoint.languages),
        licence=checkpoint.licence,
        # Quoted, because YAML takes "no", which is Norwegian, for false.
        language_tags=json.dumps(checkpoint.languages),
        licence_tag=json.dumps(checkpoint.licence.lower()),
        training=_training(checkpoint),
        data=f"{SOURCES}\n{sources}" if sources else "The sources of the training text are not recorded.",
        command=options.command,
        model_index=f"model-index: {json.dumps(index)}\n" if scores else "",
        scores=SCORES + "".join(tables) if scores else "",
        **facts,
    )


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    return markdown_table([*rows[0]], [[str(value) for value in row.values()] for row in rows])


def _training(checkpoint: Checkpoint) -> str:
    recipe = checkpoint.about.get("recipe", {})
    stages = recipe.get("stages", [])
    parent = checkpoint.about.get("started_from")
    seed = recipe.get("seed")
    origin = f"Started from the weights of {parent}. " if parent else ""
    if not stages:
        return f"{origin}Its stages are not recorded."
    lines = [origin + ("Stages:" if seed is None else f"Seed {seed}; stages:"), ""]
    for number, stage in enumerate(stages, 1):
        if not stage["steps"] and stage.get("starts_from"):
            lines.append(f"{number}. {stage['name']}: the mean of {listed(stage['starts_from'], 'and')}")
            continue
        done = stage["steps"] if number < len(stages) else checkpoint.step
        steps = f"{done:,} steps" if done == stage["steps"] else f"{done:,} of {stage['steps']:,} steps"
        pairs = f", {stage['batch_size']:,} pairs per step" if "batch_size" in stage else ""
        lines.append(f"{number}. {stage['name']}: {steps}{pairs}")
    return "\n".join(lines)
