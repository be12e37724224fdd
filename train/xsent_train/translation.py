"""An encoder as the start of a translation into English, beside the same translator from nothing (wei2020, table 4).

A row is one training: a language, and whether the encoder starts from the checkpoint. All rows see the same pairs, in
the same order and number. A row that starts from a checkpoint trains the decoder alone first, then all of it.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError
from torch import Tensor
from tqdm import tqdm

from xsent.bundle import file_digest
from xsent.errors import DataError, XsentError, require_extra
from xsent.files.atomic import atomic_file, remove_folder, sweep
from xsent.files.text import read_fields, read_sentences
from xsent_train.checkpoint import (
    MODEL,
    Checkpoint,
    load_checkpoint,
    load_optimizer,
    optimizer_state,
    restore_optimizer,
    save_checkpoint,
    stage_folders,
    to_tokens,
)
from xsent_train.data.batches import ahead
from xsent_train.data.corpus import Corpus, chunks
from xsent_train.data.preparation import prepare
from xsent_train.data.sampling import Sampler, cell_shares
from xsent_train.data.store import Store
from xsent_train.devices import keep_freed_memory, precision
from xsent_train.model import ModelConfig
from xsent_train.recipe import LAYER_SHAPE, Basics, first_mistake, read_toml
from xsent_train.stage_loop import interruption, schedule
from xsent_train.tokens import LAST, UNK, Tokens, open_tokenizer
from xsent_train.trainer import differences, open_start
from xsent_train.translator import Translator

Figures = dict[str, str | float | None]  # of a row, by heading

logger = logging.getLogger(__name__)

NAME = "translation"  # of the checkpoints
RANDOM, STARTED = "random", "start"  # the rows of a language
WINDOW = 64  # batches drawn together and sorted by length
LOGGED = 100  # steps between two lines of the log
RESAMPLED = 1000  # times that the test's sentences are drawn anew, for an interval of a score
AT_ONCE = 32  # sentences translated at a time


class TranslationRecipe(Basics):
    """A translator into English from each of the languages."""

    num_layers: Annotated[int, Field(ge=1, le=6)] = 6  # of the encoder; of a start, its first ones
    decoder_layers: PositiveInt = 2
    steps: PositiveInt
    frozen_steps: NonNegativeInt = 0  # first steps in which a started encoder stays as it is
    batch_size: PositiveInt = 64  # pairs
    max_tokens: PositiveInt = 64  # kept of a sentence in training
    least: PositiveInt = 5  # times that the English text must have a piece for the decoder to know it
    learning_rate: PositiveFloat = 1e-3  # peak
    warmup: NonNegativeInt = 200  # steps of linear warm-up, before a cosine to zero
    clip: PositiveFloat = 1.0  # largest norm of the gradients
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # share of a label that all pieces share
    width: PositiveInt = 5  # of the beam
    penalty: NonNegativeFloat = 1.0  # exponent of the length that a log probability is divided by
    paper: Mapping[str, Mapping[str, float]] = {}  # its BLEU by language and row


def load_translation_recipe(path: Path) -> TranslationRecipe:
    """Read a recipe of translators. Raises DataError with the first mistake in it."""
    try:
        return TranslationRecipe.model_validate(read_toml(path))
    except ValidationError as error:
        raise DataError(f"{path}: {first_mistake(error)}") from error


class Row(NamedTuple):
    """A training."""

    language: str
    kind: str

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.language}-{self.kind}"

    @property
    def started(self) -> bool:
        """Whether its encoder was trained before."""
        return self.kind == STARTED


class Direction:
    """The pairs of a language, to translate into English; batch number i is a function of recipe, store and i."""

    def __init__(self, recipe: TranslationRecipe, store: Store, pieces: int, language: str) -> None:
        """Choose the pairs, and the pieces that the decoder knows, of as many as the vocabulary has."""
        sizes = dict(zip(store.cells, np.diff(store.cell_starts).tolist(), strict=True))
        chosen = {cell: size for cell, size in sizes.items() if cell[1] == language}
        if not chosen:
            raise DataError(f"{language}→en: no pair to train on; name a language that the files have pairs of")
        corpus = recipe.corpus
        shares = cell_shares(chosen, temperature=corpus.temperature, weights=corpus.weights)
        self._recipe, self._store = recipe, store
        self._sampler = Sampler(
            store.cell_starts,
            np.array([shares.get(cell, 0.0) for cell in store.cells]),
            batch_size=recipe.batch_size,
            window=WINDOW,
            seed=recipe.seed,
        )
        self._window: tuple[int, NDArray[np.int64]] | None = None
        bounds = zip(store.cells, store.cell_starts, store.cell_starts[1:], strict=False)
        pairs = np.concatenate([store.pairs(np.arange(a, b)) for cell, a, b in bounds if cell in chosen])
        counts = torch.bincount(store.tokens(pairs, 0, recipe.max_tokens).ids, minlength=pieces)
        counts[: LAST + 1] = recipe.least
        self.kept = (counts >= recipe.least).nonzero()[:, 0]
        self._row = torch.full((pieces,), UNK)
        self._row[self.kept] = torch.arange(len(self.kept))

    def since(self, step: int) -> Iterator[tuple[Tokens, Tokens]]:
        """The batches of the steps from `step` to the last: sources, and targets as rows of the decoder."""
        return ahead(self._batch(now) for now in range(step, self._recipe.steps))

    def _batch(self, step: int) -> tuple[Tokens, Tokens]:
        window, number = divmod(step, WINDOW)
        if self._window is None or self._window[0] != window:
            self._window = window, self._cut(window)
        pairs, most = self._window[1][number], self._recipe.max_tokens
        target = self._store.tokens(pairs, 0, most)
        return self._store.tokens(pairs, 1, most), Tokens(self._row[target.ids], target.lengths)

    def _cut(self, window: int) -> NDArray[np.int64]:
        pairs = self._store.pairs(self._sampler.rows(window))
        lengths = self._store.lengths(pairs, 0) + self._store.lengths(pairs, 1)
        ordered = pairs[np.argsort(lengths, kind="stable")]
        return self._sampler.shuffle(window, ordered.reshape(WINDOW, self._recipe.batch_size))


class Translation:
    """The rows of a recipe in a folder; called again, they resume."""

    def __init__(
        self, recipe: TranslationRecipe, files: Sequence[Path], out: Path, *, threads: int, start: Path | None = None
    ) -> None:
        """Prepare the data. The vocabulary is that of `start`, a checkpoint or a bundle; without it one is trained.

        Raises DataError if the start is of another shape than the recipe, or a language has no pairs.
        """
        with require_extra("translate"):
            import sacrebleu  # noqa: F401  before the hours of training
        torch.set_num_threads(threads)
        keep_freed_memory()
        sweep(out)
        self.recipe, self.out = recipe, out
        self._start = open_start(recipe, start, out) if start else None
        if self._start is not None and self._start.config.num_layers < recipe.num_layers:
            has = self._start.config.num_layers
            raise DataError(f"{start}: has {has} layers, the recipe's translator {recipe.num_layers}; lower num_layers")
        vocabulary = self._start.tokenizer if self._start else None
        self.prepared = prepare(recipe, files, out, threads=threads, vocabulary=vocabulary)
        self._processor = open_tokenizer(self.prepared.tokenizer)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._mixed = precision(recipe.precision) == "bf16-mixed"

    @property
    def kinds(self) -> list[str]:
        """The rows of a language."""
        return [RANDOM, STARTED] if self._start else [RANDOM]

    def train(self, row: Row) -> Path:
        """Train a row, or resume it; returns its last checkpoint.

        Ctrl-C saves the state, and is raised. Raises DataError if the row was begun with other settings, XsentError if
        the loss is no longer a number.
        """
        recipe = self.recipe
        direction = Direction(recipe, self.prepared.store, len(self._processor), row.language)
        saved = self._saved(row)
        if saved is not None and saved.step == recipe.steps:
            return saved.path
        model = self._translator(row, direction.kept, saved)
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)
        if saved is not None:
            restore_optimizer(model, optimizer, load_optimizer(saved.path))
        before = saved.step if saved else 0
        logger.info("%s: %d steps, %d pieces", row.name, recipe.steps, len(direction.kept))
        written = time.monotonic()
        bar = tqdm(total=recipe.steps, initial=before, desc=row.name, unit="step", disable=None)
        with interruption() as interrupted, bar:
            for done, batch in enumerate(direction.since(before), before + 1):
                loss = self._step(row, model, optimizer, done - 1, batch)
                bar.update()
                if done % LOGGED == 0:
                    with open(self.out / "log.jsonl", "a") as log:
                        log.write(json.dumps({"stage": row.name, "step": done, "loss": loss}) + "\n")
                late = time.monotonic() - written > 60 * recipe.checkpoint_minutes
                if done == recipe.steps or late or interrupted.is_set():
                    path = self._save(row, model, optimizer, done)
                    written = time.monotonic()
                if interrupted.is_set():
                    raise KeyboardInterrupt
        return path

    def _translator(self, row: Row, kept: Tensor, saved: Checkpoint | None) -> Translator:
        """The model of a row as it starts, or as it was saved."""
        recipe = self.recipe
        shape = {name: getattr(recipe, name) for name in ("dim", "num_layers", "dropout", *LAYER_SHAPE)}
        torch.manual_seed(recipe.seed)
        config = ModelConfig(len(self._processor), **shape)
        model = Translator(config, recipe.decoder_layers, kept, with_vector=row.started)
        if saved is not None:
            model.load_state_dict(saved.weights)
        elif row.started and self._start is not None:
            known = self._start.load_encoder().state_dict()  # with readouts, which a translator lacks
            model.encoder.load_state_dict({name: known[name] for name in model.encoder.state_dict()})
        return model.to(self._device).train()

    def _step(
        self, row: Row, model: Translator, optimizer: torch.optim.Optimizer, step: int, batch: tuple[Tokens, Tokens]
    ) -> float:
        torch.manual_seed((self.recipe.seed << 32) + step)  # dropout as a function of the step: a resume needs no state
        learns = not row.started or step >= self.recipe.frozen_steps
        model.encoder.requires_grad_(learns).train(learns)
        for group in optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * schedule(step, self.recipe.steps, self.recipe.warmup)
        source, target = (tokens.to(self._device) for tokens in batch)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._mixed):
            loss: Tensor = model(source, target, self.recipe.smoothing)
        if not torch.isfinite(loss):
            raise XsentError(f"{row.name}, step {step}: the loss is no longer a number; lower learning_rate")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), self.recipe.clip)
        optimizer.step()
        return float(loss.detach())

    def _saved(self, row: Row) -> Checkpoint | None:
        """The last checkpoint of a row. Raises DataError if it was trained with other settings or data."""
        sweep(self.out / row.name / "checkpoints")
        if not (folders := stage_folders(self.out / row.name, NAME)):
            return None
        checkpoint = load_checkpoint(folders[-1])
        changes = [differences(checkpoint.about["recipe"], self.recipe)]
        changes += [name for name, now in self._origin.items() if checkpoint.about.get(name) != now]
        if changed := ", ".join(filter(None, changes)):
            raise DataError(f"{checkpoint.path} was trained with other settings ({changed}); name another --out")
        return checkpoint

    @cached_property
    def _origin(self) -> dict[str, str | None]:
        """What a checkpoint depends on besides the recipe."""
        start = file_digest(self._start.path / MODEL)[:16] if self._start else None
        return {"start": start, "preparation_key": self.prepared.store.key}

    def _save(self, row: Row, model: Translator, optimizer: torch.optim.Optimizer, step: int) -> Path:
        """Write a checkpoint of a row, and remove the older ones; its encoder is like that of any checkpoint."""
        recipe, run = self.recipe, self.out / row.name
        path = run / "checkpoints" / f"{NAME}-{step:07d}"
        about = {
            "name": f"{recipe.name}-{row.name}",
            "languages": ["en", row.language],
            "licence": recipe.licence,
            "attribution": list(recipe.attribution),
            "model": asdict(model.encoder.config),
            "step": step,
            "recipe": recipe.model_dump(mode="json"),
            **self._origin,
        }
        state = optimizer_state(model, optimizer) if step < recipe.steps else None
        files = [self.prepared.tokenizer, self.prepared.validation]
        save_checkpoint(path, about, model.state_dict(), state, files)
        for older in stage_folders(run, NAME)[:-1]:
            remove_folder(older)
        return path

    def translations(self, row: Row, sentences: Sequence[str], file: Path) -> list[str]:
        """A trained row's translations of sentences; kept in a file."""
        if file.exists():
            return read_sentences(file)
        saved = self._saved(row)
        assert saved is not None
        model = self._translator(row, saved.weights["kept"], saved).eval()
        pieces = self._processor.encode(list(sentences))
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        found = [""] * len(pieces)
        for part in tqdm(list(chunks(order, AT_ONCE)), desc=f"{row.name} beam", disable=None):
            source = to_tokens([pieces[i] for i in part], model.encoder).to(self._device)
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self._mixed):
                lines = model.translate(source, width=self.recipe.width, penalty=self.recipe.penalty)
            for i, line in zip(part, lines, strict=True):
                found[i] = " ".join(self._processor.decode(line).split())
        with atomic_file(file) as out:
            out.write("".join(f"{line}\n" for line in found).encode())
        return found

    def scores(self, language: str, sources: Sequence[str], references: Sequence[str], name: str) -> list[Figures]:
        """BLEU and chrF of the rows of a language, lower-case as the pieces are, by bootstrap; for a table."""
        from sacrebleu.metrics import BLEU, CHRF
        from sacrebleu.significance import PairedTest

        rows = [Row(language, kind) for kind in self.kinds]
        for row in rows:
            self.train(row)
        found = [(row.kind, self.translations(row, sources, self.out / row.name / f"{name}.txt")) for row in rows]
        metrics = {"BLEU": BLEU(lowercase=True), "chrF": CHRF(lowercase=True)}
        test = PairedTest(found, metrics, [list(references)], "bs", n_samples=RESAMPLED)
        results = [result for name, result in test()[1].items() if name != "System"]
        table = []
        for row, (bleu, chrf) in zip(rows, zip(*results, strict=True), strict=True):
            figures: Figures = {"direction": f"{language}→en", "encoder": row.kind}
            for heading, result in {"BLEU": bleu, "chrF": chrf}.items():
                figures |= {heading: float(result.score), f"{heading} ±": float(result.ci)}
            figures["paper BLEU"] = self.recipe.paper.get(language, {}).get(row.kind)
            table.append({heading: "" if number is None else number for heading, number in figures.items()})
        return table


def read_test(folder: Path | None, held_out: Path, language: str) -> tuple[list[str], list[str]]:
    """The sentences of a test and their English translations: Tatoeba's from a folder, or the held-out pairs."""
    if folder is not None:
        lines = list(read_fields(folder / f"en-{language}.tsv", 2, "English, translation"))
        return [there for _, there in lines], [english for english, _ in lines]
    pairs = [pair for pair in Corpus([held_out]) if pair.language == language]
    return [pair.translation for pair in pairs], [pair.english for pair in pairs]
