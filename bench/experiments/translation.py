"""An encoder as the start of a translator into English, beside the same translator from nothing (wei2020, table 4).

A translator is an encoder, a decoder over its token states, and beam search (wei2020, sections 3.3 and 4.2). The
decoder reads and predicts the rows of the encoder's token table whose pieces the training's targets have. In an encoder
that was trained before, the cosines of a sentence's vector with these rows are added to each prediction.

A row is one training: a language, and whether its encoder starts from a checkpoint. Both rows of a language see the
same pairs in the same order. A row that starts from a checkpoint trains only the decoder first, then all of it:
python bench/experiments/translation.py DATA --tatoeba DATA/eval/tatoeba --out OUT --start BUNDLE

Shapes: B sentences, S longest source, T longest target, N target tokens, W beams, D dimensions, K rows.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import torch.nn.functional as F
import typer
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, ValidationError
from torch import Tensor, nn

from xsent.backends.threads import available_cpus
from xsent.cli.terminal import format_table, log_to_stderr, one_line_errors
from xsent.errors import DataError, XsentError, require_extra
from xsent.files.atomic import atomic_file, read_json, to_json
from xsent.files.text import read_fields
from xsent.progress import Progress
from xsent_train.checkpoint import Checkpoint
from xsent_train.data.batches import Batch, TrainingData
from xsent_train.data.corpus import chunks
from xsent_train.derive import identify, open_start
from xsent_train.devices import keep_freed_memory, launch, precision, seed_device
from xsent_train.model import ACTIVATIONS, Encoder, ModelConfig
from xsent_train.recipe import Recipe, first_mistake, parse_recipe, read_toml
from xsent_train.requirements import differences
from xsent_train.settings import Settings
from xsent_train.stage_loop import schedule
from xsent_train.teacher.bert import piece_counts
from xsent_train.tokens import FIRST, FRAME, LAST, UNK, Tokens, group_of, to_tokens
from xsent_train.trainer import model_config

logger = logging.getLogger(__name__)

Figures = dict[str, Any]  # per row, by heading

RANDOM, STARTED = "random", "start"  # the rows of a language
AT_ONCE = 32  # sentences translated at a time
RECIPE = Path(__file__).with_name("translation.toml")


class TranslatorConfig(Settings):
    """The table `translator` of a recipe, whose only stage says how encoder and decoder are trained together."""

    decoder_layers: PositiveInt = 2
    frozen_steps: NonNegativeInt = 0  # first steps that leave a started encoder unchanged
    least: PositiveInt = 5  # how often a piece must occur in the English text for the decoder to know it
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # share of a label that is spread over all pieces
    width: PositiveInt = 5  # of the beam
    penalty: NonNegativeFloat = 1.0  # a log probability is divided by its length to this power
    paper: Mapping[str, Mapping[str, float]] = {}  # its BLEU by language and row


def load_translation_recipe(path: Path) -> tuple[Recipe, TranslatorConfig]:
    """Read a recipe of translators. Raises DataError with the first mistake in it."""
    raw = read_toml(path)
    try:
        settings = TranslatorConfig.model_validate(raw.pop("translator", {}))
    except ValidationError as error:
        raise DataError(f"{path}: translator: {first_mistake(error)}") from error
    recipe = parse_recipe(raw, path)
    if len(recipe.stages) > 1:
        raise DataError(f"{path}: a translator is trained in one [[stage]]; remove the others")
    return recipe, settings


class Source(NamedTuple):
    """What the decoder sees of its source sentences."""

    states: Tensor  # of their tokens [B, S, D]
    padding: Tensor  # true where there is no token [B, S]
    similar: Tensor  # added to all predictions [B, K]


class Translator(nn.Module):
    """An encoder and a decoder that share the encoder's table."""

    kept: Tensor

    def __init__(self, config: ModelConfig, num_layers: int, kept: Tensor, *, with_vector: bool) -> None:
        """Start at random, with a decoder of `num_layers`.

        The decoder knows the pieces `kept`, in ascending order, [K]; those up to LAST are among them. `with_vector`
        adds the cosines of the sentence's vector.
        """
        super().__init__()
        self.encoder = Encoder(config)
        self.register_buffer("kept", kept)
        self.positions = nn.Parameter(torch.zeros(config.max_length + FRAME, config.dim))
        self.norm = nn.LayerNorm(config.dim)
        shape = config.dim, config.num_heads, config.ffn_dim, config.dropout, ACTIVATIONS[config.activation]
        layer = nn.TransformerDecoderLayer(*shape, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, num_layers)
        for parameter in self.decoder.parameters():  # the layers are copies of one
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
        self.gain = nn.Parameter(torch.tensor(float(with_vector)), requires_grad=with_vector)

    @property
    def rows(self) -> Tensor:
        """The rows of the table that the decoder knows [K, D]."""
        return F.embedding(self.kept, self.encoder.table.weight)

    def places(self, pieces: Tensor) -> Tensor:
        """The rows of pieces; UNK's for those that the decoder does not know."""
        places = torch.searchsorted(self.kept, pieces).clamp(max=len(self.kept) - 1)
        return places.where(self.kept[places] == pieces, UNK)

    def forward(self, source: Tokens, target: Tokens, smoothing: float) -> Tensor:
        """The mean cross-entropy of the targets' tokens, with label smoothing."""
        rows, seen = self.rows, self.read(source)
        framed = target.framed(FIRST, LAST)
        group = group_of(framed.lengths)
        padded = framed.ids.new_zeros(group.shape)
        padded[group.where] = self.places(framed.ids)
        known = torch.arange(group.shape[1] - 1, device=padded.device) < (framed.lengths - 1)[:, None]
        states = self.decode(padded[:, :-1], seen, rows)[known]  # [N, D]
        logits = states @ rows.T + seen.similar[known.nonzero()[:, 0]]
        return F.cross_entropy(logits.float(), padded[:, 1:][known], label_smoothing=smoothing)

    def read(self, source: Tokens) -> Source:
        """Encode sentences."""
        framed = self.encoder.framed(source)
        states = self.encoder.states(framed)[-1]
        group = group_of(framed.lengths)
        padded = states.new_zeros(*group.shape, states.shape[1])
        padded[group.where] = states
        padding = torch.arange(group.shape[1], device=states.device) >= framed.lengths[:, None]
        vectors = F.normalize(self.encoder.mean(states, framed), dim=1)
        return Source(padded, padding, self.gain * (vectors @ F.normalize(self.rows, dim=1).T))

    def decode(self, target: Tensor, source: Source, rows: Tensor) -> Tensor:
        """The states [B, T, D] after each token of padded targets [B, T]; padding is at the end."""
        length = target.shape[1]
        x = self.norm(F.embedding(target, rows) + self.positions[:length])
        x = F.dropout(x, self.encoder.config.dropout, self.training)
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        states: Tensor = self.decoder(
            x, source.states, tgt_mask=future, tgt_is_causal=True, memory_key_padding_mask=source.padding
        )
        return states

    @torch.inference_mode()
    def translate(self, source: Tokens, *, width: int, penalty: float) -> list[list[int]]:
        """The pieces of the translations of sentences, by beam search; at most 1.5 times as long and 10 more."""
        rows = self.rows
        seen = Source(*(part.repeat_interleave(width, dim=0) for part in self.read(source)))  # a row for each beam

        def scores(prefixes: Tensor) -> Tensor:
            states = self.decode(prefixes.flatten(0, 1).to(rows.device), seen, rows)[:, -1]
            logits = (states @ rows.T + seen.similar).float()
            logits[:, :LAST] = -torch.inf  # special tokens
            return logits.log_softmax(dim=1).view(*prefixes.shape[:2], -1).cpu()

        longest = int(1.5 * int(source.lengths.max())) + 10
        most = min(longest, len(self.positions) - 1)
        found = beam_search(scores, len(source.lengths), width=width, most=most, penalty=penalty)
        return [self.kept[sentence.to(rows.device)].tolist() for sentence in found]


