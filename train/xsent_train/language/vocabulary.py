"""A new language for a trained encoder: its pieces join the vocabulary, and the old ones stay as they are.

The languages an encoder knows must keep their vectors to the bit. So old pieces keep their ids and scores, and a new
piece that would cut old text in another way is left out.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import sentencepiece as spm
import torch
from torch import Tensor

from xsent.errors import DataError
from xsent.files.atomic import as_data_error, atomic_file
from xsent_train.checkpoint import TABLE, TOKENIZER, load_checkpoint, save_checkpoint
from xsent_train.data.languages import read_script
from xsent_train.data.vocabulary import ModelProto, SentencePiece, is_text, train_vocabulary
from xsent_train.from_bundle import with_table

logger = logging.getLogger(__name__)

SMALL = 0.02  # standard deviation of a row that starts from nothing, as in a new encoder

Piece = tuple[str, float]  # of a vocabulary: its text, where a space is written ▁, and its log-probability


def grow_vocabulary(old: Path, text: Iterator[str], out: Path, *, size: int, keep: Iterable[str], threads: int) -> int:
    """Add the pieces of a new language to a vocabulary; returns how many, their ids follow the old ones.

    A vocabulary of the new language alone is trained, and its pieces that the old one lacks are added with their
    scores: the two log-probabilities are of one kind, and measured, a shift between them changes next to nothing.
    `size` is what the new one alone has, at most; its text is held in memory (3 kB a sentence), 50,000 are enough.

    Sentences to `keep` shall be cut into pieces exactly as before. Those with letters of a script that the old
    vocabulary does not have quote some other language, and are not kept. A DataError where the old model cannot be
    read.
    """
    model = read_model(old)
    with TemporaryDirectory() as folder:
        alone = Path(folder) / TOKENIZER
        train_vocabulary(text, alone, size=size, threads=threads, exact=False)
        pieces = missing_pieces(model, alone.read_bytes())
    pieces = harmless_pieces(model, pieces, keep, threads=threads)
    with atomic_file(out) as file:
        file.write(with_pieces(model, pieces))
    return len(pieces)


def grow_checkpoint(checkpoint: Path, tokenizer: Path, language: str, out: Path) -> Path:
    """Give a checkpoint's table a row for each piece that `grow_vocabulary` added to its vocabulary.

    The row of a new piece starts as the mean of the rows of the pieces that it was cut into before; measured, that is
    better than their sum and than noise. A piece that was spelled in bytes starts as small noise: bytes mean nothing.
    A DataError where the vocabulary, a file named as in a checkpoint, did not grow out of the checkpoint's.
    """
    before = load_checkpoint(checkpoint)
    old, new = read_model(before.tokenizer), read_model(tokenizer)
    if not new.startswith(old):
        raise DataError(f"{tokenizer}: did not grow out of {before.tokenizer}; grow that one")
    table = before.weights[TABLE]
    languages = list(dict.fromkeys([*before.languages, language]))
    about, weights = with_table(before, torch.cat([table, first_rows(table, old, new)]), languages)
    save_checkpoint(out, about, weights, None, [tokenizer, *filter(Path.exists, [before.validation])])
    return out


def read_model(path: Path) -> bytes:
    """The bytes of a SentencePiece model; a DataError where the file is missing or something else."""
    with as_data_error(path, "expected a SentencePiece model"):
        model = path.read_bytes()
        _processor(model)
    return model


def missing_pieces(model: bytes, alone: bytes) -> list[Piece]:
    """The pieces of a new language's vocabulary that a model lacks, the most probable first.

    Their scores are never below the model's lowest: from that one follows what an unknown character costs, which must
    stay the same.
    """
    old, new = _processor(model), _processor(alone)
    known = {old.id_to_piece(i) for i in range(len(old))}
    lowest = min(old.get_score(i) for i in range(len(old)) if is_text(old, i))
    texts = ((new.id_to_piece(i), new.get_score(i)) for i in range(len(new)) if is_text(new, i))
    return [(text, max(score, lowest)) for text, score in texts if text not in known]


def harmless_pieces(model: bytes, pieces: Sequence[Piece], keep: Iterable[str], *, threads: int) -> list[Piece]:
    """Leave out the pieces with which a sentence of a sample, `keep`, would be cut in another way than before.

    A sentence that no new piece turns up in is cut as before: its best cut is still there, and still the best. When
    pieces go, others may take their place, so it takes a few rounds; each looks at the sentences that changed in the
    round before.
    """
    old = _processor(model)
    scripts = {script for i in range(len(old)) for script in read_script(old.id_to_piece(i)).letters}
    sample = [sentence for sentence in keep if read_script(sentence).letters.keys() <= scripts]
    kept = list(pieces)
    while sample:
        cut = _processor(with_pieces(model, kept)).encode(sample, num_threads=threads)
        intruders = {i - len(old) for ids in cut for i in ids if i >= len(old)}
        sample = [sentence for sentence, ids in zip(sample, cut, strict=True) if max(ids, default=0) >= len(old)]
        kept = [piece for i, piece in enumerate(kept) if i not in intruders]
    logger.info("%d new pieces, %d left out because old text uses them", len(kept), len(pieces) - len(kept))
    return kept


def with_pieces(model: bytes, pieces: Iterable[Piece]) -> bytes:
    """A SentencePiece model with pieces added after its own.

    A protobuf message goes on where another ends: its repeated fields grow, and the old bytes stay what they are.
    """
    added = ModelProto(pieces=[SentencePiece(piece=text, score=score) for text, score in pieces])
    return model + bytes(added.SerializeToString())


def first_rows(table: Tensor, old: bytes, new: bytes) -> Tensor:
    """Rows for the pieces that a grown model has and the old one has not, see `grow_checkpoint` [V' - V, D]."""
    spaces = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}  # a piece with its own spaces alone
    cutter = _processor(old + ModelProto(normalizer_spec=spaces).SerializeToString())
    grown = _processor(new)
    rows = torch.empty(len(grown) - len(table), table.shape[1])
    rows.normal_(std=SMALL, generator=torch.Generator().manual_seed(1))
    for i in range(len(table), len(grown)):
        parts = cutter.encode(grown.id_to_piece(i))
        if parts and all(is_text(cutter, part) for part in parts):
            rows[i - len(table)] = table[parts].mean(dim=0)
    return rows


def _processor(model: bytes) -> spm.SentencePieceProcessor:
    return spm.SentencePieceProcessor(model_proto=model)
