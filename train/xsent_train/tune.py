"""Tune a model on your own text: one stage that starts from the model and has it as its teacher.

The columns of the text say what is learnt. Translated pairs find each other. Scored pairs and queries with passages
train their objectives. Sentences bring the vectors of fewer layers nearer to those of all layers.
"""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from xsent.backends.threads import available_cpus
from xsent.errors import DataError
from xsent.evaluation.judgements import spearman
from xsent.evaluation.translation import finds_gold, languages_of
from xsent.similarity import Floats
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint, trained_depths, trained_dims
from xsent_train.comparison import Comparison, Points, tatoeba_points
from xsent_train.data.corpus import (
    ENGLISH,
    LAYOUTS,
    PAIRS,
    PASSAGES,
    SCORED,
    SENTENCES,
    Corpus,
    OwnText,
    Pair,
    Passages,
    ScoredPair,
    ScoredPairs,
    recognise_text,
    write_pairs,
)
from xsent_train.data.filtering import seem_swapped
from xsent_train.data.preparation import TrainingPairs
from xsent_train.derive import model_path, open_checkpoint
from xsent_train.devices import return_freed_memory, return_large_tensors
from xsent_train.objectives import Objectives
from xsent_train.recipe import LAYER_SHAPE, START, CorpusConfig, PassagesConfig, Recipe, StageConfig, TextConfig
from xsent_train.trainer import Trainer

logger = logging.getLogger(__name__)

TEXT, OTHER, HELD_OUT = "text.tsv", "other.tsv", "held-out.tsv"  # files of a run
STAGE, MEAN = "own", "mean"  # stages: the training, and its mean with the start
READERS: Mapping[str, type[ScoredPairs] | type[Passages]] = {SCORED: ScoredPairs, PASSAGES: Passages}
OBJECTIVES: Mapping[str, Mapping[str, object]] = {
    PAIRS: {"align": 1},
    SENTENCES: {},
    SCORED: {"similarity": {"weight": 4, "pairs": 32}},
    PASSAGES: {"retrieve": {"queries": 32, "block": 8, "tokens": 80}},
}
OWN, KEPT = "own", "kept"  # text in the table; KEPT is also the source of general text in the run
KEPT_SHARE = 0.25  # of what is drawn
MEASURED, HELD_OUT_SHARE = 250, 0.125  # lines per language to hold out, and their largest share
EPOCHS, ENOUGH, MOST_SEEN = 10, 15_000, 100_000  # lines are repeated up to EPOCHS times while fewer than ENOUGH
LEAST_MEMORY, SMALL_MEMORY = 9e8, 2e9  # bytes; below SMALL_MEMORY, not all weights are trained
START_SHARE = 0.5  # of the start in the mean, which wins back what other languages lost


class Test(NamedTuple):
    """Held-out text in one language."""

    text: str  # own or kept
    language: str
    first: list[str]
    second: list[str] | Floats  # what each is to find or to resemble, or the vectors of that [n, D]
    scores: list[float]  # of scored pairs, otherwise empty


