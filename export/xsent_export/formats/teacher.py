"""A teacher of sentence-transformers as an 8-bit graph: its vectors for training, on a processor."""

import logging
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np

from xsent.errors import ParityError
from xsent.files.atomic import read_json, to_json
from xsent_export.calibration import calibrate
from xsent_export.check import Agreement, read_pairs
from xsent_export.graph import EncoderGraph
from xsent_export.options import DEFAULTS, BundleSpec, ExportOptions
from xsent_export.result import ExportResult, folder_size, new_folder
from xsent_train.teacher.base import (
    ABOUT,
    FORMAT_VERSION,
    TOKENIZER,
    Int8Teacher,
    Teacher,
    open_teacher,
    space_identity,
)
from xsent_train.teacher.bert import TeacherBert, read_teacher
from xsent_train.tokens import FRAME

logger = logging.getLogger(__name__)

LEAST = 0.98  # mean cosine; 8 bits through six layers come to 0.996
LIMITS = "sentence_bert_config.json"
SENTENCES = (  # of all lengths, for who has no others
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


def export_teacher(source: Path, out: Path, options: ExportOptions = DEFAULTS) -> ExportResult:
    """Write a folder of sentence-transformers, whose model is a BERT, for `xsent-train --teacher`, and measure it.

    A BundleError where `out` is no place for it, a DataError where the source is no such teacher, a ParityError where
    its vectors differ too much from the original's.
    """
    pairs = read_pairs(options.gate_data) if options.gate_data else {}
    sentences = [english for language in pairs.values() for english, _ in language]
    teacher, original = read_teacher(source), open_teacher(source)
    encoder = teacher.encoder(_max_length(teacher))
    form = BundleSpec.whole(encoder.config, options.precision or "int8", options.target)
    with new_folder(out) as folder:
        # Always the same ones: what a teacher becomes does not depend on what it is measured with.
        ids = [teacher.tokenizer.encode(text, add_special_tokens=False).ids for text in SENTENCES]
        EncoderGraph(encoder, form, calibrate(encoder, ids, form.target)).write(folder)
        shutil.copyfile(source / TOKENIZER, folder / TOKENIZER)
        about = {
            "format_version": FORMAT_VERSION,
            "name": source.resolve().name,
            "teacher": original.identity,
            "dim": encoder.config.dim,
            "max_length": encoder.config.max_length,
            "precision": form.precision,
            "fingerprint": space_identity(folder),
        }
        (folder / ABOUT).write_bytes(to_json(about))
        agreement = _compare(original, Int8Teacher(folder), sentences or list(SENTENCES))
        (folder / ABOUT).write_bytes(to_json({**about, "agreement": asdict(agreement)}))
        return ExportResult(out, folder_size(folder), agreement=agreement, fingerprint=str(about["fingerprint"]))


def _max_length(teacher: TeacherBert) -> int:
    """The tokens of a text that a teacher reads, the first and the last one not counted."""
    file, longest = teacher.path / LIMITS, int(teacher.config["max_position_embeddings"])
    limits = read_json(file, "expected a folder of sentence-transformers") if file.is_file() else {}
    return min(limits.get("max_seq_length") or longest, longest) - FRAME


def _compare(original: Teacher, quick: Int8Teacher, sentences: list[str]) -> Agreement:
    logger.info("measuring %d sentences", len(sentences))
    cosines = np.sum(original.encode(sentences) * quick.encode(sentences), axis=1)
    mean, worst = float(cosines.mean()), float(cosines.min())
    if not mean >= LEAST:  # so that NaN fails too
        raise ParityError(
            f"{original.path}: mean cosine {mean:.4f} to the original's vectors, expected at least {LEAST}; is there a "
            "module beside BERT, mean and length 1?"
        )
    return Agreement(len(sentences), round(mean, 5), round(worst, 5))