def beam_search(
    scores: Callable[[Tensor], Tensor], sentences: int, *, width: int, most: int, penalty: float
) -> list[Tensor]:
    """The best token sequence of each sentence, without the end.

    `scores` gives the log probabilities [B, W, K] after prefixes [B, W, T] that begin with FIRST; LAST ends a sequence.
    A sequence of n tokens, its end among them, is worth its log probability / n^penalty. The search of a sentence ends
    when `width` sequences have ended, or at `most` tokens.
    """
    prefixes = torch.full((sentences, width, 1), FIRST)
    totals = torch.full((sentences, width), -torch.inf)
    totals[:, 0] = 0.0  # all beams are still equal
    ended: list[list[tuple[float, Tensor]]] = [[] for _ in range(sentences)]
    for length in range(1, most + 1):
        following = scores(prefixes)
        best, where = (totals[:, :, None] + following).flatten(1).topk(2 * width)  # [B, 2W]: half of them may end
        beams, pieces = where // following.shape[2], where % following.shape[2]
        ends = pieces == LAST
        for i, place in (ends & best.isfinite())[:, :width].nonzero().tolist():
            if len(ended[i]) < width:
                ended[i].append((float(best[i, place]) / length**penalty, prefixes[i, beams[i, place], 1:]))
        if all(len(found) == width for found in ended):
            break
        going = ends.int().argsort(dim=1, stable=True)[:, :width]  # the best that have not ended
        totals, beams, pieces = (part.gather(1, going) for part in (best, beams, pieces))
        kept = prefixes.gather(1, beams[:, :, None].expand(-1, -1, length))
        prefixes = torch.cat([kept, pieces[:, :, None]], dim=2)
    return [max(found, key=itemgetter(0))[1] if found else prefixes[i, 0, 1:] for i, found in enumerate(ended)]


