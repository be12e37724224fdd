"""Compact cross-lingual sentence encoders that run offline on small devices.

Names load when they are first used, so that `import xsent` costs nothing.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xsent.bundle import Bundle as Bundle
    from xsent.classification.classifier import LinearClassifier as LinearClassifier
    from xsent.documents.encoder import DocumentEncoder as DocumentEncoder
    from xsent.documents.sentences import split_sentences as split_sentences
    from xsent.encode_options import OnLong as OnLong
    from xsent.encoder import LongSentenceWarning as LongSentenceWarning
    from xsent.encoder import SentenceEncoder as SentenceEncoder
    from xsent.encoder import UnknownTextWarning as UnknownTextWarning
    from xsent.errors import BackendError as BackendError
    from xsent.errors import BundleError as BundleError
    from xsent.errors import DataError as DataError
    from xsent.errors import FingerprintError as FingerprintError
    from xsent.errors import MissingExtraError as MissingExtraError
    from xsent.errors import ParityError as ParityError
    from xsent.errors import XsentError as XsentError
    from xsent.mining.bitext import align_documents as align_documents
    from xsent.mining.bitext import mine_bitext as mine_bitext
    from xsent.mining.boilerplate import strip_boilerplate as strip_boilerplate
    from xsent.mining.clusters import Clusters as Clusters
    from xsent.mining.clusters import cluster as cluster
    from xsent.mining.clusters import without_background as without_background
    from xsent.mining.margin import margin_scores as margin_scores
    from xsent.mining.names import ClusterName as ClusterName
    from xsent.mining.names import name_clusters as name_clusters
    from xsent.mining.paraphrases import group_pairs as group_pairs
    from xsent.mining.paraphrases import mine_paraphrases as mine_paraphrases
    from xsent.mining.paraphrases import paraphrase_mining as paraphrase_mining
    from xsent.search.documents import update_index as update_index
    from xsent.search.index import Hit as Hit
    from xsent.search.index import SearchIndex as SearchIndex
    from xsent.search.index import no_match_message as no_match_message
    from xsent.search.index import semantic_search as semantic_search
    from xsent.search.lines import build_index as build_index
    from xsent.search.lines import extend_index as extend_index
    from xsent.search.writer import Document as Document
    from xsent.similarity import cos_sim as cos_sim
    from xsent.similarity import cosine_similarity as cosine_similarity
    from xsent.similarity import nearest as nearest

    __version__: str


# Offline means offline: since 1.29 onnxruntime reports its use over the network and leaves an identifier in the home
# folder (its Privacy.md), unless this is set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_NAMES = {  # by module
    "bundle": "Bundle",
    "classification.classifier": "LinearClassifier",
    "documents.encoder": "DocumentEncoder",
    "documents.sentences": "split_sentences",
    "encode_options": "OnLong",
    "encoder": "LongSentenceWarning SentenceEncoder UnknownTextWarning",
    "errors": "BackendError BundleError DataError FingerprintError MissingExtraError ParityError XsentError",
    "mining.bitext": "align_documents mine_bitext",
    "mining.boilerplate": "strip_boilerplate",
    "mining.clusters": "Clusters cluster without_background",
    "mining.margin": "margin_scores",
    "mining.names": "ClusterName name_clusters",
    "mining.paraphrases": "group_pairs mine_paraphrases paraphrase_mining",
    "search.index": "Hit SearchIndex no_match_message semantic_search",
    "search.documents": "update_index",
    "search.lines": "build_index extend_index",
    "search.writer": "Document",
    "similarity": "cos_sim cosine_similarity nearest",
}
# Names from sentence-transformers, and what to use here instead.
_INSTEAD = {
    "SentenceTransformer": "SentenceEncoder",
    "community_detection": "group_pairs of the pairs that mine_paraphrases finds",
    "util": "the functions of xsent itself: cos_sim, semantic_search, paraphrase_mining",
    "quantize_embeddings": "encode(..., precision='int8') or 'binary', or xsent.precision.to_int8 and pack_signs",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("xsent")
        except PackageNotFoundError:  # run from a source tree that is not installed
            return "0+unknown"
    if name in _INSTEAD:
        # Not AttributeError, whose message `from xsent import NAME` would hide.
        raise ImportError(f"xsent has no {name}; use {_INSTEAD[name]}", name=__name__)
    if name not in _HOME:
        raise AttributeError(f"module 'xsent' has no attribute {name!r}")
    value = getattr(import_module(f"xsent.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
