"""Export a teacher, a BERT of sentence-transformers, to its 8-bit form, which is faster."""

import logging
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np

from xsent.errors import ParityError
from xsent.files.atomic import atomic_folder, read_json, to_json
from xsent_export.export import Agreement, ExportResult, check_place, folder_size
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec, ExportOptions
from xsent_export.parity import read_pairs
from xsent_export.quantization import calibrate
from xsent_train.teacher.bert import read_teacher
from xsent_train.teacher.open import (
    INT8_ABOUT,
    INT8_FILES,
    INT8_VERSION,
    TOKENIZER,
    Int8Teacher,
    Teacher,
    content_identity,
    open_teacher,
)
from xsent_train.tokens import FRAME

logger = logging.getLogger(__name__)

LEAST_COSINE = 0.98  # mean cosine to the original; six layers in 8 bits reach 0.996
LIMITS = "sentence_bert_config.json"
SENTENCES = (  # of all lengths, to calibrate on and, without --gate-data, to measure on
    "Yes.",
    "Good morning!",
    "A man is playing a guitar.",
    "Three dogs run across a field of snow.",
    "What is the capital of Australia?",
    "Press the button for five seconds to reset the device.",
    "The committee rejected the proposal by 14 votes to 3.",
    "I would rather stay at home than go out in this weather.",
    "The train from Zürich arrives at 17:45 on platform 9¾.",
    "error: cannot open file 'config.json' (No such file or directory)",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "She said that she had never seen so many people in the small museum before.",
    "All rights reserved; no part of this publication may be reproduced without permission.",
    "Although the price of oil fell sharply in March, airlines did not lower their fares, because most of them had "
    "bought their fuel a year in advance.",
    "The patient was admitted with fever, cough and shortness of breath, and after ten days of treatment with two "
    "antibiotics the symptoms had gone, although the scans still showed shadows in the left lung.",
)


def export_teacher(source: Path, out: Path, options: ExportOptions) -> ExportResult:
    """Export a BERT of sentence-transformers for `xsent-train --teacher`, and measure it.

    Raises BundleError if `out` exists, DataError if the source is not such a BERT, and ParityError if the vectors
    differ too much from the original's.
    """
    check_place(out, replace=None)
    pairs = read_pairs(options.gate_data) if options.gate_data else {}
    sentences = [english for language in pairs.values() for english, _ in language]
    teacher = read_teacher(source)
    original = open_teacher(source)
    file, longest = source / LIMITS, int(teacher.config["max_position_embeddings"])
    limits = read_json(file, "expected a folder of sentence-transformers") if file.is_file() else {}
    encoder = teacher.encoder(min(limits.get("max_seq_length") or longest, longest) - FRAME)
    spec = BundleSpec.whole(encoder.config, options.precision or "int8")
    with atomic_folder(out.resolve()) as folder:
        # Not on --gate-data, so that the exported teacher does not depend on the pairs that it is measured on.
        ids = [teacher.tokenizer.encode(text, add_special_tokens=False).ids for text in SENTENCES]
        EncoderGraph(encoder, spec, calibrate(encoder, ids)).write(folder)
        shutil.copyfile(source / TOKENIZER, folder / TOKENIZER)
        about = {
            "format_version": INT8_VERSION,
            "name": source.resolve().name,
            "teacher": original.identity,
            "dim": encoder.config.dim,
            "max_length": encoder.config.max_length,
            "precision": spec.precision,
            "fingerprint": content_identity(folder, INT8_FILES),
        }
        (folder / INT8_ABOUT).write_bytes(to_json(about))
        agreement = _compare(original, Int8Teacher(folder), sentences or list(SENTENCES))
        (folder / INT8_ABOUT).write_bytes(to_json({**about, "agreement": asdict(agreement)}))
        contents = spec.precision, spec.num_layers, spec.dim
        identity = str(about["fingerprint"])
        return ExportResult(out, folder_size(folder), *contents, fingerprint=identity, agreement=agreement)


def _compare(original: Teacher, exported: Int8Teacher, sentences: list[str]) -> Agreement:
    logger.info("measuring %d sentences", len(sentences))
    cosines = np.sum(original.encode(sentences) * exported.encode(sentences), axis=1)
    mean = float(cosines.mean())
    if not mean >= LEAST_COSINE:  # negated so that NaN fails too
        raise ParityError(
            f"{original.path}: mean cosine {mean:.4f} to the original's vectors, expected at least {LEAST_COSINE}; the "
            "model may have modules other than BERT, mean pooling and normalisation"
        )
    return Agreement(len(sentences), round(mean, 5), round(float(cosines.min()), 5))
