"""The translator: loss and beam search by hand, a training killed and resumed, and bad input."""

import shutil
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import typer
from conftest import save_encoder
from torch import Tensor
from toy import toy_pairs, write_toy_corpus
from typer.testing import CliRunner

from translation import Translator, TranslatorTraining, beam_search, load_translation_recipe, translation
from xsent_train.checkpoint import load_checkpoint
from xsent_train.model import Encoder, ModelConfig
from xsent_train.tokens import FIRST, LAST, UNK, to_tokens

pytestmark = pytest.mark.slow
SHAPE = {"dim": 32, "num_heads": 2, "ffn_dim": 48, "max_length": 24}
RECIPE = """
name = "toy"
languages = ["de"]
dim = 32
num_heads = 2
ffn_dim = 48
max_length = 24
[corpus]
files = ["pairs.tsv"]
validation_share = 0.1
validation_pairs = 20
[vocabulary]
size = 360
[[stage]]
name = "toy"
num_layers = 2
steps = 12
batch_size = 16
learning_rate = 5e-3
warmup = 5
objectives = { align = {} }
[translator]
decoder_layers = 1
frozen_steps = 4
least = 1
[translator.paper]
de = { random = 34.51 }
"""
pytest.importorskip("sacrebleu")
END, A, B = LAST, 5, 6
Odds = dict[tuple[int, ...], dict[int, float]]


def found(odds: Odds, width: int, penalty: float, most: int = 9) -> list[int]:
    """What is found by the odds after a prefix; after one that has none comes an end for certain."""

    def scores(prefixes: Tensor) -> Tensor:
        found = torch.full((*prefixes.shape[:2], 7), -torch.inf)
        for i, beams in enumerate(prefixes.tolist()):
            for j, (first, *tokens) in enumerate(beams):
                assert first == FIRST
                for piece, chance in odds.get(tuple(tokens), {END: 1.0}).items():
                    found[i, j, piece] = torch.tensor(chance).log()
        return found

    both = beam_search(scores, 2, width=width, most=most, penalty=penalty)
    assert both[0].tolist() == both[1].tolist()  # sentences do not disturb each other
    return both[0].tolist()


def test_a_beam_search_by_hand() -> None:
    odds: Odds = {(): {A: 0.6, B: 0.4}, (A,): {END: 0.5, A: 0.3, B: 0.2}}
    assert found(odds, 1, 0.0) == [A]  # 0.6 x 0.5
    assert found(odds, 2, 0.0) == [B]  # 0.4 x 1.0, which greedy search misses
    odds = {(): {A: 0.6, B: 0.4}, (B,): {B: 0.8, END: 0.2}}
    assert found(odds, 2, 0.0) == [A]  # 0.6, beside 0.4 x 0.8 = 0.32
    assert found(odds, 2, 1.0) == [A]  # log 0.6 / 2 = -0.255, beside log 0.32 / 3 = -0.380
    assert found(odds, 2, 3.0) == [B, B]  # -0.064 beside -0.042
    endless: Odds = {(): {A: 0.9, B: 0.1}, (A,): {A: 0.4, B: 0.6}, (A, B): {A: 1.0}}
    assert found(endless, 1, 1.0, most=3) == [A, B, A]  # its best beam


@pytest.fixture(params=[False, True], ids=["plain", "with vector"])
def translator(request: pytest.FixtureRequest) -> Translator:
    torch.manual_seed(3)
    kept = torch.tensor([0, 1, 2, 3, 4, 7, 8, 11])
    model = Translator(ModelConfig(12, num_layers=1, **SHAPE), 2, kept, with_vector=request.param).eval()
    torch.nn.init.normal_(model.encoder.table.weight)
    return model


def test_the_loss_is_the_smoothed_cross_entropy_of_each_token_after_those_before_it(translator: Translator) -> None:
    sources, targets = [[5, 9, 10], [6, 7, 8, 9, 10]], [[7, 8], [11, 9, 7, 7]]
    row = {7: 5, 8: 6, 11: 7, 9: UNK, LAST: LAST}  # of the decoder's pieces
    encoder, smoothing, losses = translator.encoder, 0.2, []
    with torch.inference_mode():
        given = translator(to_tokens(sources), to_tokens(targets), smoothing)
        for source, target in zip(sources, targets, strict=True):  # one by one, so without any padding
            seen, rows = translator.read(to_tokens([source])), translator.rows
            for i, label in enumerate([*target, LAST]):
                before = torch.tensor([[FIRST, *(row[piece] for piece in target[:i])]])
                state = translator.decode(before, seen, rows)[:, -1]
                logits = state @ rows.T
                if translator.gain:
                    vector = encoder(to_tokens([source]))
                    logits = logits + F.cosine_similarity(vector, rows)
                odds = logits.softmax(dim=1)[0]
                shares = torch.full((8,), smoothing / 8)
                shares[row[label]] += 1 - smoothing
                losses.append(-(shares * odds.log()).sum())
    torch.testing.assert_close(given, torch.stack(losses).mean())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translation")
    write_toy_corpus(folder / "pairs.tsv", 400)
    (folder / "recipe.toml").write_text(RECIPE)
    test = [f"{english}\t{german}\n" for _, language, english, german in toy_pairs(20, seed=9) if language == "de"]
    (folder / "en-de.tsv").write_text("".join(test))
    return folder


