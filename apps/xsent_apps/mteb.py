"""MTEB: a bundle as an encoder that it evaluates."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from xsent import OnLong, SentenceEncoder
from xsent.errors import require_extra

with require_extra("mteb"):
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.types import Licenses


class XsentEncoder(AbsEncoder):
    """For `mteb.evaluate`: vectors are compared by cosine, and there are no prompts.

    MTEB keeps results by the bundle's name, its fingerprint and these settings.

    Args:
        path: A bundle folder; None is the bundle that ships with the package.
        layers: Layers to run, of those that the bundle has; None is all.
        truncate_dim: Keep only the first so many numbers of each vector.
        on_long: What happens to text that is too long, see `SentenceEncoder.encode`.
        threads: Sentences to encode at once; None takes every CPU.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        layers: int | None = None,
        truncate_dim: int | None = None,
        on_long: OnLong = "warn",
        threads: int | None = None,
    ) -> None:
        self.model = SentenceEncoder(path, layers=layers, threads=threads)
        self.truncate_dim = truncate_dim
        self.on_long = on_long
        self.mteb_model_meta = _meta(self.model, truncate_dim, on_long)

    def encode(
        self,
        inputs: Iterable[Mapping[str, list[str]]],
        *,
        task_metadata: object,
        hf_split: str,
        hf_subset: str,
        prompt_type: object = None,
        **options: Any,  # noqa: ANN401  of `SentenceEncoder.encode`, as the caller of `mteb.evaluate` gives them
    ) -> NDArray[np.generic]:
        """Vectors [n, D] of the texts of all batches; a ValueError says that MTEB cannot compare them."""
        if options.get("precision") == "binary":
            raise ValueError("MTEB takes packed bits for numbers; evaluate binary vectors with xsent evaluate")
        texts = [text for batch in inputs for text in batch["text"]]
        return self.model.encode(texts, truncate_dim=self.truncate_dim, on_long=self.on_long, **options)


def _meta(encoder: SentenceEncoder, truncate_dim: int | None, on_long: OnLong) -> ModelMeta:
    bundle = encoder.bundle
    return ModelMeta(
        loader=None,
        name=f"xsent/{bundle.name}",
        revision=encoder.fingerprint,
        release_date=None,
        languages=None,  # MTEB's codes have three letters and a script, a bundle's two letters
        n_parameters=None,
        n_embedding_parameters=bundle.vocab_size * bundle.dim,
        memory_usage_mb=sum(file.bytes for file in bundle.files.values()) / 2**20,
        max_tokens=bundle.max_length,
        embed_dim=truncate_dim or bundle.dim,
        license=bundle.licence if bundle.licence in get_args(Licenses) else None,
        open_weights=True,
        public_training_code=None,
        public_training_data=None,
        framework=["ONNX"],
        similarity_fn_name=ScoringFunction.COSINE,
        use_instructions=False,
        training_datasets=None,
        experiment_kwargs={"truncate_dim": truncate_dim, "on_long": on_long},
    )
