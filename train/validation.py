"""Retrieval on held-out pairs: the encoder, and beside it the table it stands on."""

from collections.abc import Callable
from pathlib import Path

import sentencepiece as spm
import torch
import torch.nn.functional as F
from torch import Tensor

from xsent.train.checkpoint import to_tokens
from xsent.train.corpus import Corpus
from xsent.train.model import Encoder, Tokens

BATCH = 256


class Validation:
    """Held-out pairs; each translation is searched among the English sentences of all languages."""

    def __init__(self, path: Path, tokenizer: Path) -> None:
        """Read and tokenise the held-out pairs.

        Raises:
            DataError: The file cannot be read or holds no pair.
        """
        processor = spm.SentencePieceProcessor(model_file=str(tokenizer))
        pairs = list(Corpus([path]))
        english = {text: i for i, text in enumerate(dict.fromkeys(pair.english for pair in pairs))}
        self.languages = list(dict.fromkeys(pair.language for pair in pairs))
        self._language = torch.tensor([self.languages.index(pair.language) for pair in pairs])
        self._gold = torch.tensor([english[pair.english] for pair in pairs])
        self._english: list[list[int]] = processor.encode(list(english))
        self._translations: list[list[int]] = processor.encode([pair.translation for pair in pairs])

    @torch.inference_mode()
    def accuracy(self, encoder: Encoder, *, table_only: bool = False) -> dict[str, float]:
        """P@1 in per cent by cosine, per language.

        Args:
            encoder: The encoder; dropout is off while it is measured.
            table_only: Leave its layers out.
        """
        was_training = encoder.training
        encoder.eval()
        encode = encoder.static if table_only else encoder
        candidates = self._encode(self._english, encoder, encode)
        right = []
        for start in range(0, len(self._translations), BATCH):
            queries = self._encode(self._translations[start : start + BATCH], encoder, encode)
            right.append((queries @ candidates.T).argmax(dim=1).cpu() == self._gold[start : start + BATCH])
        encoder.train(was_training)
        hits = torch.cat(right).float() * 100
        return {name: float(hits[self._language == i].mean()) for i, name in enumerate(self.languages)}

    @staticmethod
    def _encode(sentences: list[list[int]], encoder: Encoder, encode: Callable[[Tokens], Tensor]) -> Tensor:
        device = encoder.table.weight.device
        parts = [sentences[i : i + BATCH] for i in range(0, len(sentences), BATCH)]
        return torch.cat([F.normalize(encode(to_tokens(part, encoder).to(device)), dim=1) for part in parts])


def mean(accuracy: dict[str, float]) -> float:
    """The mean over the languages."""
    return sum(accuracy.values()) / len(accuracy)