@pytest.fixture(scope="module")
def start(data: Path, toy_tokenizer: Path) -> Path:
    torch.manual_seed(1)
    encoder = Encoder(ModelConfig(360, num_layers=2, **SHAPE))
    return save_encoder(encoder, data / "start", toy_tokenizer, data / "pairs.tsv", languages=["en", "de"])


APP = typer.Typer(add_completion=False)
APP.command()(translation)


def run(data: Path, out: Path, start: Path) -> list[str]:
    """The arguments that train and compare the rows."""
    given = ["--recipe", str(data / "recipe.toml"), "--start", str(start), "--out", str(out)]
    return [str(data), *given, "--tatoeba", str(data), "--threads", "1"]


def command(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    result = CliRunner().invoke(APP, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_it_compares_both_rows_and_keeps_them(data: Path, start: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, shown, err = command(*run(data, out, start))
    assert code == 0, err
    kept = [(out / row / "translations.json") for row in ("de-random", "de-start")]
    first = [file.read_bytes() for file in kept]
    kept[1].unlink()  # as if interrupted
    assert command(*run(data, out, start))[1] == shown
    assert [file.read_bytes() for file in kept] == first
    random, started = (line.split() for line in shown.splitlines()[-2:])
    assert (random[:2], started[:2]) == (["de→en", "random"], ["de→en", "start"])
    assert random[-1] == "34.5" and len(started) == len(random) - 1  # the paper has no number of it
    assert 0 <= float(started[2]) <= 100 and float(started[5]) > 0
    changed = Path(shutil.copytree(data, tmp_path / "changed"))
    for old, new, told in [
        ("warmup = 5", "warmup = 6", "toy.warmup: 5 became 6"),
        ("frozen_steps = 4", "frozen_steps = 5", "frozen_steps: 4 became 5"),
    ]:
        (changed / "recipe.toml").write_text(RECIPE.replace(old, new))
        code, _, err = command(*run(changed, out, start))
        assert code == 1 and f"made with other settings ({told}); choose another --out" in err
    (changed / "recipe.toml").write_text(RECIPE)
    (changed / "en-de.tsv").write_text("Other.\tAndere.\n")
    code, _, err = command(*run(changed, out, start))
    assert code == 1 and "another start, or other sentences" in err


def test_the_encoder_starts_from_it_and_waits_for_the_decoder(data: Path, start: Path, tmp_path: Path) -> None:
    recipe, settings = load_translation_recipe(data / "recipe.toml")
    recipe = recipe.model_copy(update={"stages": (recipe.stages[0].model_copy(update={"steps": 4}),)})
    opened, files = load_checkpoint(start), [data / "pairs.tsv"]
    known = opened.weights
    for kind, stays in (("start", True), ("random", False)):
        weights = TranslatorTraining(recipe, settings, files, tmp_path, kind, opened).train().state_dict()
        assert all(torch.equal(weights[name], weight) == stays for name, weight in known.items() if "qkv.w" in name)
        assert "decoder.layers.0.linear1.weight" in weights and (weights["gain"] != 0) == stays


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("pairs.tsv", "\tde\t", "\tfr\t", "no usable pair in de; it has fr 400; expected source, language, English"),
        ("recipe.toml", '["de"]', '["de", "it"]', "no usable pair in it; it has de 200, fr 200; expected source"),
        ("recipe.toml", "dim = 32", "dim = 64", "has dim = 32, the recipe 64; to start from it, use the same value"),
        ("recipe.toml", "num_layers = 2", "num_layers = 3", "has 2 layers, the recipe's translator 3; lower num_lay"),
        ("recipe.toml", "warmup", "warmth", "unknown setting 'warmth'; did you mean"),
        ("recipe.toml", "least", "lest", "translator: unknown setting 'lest'; did you mean 'least'?"),
        (
            "recipe.toml",
            "[translator]",
            '[[stage]]\nname = "more"\nlike = "toy"\n[translator]',
            "remove the others",
        ),
        ("en-de.tsv", None, "", "en-de.tsv: empty; expected lines of English, translation"),
    ],
    ids=["no pairs", "no direction", "width", "depth", "setting", "translator", "stages", "empty test"],
)
def test_bad_input_is_one_line(
    file: str, old: str | None, new: str, expected: str, data: Path, start: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(data, tmp_path / "data"))
    shutil.copy(data / "en-de.tsv", folder / "en-it.tsv")
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace(text if old is None else old, new))
    code, out, err = command(*run(folder, tmp_path / "run", start))
    error = err.splitlines()[-1]
    assert (code, out) == (1, "") and error.startswith("Error: ") and expected in error
    assert not list(tmp_path.glob("run/*/translations.json"))
