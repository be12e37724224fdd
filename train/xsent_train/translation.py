"""An encoder as the start of a translator into English, beside the same translator from nothing (wei2020, table 4).

A row is one training: a language, and whether its encoder starts from a checkpoint. Both rows of a language see the
same pairs in the same order. A row that starts from a checkpoint trains the decoder alone first, then all of it.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError
from torch import Tensor
from tqdm import tqdm

from xsent.errors import DataError, XsentError, require_extra
from xsent.files.atomic import atomic_file, remove_folder
from xsent.files.text import read_fields
from xsent_train.checkpoint import (
    Checkpoint,
    identify,
    load_checkpoint,
    load_optimizer,
    optimizer_state,
    restore_optimizer,
    save_checkpoint,
    stage_folders,
)
from xsent_train.data.batches import Batch, TrainingData
from xsent_train.data.corpus import chunks
from xsent_train.devices import keep_freed_memory, launch, precision
from xsent_train.model import ModelConfig
from xsent_train.recipe import LAYER_SHAPE, Align, Basics, Objectives, StageConfig, first_mistake, read_toml
from xsent_train.stage_loop import interruption, schedule
from xsent_train.teacher.bert import piece_counts
from xsent_train.tokens import LAST, to_tokens
from xsent_train.trainer import differences, open_start
from xsent_train.translator import Translator

Figures = dict[str, Any]  # of a row, by heading

NAME = "translation"  # of the checkpoints
RANDOM, STARTED = "random", "start"  # the rows of a language
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


class TranslatorTraining:
    """A row, in a folder of its own; called again, it resumes."""

    def __init__(
        self, recipe: TranslationRecipe, files: Sequence[Path], out: Path, kind: str, start: Checkpoint | None
    ) -> None:
        """Prepare the data of a recipe's first language. The vocabulary is that of `start`, or else a new one.

        Raises DataError if the language has no pairs, or the folder belongs to other data.
        """
        language, threads = recipe.languages[0], torch.get_num_threads()
        self.run = out / f"{language}-{kind}"
        self._recipe, self._kind, self._start = recipe, kind, start
        self._identity = identify(start.path)[1] if start else None
        self._fabric = launch(1)
        self._mixed = precision(recipe.precision) == "bf16-mixed"
        vocabulary = start.tokenizer if start else None
        self._data = TrainingData(
            recipe, files, self.run, self._fabric, threads=threads, prepared=out / language, vocabulary=vocabulary
        )

    def train(self) -> Path:
        """Train to the end; returns the last checkpoint.

        Ctrl-C saves the state, and is raised. Raises DataError if the row was begun with other settings, XsentError if
        the loss is no longer a number.
        """
        recipe, saved = self._recipe, self._saved()
        if saved is not None and saved.step == recipe.steps:
            return saved.path
        model = self._translator(saved)
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)
        if saved is not None:
            restore_optimizer(model, optimizer, load_optimizer(saved.path))
        drawn = {name: getattr(recipe, name) for name in ("num_layers", "steps", "batch_size", "max_tokens")}
        stage = StageConfig(name=NAME, order="length", objectives=Objectives(align=Align()), **drawn)
        before, written = saved.step if saved else 0, time.monotonic()
        bar = tqdm(total=recipe.steps, initial=before, desc=self.run.name, unit="step", disable=None)
        with interruption() as interrupted, bar:
            for done, batch in enumerate(self._data.draw(0, stage).since(before), before + 1):
                loss = self._step(model, optimizer, done - 1, batch)
                bar.update()
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                late = time.monotonic() - written > 60 * recipe.checkpoint_minutes
                if done == recipe.steps or late or interrupted.is_set():
                    path, written = self._save(model, optimizer, done), time.monotonic()
                if interrupted.is_set():
                    raise KeyboardInterrupt
        return path

    def _translator(self, saved: Checkpoint | None) -> Translator:
        """The model as it starts, or as it was saved."""
        recipe, pieces = self._recipe, len(self._data.processor)
        counts = torch.from_numpy(piece_counts(self._data.store, pieces)[0])
        counts[: LAST + 1] = recipe.least
        kept = (counts >= recipe.least).nonzero()[:, 0]
        shape = {name: getattr(recipe, name) for name in ("dim", "num_layers", "dropout", *LAYER_SHAPE)}
        torch.manual_seed(recipe.seed)
        started = self._kind == STARTED
        model = Translator(ModelConfig(pieces, **shape), recipe.decoder_layers, kept, with_vector=started)
        if saved is not None:
            model.load_state_dict(saved.weights)
        elif started and self._start is not None:
            known = self._start.load_encoder().state_dict()  # with upper layers and readouts, which a translator lacks
            model.encoder.load_state_dict({name: known[name] for name in model.encoder.state_dict()})
        return model.to(self._fabric.device).train()

    def _step(self, model: Translator, optimizer: torch.optim.Optimizer, step: int, batch: Batch) -> float:
        recipe, device = self._recipe, self._fabric.device
        torch.manual_seed((recipe.seed << 32) + step)  # dropout as a function of the step: a resume needs no state
        learns = self._kind == RANDOM or step >= recipe.frozen_steps
        model.encoder.requires_grad_(learns).train(learns)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * schedule(step, recipe.steps, recipe.warmup)
        english, source = (tokens.to(device) for tokens in batch.hiding.sides)
        with torch.autocast(device.type, torch.bfloat16, enabled=self._mixed):
            loss: Tensor = model(source, english, recipe.smoothing)
        if not torch.isfinite(loss):
            raise XsentError(f"{self.run.name}, step {step}: the loss is no longer a number; lower learning_rate")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        return float(loss.detach())

    def _saved(self) -> Checkpoint | None:
        """The last checkpoint. Raises DataError if it was trained with other settings."""
        if not (folders := stage_folders(self.run, NAME)):
            return None
        checkpoint = load_checkpoint(folders[-1])
        same = checkpoint.about["start"] == self._identity
        if changed := differences(checkpoint.about["recipe"], self._recipe) if same else "another start":
            raise DataError(f"{checkpoint.path} was trained with other settings ({changed}); name another --out")
        return checkpoint

    def _save(self, model: Translator, optimizer: torch.optim.Optimizer, step: int) -> Path:
        """Write a checkpoint, whose encoder is like that of any other, and remove the older ones."""
        recipe, prepared = self._recipe, self._data.prepared
        path = self.run / "checkpoints" / f"{NAME}-{step:07d}"
        about = {
            "name": f"{recipe.name}-{self.run.name}",
            "languages": ["en", *recipe.languages],
            "licence": recipe.licence,
            "attribution": list(recipe.attribution),
            "model": asdict(model.encoder.config),
            "step": step,
            "recipe": recipe.model_dump(mode="json"),
            "start": self._identity,
            "preparation_key": prepared.store.key,
        }
        state = optimizer_state(model, optimizer) if step < recipe.steps else None
        save_checkpoint(path, about, model.state_dict(), state, [prepared.tokenizer, prepared.validation])
        for older in stage_folders(self.run, NAME)[:-1]:
            remove_folder(older)
        return path

    def translations(self, sentences: Sequence[str]) -> Sequence[str]:
        """Train, and translate sentences; the translations lie beside the checkpoint too."""
        recipe, processor = self._recipe, self._data.processor
        model = self._translator(load_checkpoint(self.train())).eval()
        found: list[str] = []
        for part in tqdm(list(chunks(processor.encode(list(sentences)), AT_ONCE)), desc="beam", disable=None):
            source = to_tokens(part, model.encoder.config.max_length).to(self._fabric.device)
            with torch.autocast(self._fabric.device.type, torch.bfloat16, enabled=self._mixed):
                lines = model.translate(source, width=recipe.width, penalty=recipe.penalty)
            found += [" ".join(processor.decode(line).split()) for line in lines]
        with atomic_file(self.run / "translations.txt") as out:
            out.write("".join(f"{line}\n" for line in found).encode())
        return found


def compare(
    recipe: TranslationRecipe, files: Sequence[Path], out: Path, tests: Path, *, threads: int, start: Path | None
) -> list[Figures]:
    """Train both rows of every language, and give their BLEU and chrF on `en-XX.tsv`, by bootstrap, for a table.

    Scores are lower-case, as the pieces are. Without a start there are random rows alone. Raises DataError if the start
    is of another shape than the recipe, or a test is missing.
    """
    with require_extra("translate"):
        import sacrebleu  # noqa: F401  missing, it is missed before the hours of training
    torch.set_num_threads(threads)
    keep_freed_memory()
    opened = open_start(recipe, start) if start else None
    if opened is not None and (has := opened.config.num_layers) < recipe.num_layers:
        raise DataError(f"{start}: has {has} layers, the recipe's translator {recipe.num_layers}; lower num_layers")
    pairs = {code: list(read_fields(tests / f"en-{code}.tsv", 2, "English, translation")) for code in recipe.languages}
    if empty := [code for code, lines in pairs.items() if not lines]:
        raise DataError(f"{tests / f'en-{empty[0]}.tsv'}: empty; expected lines of English, translation")
    kinds = [RANDOM, STARTED] if opened else [RANDOM]
    rows = {}  # all before the first is trained: what cannot be used is refused at once
    for code in pairs:
        one = recipe.model_copy(update={"languages": (code,)})
        rows[code] = [TranslatorTraining(one, files, out, kind, opened) for kind in kinds]
    table: list[Figures] = []
    for code, lines in pairs.items():
        found = [(row.run.name, row.translations([there for _, there in lines])) for row in rows[code]]
        for kind, scores in zip(kinds, scored(found, [english for english, _ in lines]), strict=True):
            paper = recipe.paper.get(code, {}).get(kind, "")
            table.append({"direction": f"{code}→en", "encoder": kind, **scores, "paper BLEU": paper})
    return table


def scored(systems: Sequence[tuple[str, Sequence[str]]], references: Sequence[str]) -> Iterator[Figures]:
    """BLEU and chrF of systems, each with half of its interval, by the same draws of sentences for all."""
    from sacrebleu import BLEU, CHRF
    from sacrebleu.significance import PairedTest

    metrics = {"BLEU": BLEU(lowercase=True), "chrF": CHRF(lowercase=True)}
    results: Mapping[str, Any] = PairedTest(list(systems), metrics, [references], "bs")()[1]
    for bleu, chrf in zip(results["BLEU"], results["chrF2"], strict=True):
        numbers = {"BLEU": bleu.score, "BLEU ±": bleu.ci, "chrF": chrf.score, "chrF ±": chrf.ci}
        yield {heading: float(number) for heading, number in numbers.items()}