class TranslatorTraining:
    """A row, in its own folder; its translations are kept there."""

    def __init__(
        self,
        recipe: Recipe,
        settings: TranslatorConfig,
        files: Sequence[Path],
        out: Path,
        kind: str,
        start: Checkpoint | None,
    ) -> None:
        """Prepare the data of a recipe's first language. The vocabulary is that of `start`, or else a new one.

        Raises DataError if the language has no pairs, or the folder belongs to other data.
        """
        language, threads = recipe.languages[0], torch.get_num_threads()
        self.run = out / f"{language}-{kind}"
        self._recipe, self._settings, self._kind, self._start = recipe, settings, kind, start
        self._stage = recipe.stages[0]
        self._fabric = launch(1)
        self._mixed = precision(recipe.precision) == "bf16-mixed"
        vocabulary = start.tokenizer if start else None
        self._data = TrainingData(
            recipe, files, self.run, self._fabric, threads=threads, prepared=out / language, vocabulary=vocabulary
        )

    def train(self) -> Translator:
        """Train from start to finish. Raises XsentError if the loss becomes infinite or NaN."""
        stage, model = self._stage, self._translator()
        decay = stage.weight_decay
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=decay, fused=True)
        logger.info("%s", self.run.name)
        with Progress("steps", stage.steps) as progress:
            for step, batch in enumerate(self._data.draw(0, stage).since(0)):
                self._step(model, optimizer, step, batch)
                progress.advance()
        return model.eval()

    def _translator(self) -> Translator:
        """The model as it starts."""
        recipe, pieces = self._recipe, len(self._data.processor)
        counts = torch.from_numpy(piece_counts(self._data.store, pieces)[0])
        counts[: LAST + 1] = self._settings.least
        kept = (counts >= self._settings.least).nonzero()[:, 0]
        torch.manual_seed(recipe.seed)
        started = self._kind == STARTED
        config = model_config(recipe, self._stage, pieces, None)
        model = Translator(config, self._settings.decoder_layers, kept, with_vector=started)
        if started and self._start is not None:
            known = self._start.load_encoder().state_dict()  # with upper layers and readouts, which a translator lacks
            model.encoder.load_state_dict({name: known[name] for name in model.encoder.state_dict()})
        return model.to(self._fabric.device).train()

    def _step(self, model: Translator, optimizer: torch.optim.Optimizer, step: int, batch: Batch) -> None:
        stage, settings, device = self._stage, self._settings, self._fabric.device
        seed_device(device, (self._recipe.seed << 32) + step)  # dropout as a function of the step, for both rows
        learns = self._kind == RANDOM or step >= settings.frozen_steps
        model.encoder.requires_grad_(learns).train(learns)
        for group in optimizer.param_groups:
            group["lr"] = stage.learning_rate * schedule(step, stage.steps, stage.warmup)
        english, source = (tokens.to(device) for tokens in batch.hiding.sides)
        with torch.autocast(device.type, torch.bfloat16, enabled=self._mixed):
            loss: Tensor = model(source, english, settings.smoothing)
        if not torch.isfinite(loss):
            raise XsentError(f"{self.run.name}, step {step}: the loss is no longer a number; lower learning_rate")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), stage.clip or torch.inf)
        optimizer.step()

    def translations(self, sentences: Sequence[str]) -> Sequence[str]:
        """The translations of sentences; trains the translator first, unless they are there.

        Raises DataError if those that are there are of other settings or sentences.
        """
        file = self.run / "translations.json"
        start = identify(self._start.path)[1] if self._start else None
        if not file.exists():
            settings = {"recipe": self._recipe, "translator": self._settings}
            about = {name: value.model_dump(mode="json") for name, value in settings.items()}
            found = {**about, "start": start, "sentences": sentences, "translations": self._translate(sentences)}
            with atomic_file(file, private=True) as out:
                out.write(to_json(found))
        row = read_json(file, "delete it to repeat the training")
        changed = differences(row["recipe"], self._recipe) or differences(row["translator"], self._settings)
        if not changed and (row["start"], row["sentences"]) != (start, sentences):
            changed = "another start, or other sentences"
        if changed:
            raise DataError(f"{file} was made with other settings ({changed}); choose another --out")
        return list(row["translations"])

    def _translate(self, sentences: Sequence[str]) -> list[str]:
        """Train, and translate sentences."""
        processor, model = self._data.processor, self.train()
        found: list[str] = []
        with Progress("sentences", len(sentences)) as progress:
            for part in chunks(processor.encode(list(sentences)), AT_ONCE):
                source = to_tokens(part, model.encoder.config.max_length).to(self._fabric.device)
                with torch.autocast(self._fabric.device.type, torch.bfloat16, enabled=self._mixed):
                    lines = model.translate(source, width=self._settings.width, penalty=self._settings.penalty)
                found += [" ".join(processor.decode(line).split()) for line in lines]
                progress.advance(len(part))
        return found


