"""A checkpoint as a folder for transformers.js: the graph of padded batches and the tokenizer that JavaScript reads."""

import json
from pathlib import Path

from xsent.export.batch_graph import write_batch_graph
from xsent.export.form import Form
from xsent.export.huggingface_tokenizer import write_tokenizer
from xsent.train.checkpoint import Checkpoint

GRAPH = "onnx/model.onnx"
CONFIG = "config.json"


def write_web(checkpoint: Checkpoint, form: Form, folder: Path) -> None:
    """Write a model for transformers.js, in Node or in a browser.

    `AutoTokenizer` and `AutoModel` open it; the model gives `sentence_embedding` [B, D], not normalised.

    Args:
        checkpoint: The trained encoder.
        form: What is made of it.
        folder: An empty folder.

    Raises:
        DataError: The tokenizer is of a kind that cannot be written for it, or the graph is too large.
        ValueError: A weight is not finite.
    """
    (folder / GRAPH).parent.mkdir()
    write_batch_graph(checkpoint.encoder, form, folder / GRAPH)
    # Its map of characters would be read as NFKC, with exceptions that are not ours.
    write_tokenizer(checkpoint.tokenizer, folder, checkpoint.config.max_length, charsmap=False)
    config = {
        "architectures": ["BertModel"],  # whatever the graph does: ids and a mask go in
        "model_type": "bert",
        "vocab_size": checkpoint.config.vocab_size,
        "hidden_size": form.dim,
        "num_hidden_layers": form.num_layers,
        "num_attention_heads": checkpoint.config.num_heads,
        "max_position_embeddings": checkpoint.config.max_length,
        "transformers.js_config": {"dtype": "fp32"},  # of the file's name: there is no other, whatever is inside
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
