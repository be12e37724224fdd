"""Retrieval on held-out pairs."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from xsent_train.data.corpus import Corpus
from xsent_train.model import Encoder
from xsent_train.tokens import open_tokenizer

BATCH = 256
TEMPERATURE = 0.05

Scores = dict[str, dict[str, float]]  # by measure, then by language


class Validation:
    """Held-out pairs; each translation is searched among the English sentences of all languages."""

    def __init__(self, path: Path, tokenizer: Path) -> None:
        processor = open_tokenizer(tokenizer)
        pairs = list(Corpus([path]))
        english = {text: i for i, text in enumerate(dict.fromkeys(pair.english for pair in pairs))}
        self._languages = list(dict.fromkeys(pair.language for pair in pairs))
        self._language = torch.tensor([self._languages.index(pair.language) for pair in pairs])
        self._gold = torch.tensor([english[pair.english] for pair in pairs])
        self._english: list[list[int]] = processor.encode(list(english))
        self._translations: list[list[int]] = processor.encode([pair.translation for pair in pairs])

    @torch.inference_mode()
    def measure(self, encoder: Encoder) -> Scores:
        """Search every translation, by cosine; dropout is off meanwhile.

        Gives `p1`, in per cent, and `loss`, the cross-entropy of cosine / 0.05 against the right sentence: it still
        tells encoders apart whose P@1 is the same.
        """
        was_training = encoder.training
        encoder.eval()
        candidates = F.normalize(encoder.encode(self._english), dim=1)
        hits, losses = [], []
        for start in range(0, len(self._translations), BATCH):
            queries = F.normalize(encoder.encode(self._translations[start : start + BATCH]), dim=1)
            scores, gold = queries @ candidates.T, self._gold[start : start + BATCH].to(queries.device)
            hits.append(100.0 * (scores.argmax(dim=1) == gold))
            losses.append(F.cross_entropy(scores / TEMPERATURE, gold, reduction="none"))
        encoder.train(was_training)
        return {"p1": self._by_language(hits), "loss": self._by_language(losses)}

    def _by_language(self, parts: list[Tensor]) -> dict[str, float]:
        values = torch.cat(parts).cpu()
        return {name: float(values[self._language == i].mean()) for i, name in enumerate(self._languages)}
