"""The encoder, evaluated by MTEB on a task of ours."""

from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
from conftest import check_long_text, sentences
from datasets import Dataset, DatasetDict
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining
from mteb.models import EncoderProtocol
from numpy.typing import NDArray

from xsent import SentenceEncoder, nearest
from xsent_apps.mteb import XsentEncoder

ENGLISH, GERMAN = sentences("en"), sentences("de")


class OurPairs(AbsTaskBitextMining):
    """Pairs of English and German sentences."""

    metadata = TaskMetadata(
        name="OurPairs",
        description="Sentences and their translations.",
        dataset={"path": "ours/pairs", "revision": "1"},
        type="BitextMining",
        modalities=["text"],
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn", "deu-Latn"],
        main_score="accuracy",
    )

    def load_data(self, **options: object) -> None:
        """The sentences, from memory."""
        self.dataset = DatasetDict({"test": Dataset.from_dict({"sentence1": GERMAN, "sentence2": ENGLISH})})
        self.data_loaded = True


def encode(encoder: XsentEncoder, texts: list[str], **options: Any) -> NDArray[np.generic]:  # noqa: ANN401
    batches = [{"text": texts[start : start + 4]} for start in range(0, len(texts), 4)]
    return encoder.encode(batches, task_metadata=OurPairs.metadata, hf_split="test", hf_subset="default", **options)


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning")  # MTEB's own similarities
def test_a_task_runs_from_end_to_end(mini_bundle: Path) -> None:
    results = mteb.evaluate(XsentEncoder(mini_bundle), OurPairs(), cache=None, show_progress_bar=False)
    encoder = SentenceEncoder(mini_bundle)
    rows, _ = nearest(encoder.encode(GERMAN), encoder.encode(ENGLISH))
    expected = float((rows[:, 0] == np.arange(len(GERMAN))).mean())
    assert results.task_results[0].get_score() == pytest.approx(expected) and 0 < expected < 1
    assert (results.model_name, results.model_revision) == ("xsent/mini", encoder.fingerprint)


def test_vectors_are_the_encoders(mini_bundle: Path) -> None:
    encoder, ours = SentenceEncoder(mini_bundle), XsentEncoder(mini_bundle, truncate_dim=8, threads=1)
    assert isinstance(ours, EncoderProtocol)
    vectors = encode(ours, ENGLISH, batch_size=4)
    assert np.array_equal(vectors, encoder.encode(ENGLISH, truncate_dim=8))
    assert np.allclose(ours.similarity(vectors, vectors), encoder.similarity(vectors, vectors), atol=1e-6)
    assert encode(ours, ENGLISH, precision="int8").dtype == np.int8
    with pytest.raises(ValueError, match="packed bits"):
        encode(ours, ENGLISH, precision="binary")


def test_results_of_other_settings_are_kept_apart(mini_bundle: Path) -> None:
    metas = [XsentEncoder(mini_bundle, truncate_dim=dim, on_long=on) for dim in (None, 8) for on in ("warn", "split")]
    assert len({meta.mteb_model_meta.model_name_with_experiment for meta in metas}) == 4
    meta = XsentEncoder().mteb_model_meta
    assert (meta.embed_dim, meta.max_tokens, meta.license) == (384, 254, "cc-by-sa-4.0")
    assert 30 < meta.memory_usage_mb < 33


def test_what_is_too_long(mini_bundle: Path) -> None:
    check_long_text(lambda text, **options: encode(XsentEncoder(mini_bundle, **options), [text])[0], mini_bundle)
