"""The tokenizer in the words of Hugging Face: the same ids as SentencePiece, by the reader that people use."""

from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor
from texts import multilingual, train_tokenizer

from xsent.errors import DataError
from xsent.export.huggingface_tokenizer import write_tokenizer
from xsent.train.model import ModelConfig

transformers = pytest.importorskip("transformers")
MAX_LENGTH = 50
STATIC, LAYERS = (ModelConfig(900, 32, num_layers, 4, max_length=MAX_LENGTH) for num_layers in (0, 2))


@pytest.fixture(scope="module")
def processor(tokenizer_of_scripts: Path) -> SentencePieceProcessor:
    return SentencePieceProcessor(model_file=str(tokenizer_of_scripts))


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of_scripts: Path, tmp_path_factory: pytest.TempPathFactory):  # noqa: ANN201  a type of transformers
    folder = tmp_path_factory.mktemp("written")
    write_tokenizer(tokenizer_of_scripts, folder, STATIC)
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def test_ids_are_those_of_sentencepiece_for_every_character(tokenizer, processor: SentencePieceProcessor) -> None:  # noqa: ANN001
    assert isinstance(tokenizer, transformers.PreTrainedTokenizerFast)
    # All but Chinese characters and Korean syllables, which are like each other, and what belongs to nobody. And but
    # those that stand in for others, and one that is two marks, which NFKC joins with the letter before it.
    blocks = (range(1, 0x3400), range(0xA000, 0xAC00), range(0xF900, 0x11000), range(0x1D400, 0x20000))
    others = {0xFDD0, 0xFDD1, 0xFDD2, 0x344}
    texts = [*multilingual(1000), *(f"x{chr(i)}y" for block in blocks for i in block if i not in others)]
    expected = processor.encode(texts)
    got = tokenizer(texts)["input_ids"]
    assert [text for text, ids, same in zip(texts, got, expected, strict=True) if ids != same] == []


def test_layers_read_a_text_between_the_first_and_the_last_token(
    tokenizer_of_scripts: Path, processor: SentencePieceProcessor, tmp_path: Path
) -> None:
    write_tokenizer(tokenizer_of_scripts, tmp_path, LAYERS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    texts = multilingual(200)
    assert tokenizer(texts)["input_ids"] == processor.encode(texts, add_bos=True, add_eos=True)
    long = "the cat " * 100
    expected = [LAYERS.first, *processor.encode(long)[:MAX_LENGTH], LAYERS.last]
    assert tokenizer(long, truncation=True)["input_ids"] == expected
    assert tokenizer.model_max_length == MAX_LENGTH + 2


def train_small(folder: Path, **settings: object) -> Path:
    """A small model, by default of the kind that can be written."""
    return train_tokenizer(folder, ["the cat sleeps", "a dog runs", "two birds sing"] * 20, 300, **settings)


def test_a_small_vocabulary_without_padding(tmp_path: Path) -> None:
    model = train_small(tmp_path)
    write_tokenizer(model, tmp_path, STATIC)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    processor = SentencePieceProcessor(model_file=str(model))
    texts = multilingual(100)
    assert tokenizer(texts)["input_ids"] == processor.encode(texts)
    assert tokenizer.pad_token_id == processor.unk_id()


def test_no_token_is_added_and_long_texts_are_cut(tokenizer, processor: SentencePieceProcessor) -> None:  # noqa: ANN001
    assert tokenizer("")["input_ids"] == []
    batch = tokenizer(["cat", "the cat " * 100], padding=True, truncation=True)
    cat, cats = (processor.encode(text) for text in ("cat", "the cat " * 100))
    assert batch["input_ids"] == [cat + [0] * (MAX_LENGTH - len(cat)), cats[:MAX_LENGTH]]
    assert [sum(mask) for mask in batch["attention_mask"]] == [len(cat), MAX_LENGTH]
    assert tokenizer.decode(tokenizer("The cat, è 猫 🙂 sleeps.")["input_ids"]) == "the cat, è 猫 🙂 sleeps."


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model_type": "bpe"}, "expected a unigram model with byte fallback"),
        ({"byte_fallback": False}, "expected a unigram model with byte fallback"),
        ({"normalization_rule_name": "identity"}, "expected normalisation nmt_nfkc_cf, got identity"),
        ({"add_dummy_prefix": False}, "one put before the text"),
        ({"user_defined_symbols": ["<city>"]}, "symbols of the user"),
    ],
)
def test_other_models_are_refused(settings: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        write_tokenizer(train_small(tmp_path, **settings), tmp_path, STATIC)
    assert reason in str(caught.value) and "use --format onnx" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "tokenizer.json").exists()


def test_the_same_model_gives_the_same_bytes(tokenizer_of_scripts: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_tokenizer(tokenizer_of_scripts, tmp_path / name, STATIC)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