def tune(
    model: str | Path,
    text: str | Path,
    out: str | Path,
    *,
    keep: str | Path | None = None,
    tests: str | Path | None = None,
    lines_seen: int | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Comparison:
    """Tune a model on a file of text, or resume that, and measure it before and after.

    Args:
        model: A bundle or a checkpoint; `builtin` is the built-in bundle.
        text: Lines of one kind of text with tabs between their columns, see `LAYOUTS`.
        out: Folder of the run.
        keep: Translated pairs of general text, which are mixed in and measured, so that the model keeps what it knew.
        tests: Folder with Tatoeba's `en-XX.tsv`, to measure on.
        lines_seen: Lines to train on, counting repetitions. Default: all, up to 100,000; fewer than 15,000 repeat.
        memory: Size such as `1GB`; below 2 GB, only readouts and the last layer are trained, in small batches.
        threads: Number of threads. Default: all available CPUs.

    Raises:
        DataError: If the text cannot be used, or `out` is the folder of another run.
    """
    model, text, out = model_path(Path(model)), Path(text), Path(out)
    keep, tests = (Path(path) if path else None for path in (keep, tests))
    if small := memory is not None and size_in_bytes(memory) < SMALL_MEMORY:
        return_large_tensors()
    start = open_checkpoint(model)
    if tests is not None:
        languages_of(CheckpointEncoder(start), tests)  # fails before the work if there are none
    own = recognise_text(text, start.languages)
    if own.kind == PAIRS and seem_swapped(Corpus([text], frozenset(own.languages))):
        raise DataError(f"{text}: English and its translations seem to be swapped; expected {LAYOUTS[PAIRS]}")
    kept = _kept(keep, start.languages) if keep else OwnText(PAIRS, Counter(), [])
    recipe = _recipe(start, own, kept, lines_seen, small)
    del start  # which takes memory
    folder = out / STAGE
    if out.exists() and not folder.is_dir() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: is not empty and not a run of tune; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    _write(own, text, keep, recipe.corpus.validation_share, folder)
    trainer = Trainer(recipe, folder, out, threads=threads or available_cpus(), teacher=model, start=model)
    assert trainer.started_from is not None
    held_out = list(_tests(trainer.started_from, trainer.data.prepared.validation, own.kind, folder / HELD_OUT))
    sizes = (f"{test.text} {test.language} {len(test.first):,}" for test in held_out)
    logger.info("held-out lines: %s", ", ".join(sizes))
    before = _scores(trainer.started_from, held_out, tests)
    after = load_checkpoint(trainer.train())
    del trainer  # which takes memory
    return Comparison(after.path, before, _scores(after, held_out, tests))


def _kept(path: Path, known: Sequence[str]) -> OwnText:
    """What is in a file of general text, without its sentences that have no translation, which `_write` drops."""
    found = recognise_text(path, known)
    if found.kind != PAIRS:
        raise DataError(f"{path}: {found.kind}; general text to keep must be {PAIRS}: {LAYOUTS[PAIRS]}")
    pairs = Corpus([path], frozenset(found.languages))
    return found._replace(languages=Counter(pair.language for pair in pairs if not pair.alone))


def size_in_bytes(size: str) -> float:
    """The bytes of a size such as `1GB` or `950 MB`. Raises DataError if it is none, or too little."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MG])B", size.strip(), re.IGNORECASE)
    found = float(match[1]) * (1e9 if match[2] in "gG" else 1e6) if match else 0.0
    if found < LEAST_MEMORY:
        raise DataError(f"--memory {size}: expected at least {LEAST_MEMORY / 1e6:.0f} MB, such as 1GB")
    return found


def _recipe(start: Checkpoint, own: OwnText, kept: OwnText, lines_seen: int | None, small: bool) -> Recipe:
    """The recipe for a text: the shape of its start, and one stage at small rates."""
    lines, is_other = own.languages.total(), own.kind in READERS
    batch = 16 if is_other or small else 48
    seen = lines_seen or max(min(lines, MOST_SEEN), min(EPOCHS * lines, ENOUGH))
    steps = max(seen // (32 if is_other else batch), 1)
    # Words of a trade are learnt by the table; other text is learnt by the layers, as in across.toml.
    learns_words = not start.config.num_layers or (own.kind == PAIRS and not small)
    table_rate, layer_rate = (1e-3, 1e-5) if learns_words else (0.0, 6e-5)
    objectives = {"distil": 10, **OBJECTIVES[own.kind], **(OBJECTIVES[PAIRS] if kept.languages else {})}
    stage = StageConfig(
        name=STAGE,
        num_layers=start.config.num_layers,
        steps=steps,
        objectives=Objectives.model_validate(objectives),
        batch_size=batch,
        layer_prefixes=tuple(trained_depths(start)),
        prefixes=tuple(trained_dims(start)),
        exit_weight=0.4,
        ignore_above=0.95,
        max_tokens=64,
        learning_rate=layer_rate,
        table_learning_rate=table_rate,
        frozen_layers=max(start.config.num_layers - 1, 0) if small else 0,
        warmup=min(steps // 10, 100),
        validate_every=max(steps // 4, 1),
    )
    mean = stage.model_copy(
        update={"name": MEAN, "steps": 0, "starts_from": {START: START_SHARE, STAGE: 1 - START_SHARE}}
    )
    languages, known = own.languages | kept.languages, kept.languages.total()
    drawn = 2 * lines if own.kind == SCORED else lines  # both sentences of a scored pair are text
    corpus = CorpusConfig(
        files=(TEXT,),
        validation_share=min(HELD_OUT_SHARE, max(MEASURED / min(languages.values()), 0.005)),
        temperature=1.0,
        weights={KEPT: KEPT_SHARE / (1 - KEPT_SHARE) * drawn / known} if known else {},
    )
    sources = [*start.about.get("attribution", []), *own.sources, *kept.sources]
    return Recipe(
        name=f"{start.name}-{STAGE}",
        languages=tuple(sorted(set(languages) - ({ENGLISH} if own.kind == PAIRS else set())) or (ENGLISH,)),
        corpus=corpus,
        licence=start.licence,
        attribution=tuple(dict.fromkeys(sources)),
        stages=(stage,) if small else (stage, mean),  # the mean needs both models in memory
        scored=TextConfig(files=(OTHER,)) if own.kind == SCORED else None,
        passages=PassagesConfig(files=(OTHER,)) if own.kind == PASSAGES else None,
        readouts=bool(start.config.depths),
        space=start.about.get("space"),
        **{name: getattr(start.config, name) for name in ("dim", *LAYER_SHAPE)},
    )


def _write(own: OwnText, text: Path, keep: Path | None, held_out_share: float, folder: Path) -> None:
    """Write the text of the run: pairs, or sentences on both sides; and other text, without what is held out."""
    languages = frozenset(own.languages)
    if (reader := READERS.get(own.kind)) is not None:
        lines, split = reader([text], languages), TrainingPairs(Corpus([]), held_out_share)
        write_pairs(folder / OTHER, (line for line in lines if not split.held_out(line)))
        write_pairs(folder / HELD_OUT, (line for line in lines if split.held_out(line)))
        if not all((folder / name).stat().st_size for name in (OTHER, HELD_OUT)):
            column = "number" if own.kind == SCORED else "group"
            few = f"too few different values of {column} to hold some out"
            raise DataError(f"{text}: {few}; only the same content in other languages shares one")
        sides = 2 if own.kind == SCORED else 1  # passages have no target
        rest = reader([folder / OTHER])
        sentences = (Pair(line.source, line.language, side, side) for line in rest for side in line.texts[:sides])
    else:
        pairs = Corpus([text], languages)
        sentences = (pair._replace(translation=pair.translation or pair.english) for pair in pairs)
    kept = (pair._replace(source=KEPT) for pair in Corpus([keep] if keep else []) if not pair.alone)
    write_pairs(folder / TEXT, chain(sentences, kept))


def _tests(start: Checkpoint, validation: Path, kind: str, other: Path) -> Iterator[Test]:
    """The held-out text by language; kept text is that of the run, and of a start that has some."""
    found = defaultdict[tuple[str, str], dict[tuple[str, str], float]](dict)
    for path in filter(Path.exists, (start.validation, validation)):
        for pair in Corpus([path]):
            name = KEPT if path == start.validation or pair.source == KEPT else OWN
            finds_itself = kind == PAIRS and pair.english == pair.translation  # a sentence without translation
            if (name == KEPT or kind not in READERS) and not finds_itself:
                found[name, pair.language][pair.translation, pair.english] = 0.0
    for line in READERS[kind]([other]) if kind in READERS else ():
        found[OWN, line.language][line.texts] = line.score if isinstance(line, ScoredPair) else 0.0
    for (name, language), lines in sorted(found.items(), key=lambda item: (item[0][0] == KEPT, item[0])):
        pairs = list(lines)[:MEASURED]
        if name == OWN and kind == SCORED:
            first, second = map(list, zip(*pairs, strict=True))
            yield Test(name, language, first, second, [lines[pair] for pair in pairs])
            continue
        sides = {second: first for first, second in pairs}  # each once, so that there is one right answer
        targets = CheckpointEncoder(start).encode(list(sides)) if name == OWN and kind == SENTENCES else list(sides)
        yield Test(name, language, list(sides.values()), targets, [])


def _scores(checkpoint: Checkpoint, tests: Sequence[Test], folder: Path | None) -> Points:
    """P@1 in %, or Spearman's correlation times 100 for scored pairs; with fewer layers only the mean of own text."""
    found: Points = {}
    full = checkpoint.config.num_layers
    for depth in sorted(trained_depths(checkpoint), reverse=True):
        encoder = CheckpointEncoder(checkpoint, depth=depth)
        own = {test.language: _score(test, encoder) for test in tests if test.text == OWN}
        if depth < full:
            found |= {(OWN, "mean", depth): fmean(own.values())} if own else {}
            continue
        found |= {(OWN, language, full): score for language, score in own.items()}
        found |= {(KEPT, t.language, full): _score(t, encoder) for t in tests if t.text == KEPT}
        found |= tatoeba_points(encoder, full, folder)
    return_freed_memory()
    return found


def _score(test: Test, encoder: CheckpointEncoder) -> float:
    first = encoder.encode(test.first)
    second = encoder.encode(test.second) if isinstance(test.second, list) else test.second
    if test.scores:
        return 100 * spearman((first * second).sum(axis=1), test.scores)
    return 100 * float(finds_gold(first, second, range(len(first))).mean())
