"""A checkpoint as a folder for transformers.js: the graph of padded batches and the tokenizer that JavaScript reads."""

from dataclasses import replace
from pathlib import Path

from xsent.export.batch_graph import write_batch_graph
from xsent.export.form import Form
from xsent.export.huggingface_tokenizer import write_json, write_tokenizer
from xsent.export.sentence_transformers import bert_config
from xsent.train.checkpoint import Checkpoint
from xsent.train.transfer import CONFIG

GRAPH = "onnx/model.onnx"


def write_web(checkpoint: Checkpoint, form: Form, folder: Path) -> None:
    """Write a model for transformers.js, in Node or in a browser, into an empty folder.

    `AutoTokenizer` and `AutoModel` open it; the model gives `sentence_embedding` [B, D], not normalised.
    """
    (folder / GRAPH).parent.mkdir()
    write_batch_graph(checkpoint.encoder, form, folder / GRAPH)
    # Its map of characters would be read as NFKC, with exceptions that are not ours.
    kept = replace(checkpoint.config, num_layers=form.num_layers)
    write_tokenizer(checkpoint.tokenizer, folder, kept, charsmap=False)
    config = {
        **bert_config(kept),
        "hidden_size": form.dim,
        "transformers.js_config": {"dtype": "fp32"},  # of the file's name: there is no other, whatever is inside
    }
    write_json(folder / CONFIG, config)
