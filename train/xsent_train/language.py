"""Teach a trained encoder a new language, and measure what this gains and what the old languages lose."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from xsent.bundle import file_digest
from xsent.errors import DataError
from xsent.evaluation.translation import finds_gold, languages_of
from xsent.files.atomic import atomic_file, read_json, to_json
from xsent.similarity import Floats, unit_rows
from xsent_train.checkpoint import (
    TABLE,
    TOKENIZER,
    VALIDATION,
    Checkpoint,
    CheckpointEncoder,
    load_checkpoint,
    save_checkpoint,
)
from xsent_train.comparison import Comparison, Points, tatoeba_points
from xsent_train.data.corpus import Corpus, Pair, write_pairs
from xsent_train.data.preparation import NewLanguage, read_new_language
from xsent_train.data.sampling import evenly
from xsent_train.data.vocabulary import ModelProto, grow_vocabulary, is_text, open_model, read_model
from xsent_train.derive import identify, model_path, open_checkpoint, with_table
from xsent_train.fitting import ridge
from xsent_train.objectives import ContrastiveDistil, Objectives
from xsent_train.recipe import LAYER_SHAPE, CorpusConfig, Recipe, StageConfig
from xsent_train.stage_loop import Validation
from xsent_train.teacher.joined import Teachers
from xsent_train.teacher.open import Teacher, open_teacher
from xsent_train.trainer import Trainer

logger = logging.getLogger(__name__)

CLAIM, TEXT, OLD_PAIRS = "adding.json", "text.tsv", "old-pairs.tsv"
HELD_OUT_SHARE = 0.03  # even with few pairs, enough to measure half a point of P@1
EPOCHS, MOST_SEEN = 10, 2_000_000
SMALL = 0.02  # standard deviation of a row without a starting point, as in a new encoder
FEWEST = 8  # minimum sentences per number of the teachers' vectors, to fit the regression on
MOST = 20_000  # maximum sentences; more hardly help


@dataclass(frozen=True)
class Addition:
    """A language to add, and the model to add it to."""

    model: Path  # a bundle or a checkpoint
    pairs: Path  # a file of text in the new language and in old ones, which must be tokenised as before
    language: str  # code of the new language
    out: Path  # folder of the run
    pieces: int = 8000  # pieces of the new language's own vocabulary
    lines_seen: int | None = None  # lines to train on, counting repetitions; None: by how many there are
    licence: str | None = None  # licence of the new weights; None: the model's
    teachers: tuple[Path, ...] = ()  # models that know the language, for sentences without translation


class OwnTeacher:
    """Teaches the new rows the encoder's own English vectors, see `TargetSource`.

    For a sentence without translation, it estimates them from other teachers.
    """

    def __init__(self, encoder: Teacher, teachers: Sequence[Teacher], known: Sequence[str]) -> None:
        """Fits the map from the teachers to the encoder on `known`, sentences in languages that all of them know."""
        self.dim = encoder.dim
        self._encoder = encoder
        self._teachers = teachers
        self._known = known

    @property
    def identity(self) -> str:
        """Identity of its vectors."""
        return "-".join(teacher.identity for teacher in (self._encoder, *self._teachers))

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """The encoder's vectors of the English sides, or an estimate of them for plain sentences [n, dim]."""
        vectors = np.empty((len(pairs), self.dim), np.float32)
        plain = np.array([bool(self._teachers) and _is_plain(pair) for pair in pairs], np.bool_)
        if not plain.all():
            vectors[~plain] = self._encoder.targets(list(compress(pairs, ~plain)))
        if plain.any():
            joined = self._joined([pair.english for pair in compress(pairs, plain)])
            vectors[plain] = unit_rows((joined @ self._matrix).numpy())
        return vectors

    @cached_property
    def _matrix(self) -> Tensor:
        known = [self._known[number] for number in evenly(len(self._known), MOST)]
        return ridge(self._joined(known), torch.from_numpy(self._encoder.encode(known)))

    def _joined(self, sentences: list[str]) -> Tensor:
        """The teachers' vectors of sentences and a one, so that the regression can fit the difference of means."""
        ones = np.ones((len(sentences), 1), np.float32)
        return torch.from_numpy(np.hstack([*(teacher.encode(sentences) for teacher in self._teachers), ones]))


class Untranslated(NamedTuple):
    """Held-out sentences of the new language without translation."""

    sentences: list[str]
    targets: Floats  # estimates of the encoder's vectors from those of the teachers [n, dim]


