"""A teacher in miniature, a random BERT in a folder of sentence-transformers, and a recipe that stands on it."""

import json
import string
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from toy import ENGLISH, toy_pairs, write_toy_corpus

from xsent_train.teacher.bert import list_modules

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# A few words it spells in letters.
WORDS = [*ENGLISH[:-6], *string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase), ".", "!"]
WIDTH = 32
MODULES = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
FILES = {
    "modules.json": list_modules({path: kind for kind, path in MODULES.items()}),
    "1_Pooling/config.json": {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 40},
    "tokenizer_config.json": {
        **{f"{piece.strip('[]').lower()}_token": piece for piece in SPECIALS},
        "tokenizer_class": "PreTrainedTokenizerFast",
    },
}

STEPS = 40
STAGE = f"""
[[stage]]
steps = {STEPS}
batch_size = 16
window = 4
warmup = 3
validate_every = 20
"""
STUDENT = f"""
name = "student"
languages = ["de", "fr"]
teacher_layers = [0, 2]
space = "tiny-bert"
max_length = 24
[corpus]
files = ["pairs.tsv", "english.tsv"]
validation_share = 0.1
validation_pairs = 20
[vocabulary]
size = 360
{STAGE}
name = "rows"
num_layers = 0
table_learning_rate = 0.02
objectives = {{ embedding_match = 1 }}
{STAGE}
name = "frozen"
num_layers = 2
learning_rate = 0
table_learning_rate = 1e-3
objectives = {{ distil = 1, similarity_distil = 10 }}
prefixes = [16, 32]
{STAGE}
name = "everything"
num_layers = 2
table_learning_rate = 1e-3
learning_rate = 1e-4
dropout = 0.1
order = "cluster"
clusters = 5
objectives = {{ align = 1, distil = 1, similarity_distil = 10 }}
layer_prefixes = [0, 2]
"""


def write_tiny_bert(folder: Path, words: Sequence[str] = WORDS, layers: int = 3, **config: object) -> Path:
    """Write the folder, with a configuration of BERT that differs as given."""
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True)
    pieces = [*SPECIALS, *words]
    torch.manual_seed(5)
    shape: dict[str, object] = {
        "vocab_size": len(pieces),
        "hidden_size": WIDTH,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 40,
        "layer_norm_eps": 1e-7,
    }
    model = BertModel(BertConfig(**shape | config))
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter.data, std=0.2).add_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    for path in MODULES.values():
        (folder / path).mkdir(exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def write_student(folder: Path) -> Path:
    """Write a recipe on its layers, beside pairs and English sentences alone."""
    write_toy_corpus(folder / "pairs.tsv")
    texts = [pair[2] for pair in toy_pairs(200, seed=7)]
    (folder / "english.tsv").write_text("".join(f"wiki\t{text}\n" for text in texts))
    (folder / "student.toml").write_text(STUDENT)
    return folder / "student.toml"