def compare(
    recipe: Recipe,
    settings: TranslatorConfig,
    data: Path,
    out: Path,
    tests: Path,
    *,
    threads: int,
    start: Path | None,
) -> list[Figures]:
    """Train both rows of every language, and return their BLEU and chrF on `en-XX.tsv`, by bootstrap, as table rows.

    Scores are lower-case, as the pieces are. Without a start there are only random rows. Raises DataError if the start
    has another shape than the recipe, or a test is missing.
    """
    with require_extra("translate"):
        import sacrebleu  # noqa: F401  fails here, not after hours of training
    torch.set_num_threads(threads)
    keep_freed_memory()
    opened = open_start(recipe, start) if start else None
    wanted = recipe.stages[0].num_layers
    if opened is not None and (has := opened.config.num_layers) < wanted:
        raise DataError(f"{start}: has {has} layers, the recipe's translator {wanted}; lower num_layers")
    pairs = {code: list(read_fields(tests / f"en-{code}.tsv", 2, "English, translation")) for code in recipe.languages}
    if empty := [code for code, lines in pairs.items() if not lines]:
        raise DataError(f"{tests / f'en-{empty[0]}.tsv'}: empty; expected lines of English, translation")
    kinds = [RANDOM, STARTED] if opened else [RANDOM]
    files = recipe.corpus.paths(data)
    rows = {}  # all before the first is trained, so bad input is refused at once
    for code in pairs:
        one = recipe.model_copy(update={"languages": (code,)})
        rows[code] = [TranslatorTraining(one, settings, files, out, kind, opened) for kind in kinds]
    table: list[Figures] = []
    for code, lines in pairs.items():
        found = [(row.run.name, row.translations([there for _, there in lines])) for row in rows[code]]
        for kind, scores in zip(kinds, scored(found, [english for english, _ in lines]), strict=True):
            paper = settings.paper.get(code, {}).get(kind, "")
            table.append({"direction": f"{code}→en", "encoder": kind, **scores, "paper BLEU": paper})
    return table


def scored(systems: Sequence[tuple[str, Sequence[str]]], references: Sequence[str]) -> Iterator[Figures]:
    """BLEU and chrF of systems, each with half of its interval; all share the same draws of sentences."""
    from sacrebleu import BLEU, CHRF
    from sacrebleu.significance import PairedTest

    metrics = {"BLEU": BLEU(lowercase=True), "chrF": CHRF(lowercase=True)}
    results: Mapping[str, Any] = PairedTest(list(systems), metrics, [references], "bs")()[1]
    for bleu, chrf in zip(results["BLEU"], results["chrF2"], strict=True):
        numbers = {"BLEU": bleu.score, "BLEU ±": bleu.ci, "chrF": chrf.score, "chrF ±": chrf.ci}
        yield {heading: float(number) for heading, number in numbers.items()}


@one_line_errors()
def translation(
    data: Annotated[Path, typer.Argument(help="Folder of the recipe's files of pairs.")],
    tatoeba: Annotated[Path, typer.Option(help="Folder of Tatoeba's en-XX.tsv, to measure with.")],
    out: Annotated[Path, typer.Option(help="Folder of all output; a second run resumes in it.")],
    start: Annotated[Path | None, typer.Option(help="Checkpoint or bundle whose encoder is tested.")] = None,
    recipe: Annotated[Path, typer.Option(help="The recipe, a TOML file.")] = RECIPE,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; default: every CPU allowed.")] = None,
) -> None:
    """Train translators into English, with a random encoder and with that of --start, and compare them.

    BLEU and chrF are lower-case; ± is half of a 95% interval. After Ctrl-C, the same command resumes with the
    translator that was interrupted, from its beginning.
    """
    table = compare(
        *load_translation_recipe(recipe), data, out, tatoeba, threads=threads or available_cpus(), start=start
    )
    typer.echo(format_table(table))


def main() -> None:
    """See the module."""
    log_to_stderr()
    typer.run(translation)


if __name__ == "__main__":
    main()
