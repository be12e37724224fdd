"""The options of an export, and the part of a checkpoint that they select.

For fewer languages, a checkpoint loses the pieces that only other languages use. A sentence whose pieces are all kept
is tokenised and encoded exactly as before.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from xsent.clean import remove_format
from xsent.errors import DataError, listed
from xsent.files.text import read_lines
from xsent_train.checkpoint import SPACES, TABLE, TOKENIZER, Checkpoint, trained_depths, trained_dims
from xsent_train.data.corpus import ENGLISH, Corpus
from xsent_train.data.vocabulary import ModelProto, SentencePiece
from xsent_train.derive import with_table
from xsent_train.model import ModelConfig

logger = logging.getLogger(__name__)

Precision = Literal["int8", "int4-table", "float32"]  # int4-table: 4 bits for the table, 8 for the layers
Format = Literal["bundle", "openvino", "onnx", "sentence-transformers", "web", "gguf", "text", "teacher"]
CHUNK = 20_000  # sentences tokenised at a time
FEW = 5_000  # sentences; a smaller sample lacks many words that users write

# Types of pieces that are always kept: unknown, control symbols such as the mask, user-defined symbols, bytes.
ALWAYS = {SentencePiece.UNKNOWN, SentencePiece.CONTROL, SentencePiece.USER_DEFINED, SentencePiece.BYTE}
BUNDLES = ("bundle", "openvino")  # formats that are bundles


@dataclass(frozen=True)
class Budget:
    """The loss that an export may cause in the worst language."""

    cosine_mean: float = 0.995  # minimum mean cosine to the trained vectors
    p1_loss: float = 0.5  # points of P@1
    first_ten: float = 0.9  # minimum share of the ten nearest sentences that stay


@dataclass(frozen=True)
class BundleSpec:
    """The part of an encoder to export, the precision of its weights, and the allowed loss."""

    num_layers: int  # the first layers
    dim: int  # the first numbers of a vector
    precision: Precision = "int8"
    budget: Budget = Budget()
    trained: Mapping[str, Sequence[int]] = field(default_factory=dict, compare=False)  # its usable parts
    space: str | None = None  # the model whose vectors are comparable
    spaces: Mapping[str, Tensor] = field(default_factory=dict, compare=False)  # matrices into other models' spaces
    added: Sequence[str] = ()  # those of them that were added to a bundle, in files of their own

    @classmethod
    def whole(cls, config: ModelConfig, precision: Precision = "int8") -> "BundleSpec":
        """All layers and dimensions of an encoder."""
        return cls(config.num_layers, config.dim, precision)


@dataclass(frozen=True)
class ExportOptions:
    """The options of `xsent-export`, see its help. Raises DataError if they contradict each other."""

    format: Format = "bundle"
    precision: Precision | None = None  # None: int8, or int4-table for a bundle whose table has 4 bits
    num_layers: int | None = None
    dim: int | None = None
    languages: Sequence[str] | None = None
    sample: Path | None = None
    gate_data: Path | None = None
    tolerance: float | None = None
    least_cosine: float | None = None  # minimum mean cosine to the trained vectors; None: by the precision
    name: str | None = None
    force: bool = False
    tests: Path | None = None  # --eval

    def __post_init__(self) -> None:
        if (self.languages is None) != (self.sample is None):
            raise DataError(
                "--languages and --sample belong together, because pieces that do not occur in the sample are removed; "
                "give both"
            )
        given: dict[str, object] = {"--force": self.force or None}
        if self.format == "teacher":
            given |= {"--eval": self.tests, "--layers": self.num_layers, "--dim": self.dim, "--name": self.name}
            given |= {"--languages": self.languages, "--tolerance": self.tolerance}
        unsupported = [option for option, value in given.items() if value is not None]
        if unsupported and self.format not in BUNDLES:
            raise DataError(f"{', '.join(unsupported)}: not supported by --format {self.format}; omit it")

    def spec(self, checkpoint: Checkpoint) -> BundleSpec:
        """The part to export. Raises DataError, with the trained parts, if the checkpoint was not trained for it."""
        num_layers = checkpoint.config.num_layers if self.num_layers is None else self.num_layers
        dim = self.dim or checkpoint.config.dim
        depths, dims = trained_depths(checkpoint), trained_dims(checkpoint)
        _check_trained(checkpoint, "--layers", num_layers, depths, "layer_prefixes")
        _check_trained(checkpoint, "--dim", dim, dims, "prefixes")
        trained = {"prefixes": [n for n in dims if n <= dim], "layers": [n for n in depths if n <= num_layers]}
        # A table that was read from 4 bits fits into 4 bits again.
        four_bits = checkpoint.about.get("precision") == "int4-table"
        precision = self.precision or ("int4-table" if four_bits and dim % 2 == 0 else "int8")
        if precision == "int4-table" and dim % 2:
            raise DataError(f"--int4-table needs an even number of dimensions, not {dim}")
        # 4 bits move vectors further, but the sentences that they find must not change.
        usual = 0.98 if precision == "int4-table" else Budget.cosine_mean
        least = usual if self.least_cosine is None else self.least_cosine
        budget = Budget(least, Budget.p1_loss if self.tolerance is None else self.tolerance)
        if dim < checkpoint.config.dim:  # truncated vectors are not in another model's space
            return BundleSpec(num_layers, dim, precision, budget, trained)
        matrices = sorted(name for name in checkpoint.weights if name.startswith(SPACES))
        spaces = {name.removeprefix(SPACES): checkpoint.weights[name] for name in matrices}
        space, added = checkpoint.about.get("space"), checkpoint.about.get("added_spaces", ())
        return BundleSpec(num_layers, dim, precision, budget, trained, space, spaces, added)

    @property
    def command(self) -> str:
        """The command with these options, without file names."""
        options: dict[str, object] = {
            "format": self.format if self.format != "bundle" else None,
            (self.precision or "").replace("float32", "fp32"): "" if self.precision else None,
            "layers": self.num_layers,
            "dim": self.dim,
            "languages": ",".join(self.languages) if self.languages else None,
            "sample": "TEXT" if self.sample else None,
            "gate-data": "PAIRS" if self.gate_data else None,
            "tolerance": self.tolerance,
        }
        words = (f"--{name} {value}".rstrip() for name, value in options.items() if value is not None)
        return " ".join(["xsent-export CHECKPOINT OUT", *words])


def _check_trained(checkpoint: Checkpoint, option: str, asked: int, trained: Sequence[int], setting: str) -> None:
    if asked in trained:
        return
    known = listed(trained, "and") + (" was" if len(trained) == 1 else " were")
    table = "; the recipe static.toml trains a table without layers" if option == "--layers" and asked == 0 else ""
    raise DataError(
        f"{checkpoint.path}: {option} {asked} was not trained, {known}; to use others, train with {setting}{table}"
    )


DEFAULTS = ExportOptions()


@contextmanager
def pruned(checkpoint: Checkpoint, languages: Sequence[str] | None, sample: Path | None) -> Iterator[Checkpoint]:
    """Yields the checkpoint with only the pieces that occur in the sample. Without a sample, yields it unchanged.

    The sample is text in these languages, one sentence per line, or a corpus (source, language, English, translation,
    or source, language, sentence), of which only the lines in these languages are read. Raises DataError if the
    checkpoint lacks a language, or the sample has no text in one.
    """
    if languages is None or sample is None:
        yield checkpoint
        return
    counts = count_pieces(checkpoint, languages, sample)
    vocabulary = ModelProto.FromString(checkpoint.tokenizer.read_bytes())
    pieces = list(vocabulary.pieces)
    # Keep the least probable piece too, because SentencePiece derives the cost of an unknown character from its score.
    lowest = min((piece.score for piece in pieces if piece.type == SentencePiece.NORMAL), default=0.0)
    lasting = [p.type in ALWAYS or (p.type == SentencePiece.NORMAL and p.score == lowest) for p in pieces]
    kept = ((counts > 0) | lasting).nonzero()[0]
    logger.info(f"{len(kept):,} of {len(counts):,} pieces are kept for {', '.join(languages)}")
    part = with_table(checkpoint, checkpoint.weights[TABLE][kept], languages)
    del vocabulary.pieces[:]
    vocabulary.pieces.extend(pieces[number] for number in kept)
    vocabulary.trainer_spec.vocab_size = len(kept)
    with TemporaryDirectory() as name:
        tokenizer = Path(name) / TOKENIZER
        tokenizer.write_bytes(vocabulary.SerializeToString(deterministic=True))
        yield replace(part, vocabulary=tokenizer)


def count_pieces(checkpoint: Checkpoint, languages: Sequence[str], sample: Path) -> NDArray[np.int64]:
    """How often each piece of a checkpoint occurs in a sample [V], see `pruned`."""
    if ENGLISH not in languages:
        raise DataError(
            f"--languages {','.join(languages)} must include {ENGLISH}: every other language is compared with it"
        )
    unknown = [language for language in languages if language not in checkpoint.languages]
    if unknown:
        known = ", ".join(checkpoint.languages)
        raise DataError(f"{checkpoint.path}: has no language {', '.join(unknown)}; it has {known}")
    tokenizer = checkpoint.load_tokenizer()
    counts = np.zeros(len(tokenizer), np.int64)
    total = 0
    found: set[str] = set()
    sentences = _sentences(sample, languages, found)
    while chunk := list(islice(sentences, CHUNK)):
        ids = [i for sentence in tokenizer.encode([*map(remove_format, chunk)]) for i in sentence]
        counts += np.bincount(np.array(ids, np.int64), minlength=len(counts))
        total += len(chunk)
    if not counts.any():
        raise DataError(f"{sample}: no text in {', '.join(languages)}; expected sentences, or pairs in these languages")
    if missing := [language for language in languages if found and language not in {*found, ENGLISH}]:
        raise DataError(f"{sample}: no lines in {', '.join(missing)}, so all their pieces would be removed; add some")
    if total < FEW:
        logger.warning("%s: only %d sentences; words that do not occur in them lose their pieces", sample, total)
    return counts


def _sentences(sample: Path, languages: Sequence[str], found: set[str]) -> Iterator[str]:
    """The sentences of a text, or of a corpus in these languages, which are added to `found`."""
    for line in read_lines(sample):
        pair = Corpus.parse(line.encode())
        if isinstance(pair, str) or line.count("\t") == 1:  # a line of two fields may be any text
            yield line
        elif pair.language in {*languages, ENGLISH}:
            if pair.language != ENGLISH:
                found.add(pair.language)
            yield from (pair.english, pair.translation)