def add_language(addition: Addition, *, threads: int) -> tuple[Checkpoint, Checkpoint, Untranslated]:
    """Add a language, or resume adding it.

    The run's folder gets `grown` (with rows for the new pieces), `training`, and finally `checkpoint`. Returns the
    encoder before and after, and the sentences that `compare_languages` measures on besides the held-out pairs. Raises
    DataError or BundleError if something cannot be used.
    """
    known, model = identify(addition.model)
    if addition.language in known:
        raise DataError(f"{addition.model}: already knows {addition.language!r} (its languages: {', '.join(known)})")
    if not addition.pairs.is_file():
        raise DataError(f"{addition.pairs}: no such file; expected lines of source, language, English, translation")
    teachers = [open_teacher(model_path(path)) for path in addition.teachers]
    new = _read(addition, known, teachers)
    _claim(addition, {"model": model, "teachers": " ".join(teacher.identity for teacher in teachers)})
    before = open_checkpoint(addition.model)
    grown = _grow(addition, before, new, threads)
    teacher = OwnTeacher(open_teacher(addition.model), teachers, _readable(new, teachers))
    trained = _train(addition, teacher, grown, new.found, len(before.weights[TABLE]), threads)
    files = [path for path in (addition.out / OLD_PAIRS, trained.validation) if path.stat().st_size]
    held_out = list(Corpus(files))
    after = _finish(addition, before, grown, trained, [pair for pair in held_out if not _is_plain(pair)])
    own = [pair for pair in held_out if teachers and pair.language == addition.language and _is_plain(pair)]
    return before, after, Untranslated([pair.english for pair in own], teacher.targets(own))


def _read(addition: Addition, known: Sequence[str], teachers: Sequence[Teacher]) -> NewLanguage:
    """Read the text. Raises DataError if it is unusable, or has too little in languages that the teachers know."""
    path, language = addition.pairs, addition.language
    logger.info("reading %s", path)
    new = read_new_language(path, language, known, HELD_OUT_SHARE)
    if new.plain and not teachers:
        remedy = "name a model that knows the language with --teacher, or remove them"
        raise DataError(f"{path}: {new.plain:,} sentences in {language!r} have no translation; {remedy}")
    for teacher in teachers:
        if teacher.languages and language not in teacher.languages:
            raise DataError(f"teacher {teacher.path}: does not know {language!r}, only {', '.join(teacher.languages)}")
    count, needed = len(_readable(new, teachers)), FEWEST * sum(teacher.dim for teacher in teachers)
    if new.plain and count < needed:
        raise DataError(
            f"{path}: only {count:,} sentences in languages that the model and its teachers know, such as English; add "
            f"more, because it takes {needed:,} to map the teachers' vectors to the model's"
        )
    return new


def _readable(new: NewLanguage, teachers: Sequence[Teacher]) -> list[str]:
    """Sentences in languages that the encoder and all teachers know."""
    known = [set(teacher.languages) for teacher in teachers if teacher.languages]
    return [sentence.english for sentence in new.kept if all(sentence.language in codes for codes in known)]


def _claim(addition: Addition, origin: Mapping[str, str]) -> None:
    """Create the run's folder, or check that it is this run's."""
    claim = addition.out / CLAIM
    language, pieces = addition.language, str(addition.pieces)
    about = {**origin, "pairs": file_digest(addition.pairs)[:16], "language": language, "pieces": pieces}
    if claim.is_file():
        saved = read_json(claim, "name another --out")
        if changed := [name for name, value in about.items() if saved.get(name, "") != value]:
            raise DataError(f"{addition.out}: was started with other {' and '.join(changed)}; name another --out")
        return
    if addition.out.exists() and (not addition.out.is_dir() or any(addition.out.iterdir())):
        raise DataError(f"{addition.out}: is not empty and not a run; name a new folder with --out")
    addition.out.mkdir(parents=True, exist_ok=True)
    with atomic_file(claim) as file:
        file.write(to_json(about))


