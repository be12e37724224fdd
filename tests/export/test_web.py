"""Folders for transformers.js: read by it in Node, and by onnxruntime-web as in a browser.

Needs `node`, and `npm install --no-save @huggingface/transformers` in the repository, or the folder of another such
installation's node_modules in XSENT_NODE_MODULES.
"""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import MakeCheckpoint
from texts import multilingual

from xsent.clean import remove_format
from xsent.similarity import unit_rows
from xsent_export.hub import GraphEncoder, write_web
from xsent_export.options import BundleSpec
from xsent_train.checkpoint import CheckpointEncoder

CLIENT = Path(__file__).parent / "web_client.mjs"
MODULES = os.environ.get("XSENT_NODE_MODULES", str(CLIENT.parent.parent / "node_modules"))
DIM = 32  # of make_encoder


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("node") is None or not (Path(MODULES) / "@huggingface" / "transformers").is_dir(),
    reason="needs node, and `npm install --no-save @huggingface/transformers`",
)
@pytest.mark.parametrize(
    ("activation", "form", "backend", "count"),
    [
        ("gelu", BundleSpec(2, DIM, "float32"), "transformers", 300),
        ("silu", BundleSpec(2, DIM, "float32"), "wasm", 60),
        ("gelu", BundleSpec(2, DIM, "int8"), "wasm", 60),
        ("gelu", BundleSpec(0, 8, "int8"), "transformers", 300),
    ],
    ids=["float32", "float32-silu", "int8", "table"],
)
def test_ids_and_vectors_from_node_equal_those_from_python(
    activation: str, form: BundleSpec, backend: str, count: int, make_checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    checkpoint, texts = make_checkpoint(activation), multilingual(count)
    write_web(checkpoint, form, tmp_path)
    command = ["node", str(CLIENT), MODULES, str(tmp_path), backend]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    vectors = np.array(answer["vectors"], np.float32)
    processor, framed = checkpoint.load_tokenizer(), form.num_layers > 0
    expected = processor.encode([remove_format(text) for text in texts], add_bos=framed, add_eos=framed)
    assert [text for text, here, there in zip(texts, answer["ids"], expected, strict=True) if here != there] == []
    assert vectors[texts.index("")].any() == framed
    kept = replace(checkpoint.config, num_layers=form.num_layers)
    longest = kept.max_length + 2 * framed  # transformers.js cuts off the last token of longer ones
    read = [number for number, pieces in enumerate(expected) if 2 * framed < len(pieces) <= longest]
    texts, vectors = [texts[number] for number in read], unit_rows(vectors[read])
    graph = GraphEncoder(tmp_path / "onnx" / "model.onnx", checkpoint.tokenizer, kept)
    assert np.abs(vectors - graph.encode(texts)).max() < 1e-3
    if form.precision == "float32":
        assert np.abs(vectors - CheckpointEncoder(checkpoint).encode(texts)).max() < 1e-3


def test_the_folder_has_what_transformers_js_asks_for(make_checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    write_web(make_checkpoint(), BundleSpec(2, 8, "int8"), tmp_path)
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {"config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"}
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["hidden_size"] == 8
    assert config["transformers.js_config"] == {"dtype": "fp32"}  # else a browser asks for another file
    assert "Precompiled" not in (tmp_path / "tokenizer.json").read_text()
