"""Folders of sentence-transformers as encoders: teachers, and peers to measure.

The library does the work, offline: no look-up in any cache or hub, no code and no pickle from the folder.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, in_one_line, needing

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MODULES = "modules.json"  # what tells such a folder from others
PICKLED = "*_model*.bin"  # pytorch_model.bin, its shards, adapter_model.bin
BATCH = 32  # sentences, sorted by length, padded to the longest of them; on a processor 64 and 128 are slower


class SentenceTransformerEncoder:
    """A sentence-transformers model as an encoder of texts; a ValueError where it cannot tell them apart."""

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model, self.dim = model, 0
        probe = self.encode(["a", "o"])
        self.dim = probe.shape[1]
        if np.allclose(probe[0], probe[1], atol=1e-6):  # the library makes up a tokenizer where none is
            raise ValueError("different texts get the same vector; its tokenizer is missing")

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, dim]; the model's own default prompt and length limit apply."""
        if not sentences:
            return np.zeros((0, self.dim), np.float32)
        vectors = self._model.encode(sentences, batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True)
        return np.asarray(vectors, np.float32)


def open_sentence_transformer(path: Path) -> SentenceTransformerEncoder | None:
    """The model in a sentence-transformers folder, or None where the folder is something else.

    It runs on a GPU where there is one, in float32. A DataError where the folder is damaged, or holds pickled weights
    or code of its own.
    """
    if not (path / MODULES).is_file():
        return None
    refuse_pickle(path)
    with needing("teacher"):
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    disable_progress_bar()  # one for every file of weights, also where nobody looks at a terminal
    try:
        model = SentenceTransformer(
            str(path),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": "float32"},
        )
        return SentenceTransformerEncoder(model)
    except Exception as error:  # whatever a library raises that reads a dozen files of others
        reason = in_one_line(error)
        if "trust_remote_code" in reason:  # its advice is to allow it
            reason = "it has code of its own, which xsent does not run; name a model of the library's own modules"
        raise DataError(f"{path}: not a readable sentence-transformers folder: {reason[:300]}") from error


def refuse_pickle(path: Path) -> None:
    """Refuse weights that exist as a pickle only, by a DataError that names the first."""
    for file in sorted(path.rglob(PICKLED)):
        if not file.name.startswith("openvino") and not any(file.parent.glob("*.safetensors")):
            raise DataError(
                f"{file}: pickled weights, which can run code when read; save the model with safetensors instead"
            )