def _grow(addition: Addition, before: Checkpoint, new: NewLanguage, threads: int) -> Checkpoint:
    """The encoder with rows for the new pieces, not yet trained."""
    folder, tokenizer = addition.out / "grown", addition.out / TOKENIZER
    if not folder.exists():
        write_pairs(addition.out / OLD_PAIRS, new.held_out)
        text = (pair for pair in Corpus([addition.pairs]) if pair.language == addition.language)
        # Plain sentences on both sides, see `_is_plain`, because the training reads the second.
        write_pairs(addition.out / TEXT, (pair._replace(translation=pair.translation or pair.english) for pair in text))
        logger.info("growing the vocabulary")
        kept = (sentence.english for sentence in new.kept)
        grow_vocabulary(before.tokenizer, iter(new.text), tokenizer, size=addition.pieces, keep=kept, threads=threads)
        grow_checkpoint(before, tokenizer, addition.language, folder)
    return load_checkpoint(folder)


def grow_checkpoint(before: Checkpoint, tokenizer: Path, language: str, out: Path) -> Path:
    """Give a checkpoint's table a row for each piece that `grow_vocabulary` added to its vocabulary.

    The row of a new piece starts as the mean of the rows of the pieces that it was cut into before; measured, this is
    better than their sum and than noise. A piece that was spelled in bytes starts as small noise, because bytes have no
    meaning. Raises DataError if the vocabulary, a file named as in a checkpoint, does not extend the checkpoint's.
    """
    old, new = read_model(before.tokenizer), read_model(tokenizer)
    if not new.startswith(old):
        raise DataError(f"{tokenizer}: does not extend {before.tokenizer}; extend that one")
    table = before.weights[TABLE]
    languages = list(dict.fromkeys([*before.languages, language]))
    grown = with_table(before, torch.cat([table, first_rows(table, old, new)]), languages)
    save_checkpoint(out, grown.about, grown.weights, None, [tokenizer, *filter(Path.exists, [before.validation])])
    return out


def first_rows(table: Tensor, old: bytes, new: bytes) -> Tensor:
    """Rows for the pieces that only the grown model has, see `grow_checkpoint` [V' - V, D]."""
    spaces = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}  # no spaces but a piece's own
    cutter = open_model(old + ModelProto(normalizer_spec=spaces).SerializeToString())
    grown = open_model(new)
    rows = torch.empty(len(grown) - len(table), table.shape[1])
    rows.normal_(std=SMALL, generator=torch.Generator().manual_seed(1))
    for i in range(len(table), len(grown)):
        parts = cutter.encode(grown.id_to_piece(i))
        if parts and all(is_text(cutter, part) for part in parts):
            rows[i - len(table)] = table[parts].mean(dim=0)
    return rows


