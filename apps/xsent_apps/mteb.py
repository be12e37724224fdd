"""MTEB: a bundle as an encoder to evaluate."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from xsent.errors import require_extra
from xsent_apps.integration import Integration

with require_extra("mteb"):
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.types import Licenses


class XsentEncoder(Integration, AbsEncoder):
    """For `mteb.evaluate`: vectors are compared by cosine, without prompts.

    The arguments are those of `Integration`. MTEB stores results by the bundle's name, its fingerprint and these
    arguments.
    """

    def encode(
        self,
        inputs: Iterable[Mapping[str, list[str]]],
        *,
        task_metadata: object,
        hf_split: str,
        hf_subset: str,
        prompt_type: object = None,
        **options: Any,  # noqa: ANN401  for `SentenceEncoder.encode`, from the caller of `mteb.evaluate`
    ) -> NDArray[np.generic]:
        """Vectors [n, D] of the texts of all batches. Raises ValueError if MTEB cannot compare them."""
        if options.get("precision") == "binary":
            raise ValueError("MTEB treats packed bits as numbers; evaluate binary vectors with xsent evaluate")
        return self._encode([text for batch in inputs for text in batch["text"]], **options)

    def _open(self) -> None:
        super()._open()
        bundle = self.encoder.bundle
        self.mteb_model_meta = ModelMeta(
            loader=None,
            name=f"xsent/{bundle.name}",
            revision=self.encoder.fingerprint,
            release_date=None,
            languages=None,  # MTEB's codes have three letters and a script, a bundle's two letters
            n_parameters=None,
            n_embedding_parameters=bundle.vocab_size * bundle.dim,
            memory_usage_mb=sum(file.bytes for file in bundle.files.values()) / 2**20,
            max_tokens=bundle.max_length,
            embed_dim=self.truncate_dim or bundle.dim_of(self.space),
            license=bundle.licence if bundle.licence in get_args(Licenses) else None,
            open_weights=True,
            public_training_code=None,
            public_training_data=None,
            framework=["ONNX"],
            similarity_fn_name=ScoringFunction.COSINE,
            use_instructions=False,
            training_datasets=None,
            experiment_kwargs={"truncate_dim": self.truncate_dim, "on_long": self.on_long, "space": self.space},
        )