def _train(
    addition: Addition, teacher: OwnTeacher, grown: Checkpoint, count: int, old: int, threads: int
) -> Checkpoint:
    """Train the new rows of the table; returns the checkpoint."""
    shape = {name: getattr(grown.config, name) for name in ("dim", *LAYER_SHAPE)}
    batch = min(1024, max(32, count // 64))
    steps = max((addition.lines_seen or min(EPOCHS * count, MOST_SEEN)) // batch, 1)
    stage = StageConfig(
        name="table",
        num_layers=grown.config.num_layers,
        steps=steps,
        objectives=Objectives(contrastive_distil=ContrastiveDistil(ignore_above=0.9, english=False)),
        batch_size=batch,
        window=16,
        learning_rate=0.0,
        table_learning_rate=1e-2,
        frozen_rows=old,
        warmup=min(100, steps // 10),
        layer_prefixes=grown.config.depths,
        exit_weight=0.25,
        clip=0.0,
    )
    corpus = CorpusConfig(files=(TEXT,), validation_share=HELD_OUT_SHARE)
    shape["readouts"] = bool(grown.config.depths)
    recipe = Recipe(name=addition.language, languages=(addition.language,), corpus=corpus, stages=(stage,), **shape)
    run, teachers = addition.out / "training", Teachers(source=teacher)
    trainer = Trainer(recipe, addition.out, run, threads=threads, teacher=teachers, start=grown.path)
    return load_checkpoint(trainer.train())


def _is_plain(pair: Pair) -> bool:
    """Whether a pair of the run is a sentence without translation, which is on both sides."""
    return pair.english == pair.translation


def _finish(
    addition: Addition, before: Checkpoint, grown: Checkpoint, trained: Checkpoint, pairs: list[Pair]
) -> Checkpoint:
    """Write the result with its held-out pairs, starting with those that the checkpoint came with."""
    if before.validation.exists():
        own = list(Corpus([before.validation]))
        languages = {pair.language for pair in own}
        pairs = [*own, *(pair for pair in pairs if pair.language not in languages)]
    write_pairs(addition.out / VALIDATION, pairs)
    kept = [grown.tokenizer, *([addition.out / VALIDATION] if pairs else [])]
    recipe, stages = before.about.get("recipe", {}), trained.about["recipe"]["stages"]
    about = {
        "name": f"{before.name}-{addition.language}",
        "languages": grown.languages,
        "licence": addition.licence or before.licence,
        "attribution": trained.about["attribution"],
        "space": before.about.get("space"),
        "precision": before.about.get("precision"),
        "model": asdict(grown.config),
        "step": trained.step,
        "recipe": {**recipe, "stages": [*recipe.get("stages", []), {**stages[0], "name": addition.language}]},
    }
    weights = {**grown.weights, TABLE: trained.weights[TABLE]}
    path = addition.out / "checkpoint"
    save_checkpoint(path, about, weights, None, kept)
    return load_checkpoint(path)


@dataclass(frozen=True)
class LanguageComparison(Comparison):
    """Every language before and after a new one.

    The tests: `held_out` (a translation finds its English among that of all languages); `tatoeba`; and for the new
    language, `teacher` (a sentence without translation finds its target among the others').
    """

    language: str  # the new one
    pairs: Mapping[str, int]  # held-out pairs by language
    sentences: int  # held-out sentences of the old languages, including English
    same_pieces: int  # how many of them have the same pieces as before

    def notes(self) -> list[str]:
        """The facts that are not in the rows, one per line."""
        pairs = ", ".join(f"{language} {count:,}" for language, count in self.pairs.items())
        notes = [f"held-out pairs: {pairs}"] if pairs else []
        notes.append(
            f"held-out sentences of the old languages: {self.sentences:,}; with the same pieces as before: "
            f"{self.same_pieces:,} ({100 * self.same_pieces / max(self.sentences, 1):.2f}%), and so the same vectors"
        )
        measured = {language for _, language, _ in self.before}
        if measured <= {self.language}:
            notes.append("no old language was measured; add pairs in them to PAIRS, or name test files with --tatoeba")
        if self.language not in measured:
            notes.append(
                f"{self.language} was not measured: PAIRS has too few lines in it; name test files with --tatoeba"
            )
        return notes

    def failures(self) -> list[str]:
        """Old languages that lost too much, and a new one that gained nothing."""
        gains = [change for (_, language, _), change in self.changes.items() if language == self.language]
        return self.losses(besides=self.language) + (
            [f"{self.language} gained nothing"] if gains and max(gains) <= 0 else []
        )


def compare_languages(
    before: Checkpoint, after: Checkpoint, untranslated: Untranslated, tests: Path | None
) -> LanguageComparison:
    """Measure an encoder before and after it learnt a language, the last in its list.

    Both run in the same way, so that only the training makes a difference. The tests are the held-out pairs of `after`,
    the new language's sentences without translation, and files of `xsent.evaluation.translation.tatoeba`. Raises
    DataError if one cannot be read.
    """
    new = after.languages[-1]
    pairs = list(Corpus([after.validation] if after.validation.exists() else []))
    counts = Counter(pair.language for pair in pairs)
    old, now = (_measure(checkpoint, after, untranslated, tests) for checkpoint in (before, after))
    sentences = list(dict.fromkeys(pair.english for pair in pairs))
    sentences += dict.fromkeys(pair.translation for pair in pairs if pair.language != new)
    cuts = [checkpoint.load_tokenizer().encode(sentences) for checkpoint in (before, after)]
    same = sum(one == other for one, other in zip(*cuts, strict=True))
    return LanguageComparison(after.path, old, now, new, counts, len(sentences), same)


def _measure(checkpoint: Checkpoint, after: Checkpoint, untranslated: Untranslated, tests: Path | None) -> Points:
    found: Points = {}
    encoder, layers = CheckpointEncoder(checkpoint), checkpoint.config.num_layers
    if after.validation.exists():
        p1 = Validation(after.validation, checkpoint.tokenizer).measure(checkpoint.load_encoder())["p1"]
        found |= {("held_out", language, layers): points for language, points in p1.items()}
    if sentences := untranslated.sentences:
        hits = finds_gold(encoder.encode(sentences), untranslated.targets, range(len(sentences)))
        found["teacher", after.languages[-1], layers] = 100 * float(hits.mean())
    languages = languages_of(CheckpointEncoder(after), tests) if tests is not None else None
    return found | tatoeba_points(encoder, layers, tests, languages)
