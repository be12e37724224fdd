"""Scored pairs, and queries with passages: how they are read, drawn and learnt from."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import raises
from stages import PAIRS, model_and_batch
from torch import Tensor
from toy import EVERY_KIND, KINDS, write_toy_passages, write_toy_recipe, write_toy_scored
from trainings import assert_same_weights, kill_in_the_middle, train

from xsent.errors import DataError
from xsent_train.checkpoint import load_checkpoint
from xsent_train.data.corpus import Pair, Passages, ScoredPair, ScoredPairs
from xsent_train.data.passages import Asked, PassageBatches, equal
from xsent_train.data.scored import ScoredBatch, ScoredBatches, sentences
from xsent_train.data.store import Store, build_store
from xsent_train.data.versions import Versions
from xsent_train.losses import align, distil, similarity
from xsent_train.objectives import Objectives, Retrieve, Similarity
from xsent_train.recipe import PassagesConfig, StageConfig
from xsent_train.tokens import to_tokens

SCORED = "news\tfr\t7\tIl pleut.\tIl neige.\t2.5\n"
PASSAGE = "help\t3\tquestion\tde\tWas ist ein Bit?\tEin Bit ist eine Ziffer.\n"
UNTAUGHT = ("distil = 1\n", "")


def store_of(folder: Path, lines: Passages | ScoredPairs, tokenizer: Path) -> Store:
    build_store(folder, lines, tokenizer, key="k", max_length=30, threads=1)
    return Store(folder)


@pytest.fixture
def scored(tmp_path: Path, toy_tokenizer: Path) -> Store:
    return store_of(tmp_path / "s", ScoredPairs([write_toy_scored(tmp_path / "scored.tsv")]), toy_tokenizer)


@pytest.fixture
def passages(tmp_path: Path, toy_tokenizer: Path) -> Store:
    return store_of(tmp_path / "p", Passages([write_toy_passages(tmp_path / "passages.tsv")]), toy_tokenizer)


def batches_of(passages: Store, table: Tensor | None = None, **settings: float) -> PassageBatches:
    wanted = Retrieve(**{"queries": 12, "block": 6, "tokens": 15, "hard": 0.0, **settings})
    config = PassagesConfig(files=["p"], weights={"manual": 0.5})
    return PassageBatches(passages, Versions(passages), config, wanted, 5, 12, table)


def test_a_line_of_each_kind() -> None:
    pair = ScoredPairs.parse(SCORED.encode())
    assert pair == ScoredPair("news", "fr", "7", "Il pleut.", "Il neige.", 2.5)
    assert pair.cell == ("news", "fr") and pair.digest == pair._replace(language="en", first="It rains.").digest
    passage = Passages.parse(PASSAGE.encode())
    assert passage.texts == ("Was ist ein Bit?", "Ein Bit ist eine Ziffer.") and passage.cell == ("help", "de question")
    assert passage.digest != passage._replace(source="wiki").digest


@pytest.mark.parametrize(
    ("reader", "good", "bad", "message"),
    [
        (ScoredPairs, SCORED, "news\tfr\t7\tIl pleut.\tIl neige.\n", "5 fields instead of 6"),
        (ScoredPairs, SCORED, SCORED.replace("2.5", "high"), "the score 'high' is not a number"),
        (ScoredPairs, SCORED, SCORED.replace("2.5", "nan"), "the score 'nan' is not finite"),
        (ScoredPairs, SCORED, SCORED.replace("Il neige.", " "), "an empty field"),
        (Passages, PASSAGE, PASSAGE.replace("question\t", ""), "5 fields instead of 6"),
        (Passages, PASSAGE, PASSAGE.replace("\tde\t", "\tin German\t"), "'in German' is not a language code"),
    ],
)
def test_bad_lines_are_skipped_and_named(
    reader: type[ScoredPairs | Passages],
    good: str,
    bad: str,
    message: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "text.tsv"
    path.write_text(good + bad + good, encoding="utf-8")
    assert len(list(reader([path], frozenset(["fr", "de"])))) == 2
    assert f"{path}:2: skipped, {message}" in caplog.text
    path.write_text(bad, encoding="utf-8")
    raises(DataError, r"text\.tsv: no usable .*; expected source, ", list, reader([path]))
    raises(DataError, r"text\.tsv: no usable .* in ja; expected", list, reader([path], frozenset(["ja"])))


def test_sentences_have_their_english_forms() -> None:
    english = ScoredPair("news", "en", "7", "It rains.", "It snows.", 2.5)
    french = ScoredPairs.parse(SCORED.encode())
    alone = french._replace(number="8")
    assert list(sentences([french, english, alone])) == [
        Pair("news", "fr", "It rains.", "Il pleut."),
        Pair("news", "fr", "It snows.", "Il neige."),
        Pair("news", "en", "It rains.", ""),
        Pair("news", "en", "It snows.", ""),
        Pair("news", "fr", "Il pleut.", ""),
        Pair("news", "fr", "Il neige.", ""),
    ]


def test_scored_pairs_are_drawn_in_one_language_or_two(scored: Store) -> None:
    for across in (0.0, 1.0):
        batches = ScoredBatches(scored, Versions(scored), Similarity(pairs=10, across=across), 3, 20)
        rows = [batches.rows(step) for step in range(60)]
        first, second = (np.concatenate(side) for side in zip(*rows, strict=True))
        assert (scored.group[first] == scored.group[second]).all()
        # Every pair once in each round of three steps.
        assert len(set(scored.group[first[:30]])) == 30
        same = (scored.languages[first] == scored.languages[second]).mean()
        assert same == 1 if across == 0 else same == pytest.approx(1 / 3, abs=0.05)
        assert len(set(scored.languages[first])) == 3
    assert np.array_equal(batches.rows(7)[0], batches.rows(7)[0])
    assert (batches[0].score == torch.from_numpy(scored.score[batches.rows(0)[0]])).all()


@pytest.mark.parametrize("across", [0.0, 0.5, 1.0])
def test_the_language_is_no_clue_to_the_answer(passages: Store, across: float) -> None:
    batches = batches_of(passages, across=across)
    sources = np.array([source for source, _ in passages.cells])[passages.cell]
    languages = Versions(passages).language
    own, others = [], []
    for step in range(150):
        asked, answers = batches.rows(step)
        assert (passages.group[asked] == passages.group[answers]).all()
        for block in np.arange(12).reshape(2, 6):
            here, there = asked[block], answers[block]
            assert len(set(sources[here])) == 1 and len(set(passages.group[here])) == 6
            found = {*languages[here], *languages[there]}
            assert len(found) <= 2
            if len(found) == 1:
                assert (here == there).all()  # the answer in its own language is its own
                continue
            own += list(languages[here] == languages[there])
            same = languages[here][:, None] == languages[there]
            others += list(same[~np.eye(6, dtype=bool)])
    assert np.mean(own) == pytest.approx(1 - across, abs=0.05)
    assert np.mean(others) == pytest.approx(0.5, abs=0.05)  # whatever language a query is in, half of the others are


def test_weights_and_kinds_of_queries(passages: Store) -> None:
    def share(source: str, kind: str, **settings: object) -> float:
        batches = batches_of(passages)
        config = PassagesConfig(files=["p"], temperature=1.0, **settings)
        batches = PassageBatches(passages, Versions(passages), config, batches.wanted, 5, 12, None)
        asked = np.concatenate([batches.rows(step)[0] for step in range(150)])
        cells = [passages.cells[cell] for cell in passages.cell[asked]]
        return np.mean([cell[0] == source and kind in cell[1] for cell in cells])

    assert share("guide", "") == pytest.approx(120 / 140, abs=0.06)  # by its rows
    assert share("guide", "", weights={"manual": 0}) == 1
    assert share("guide", "question", weights={"manual": 0}, kinds={"heading": 0}) == 1
    raises(DataError, "kinds that no query has: titel; there are heading, question", share, "", "", kinds={"titel": 1})


def test_a_source_too_small_for_a_block_is_left_out(passages: Store) -> None:
    batches = batches_of(passages, block=30, queries=60)  # 20 of manual, 40 of guide
    sources = np.array([source for source, _ in passages.cells])[passages.cell]
    assert set(sources[np.concatenate([batches.rows(step)[0] for step in range(10)])]) == {"guide"}
    message = "no source has 50 passages in a language; set a smaller block of retrieve"
    raises(DataError, message, batches_of, passages, block=50, queries=50)


def test_neighbours_are_nearer_than_chance(passages: Store) -> None:
    torch.manual_seed(0)
    table = torch.randn(5000, 64)

    def nearest(hard: float) -> float:
        batches = batches_of(passages, table, hard=hard)
        found = []
        for step in range(40):
            _, answers = batches.rows(step)
            versions, near = batches.versions, batches_of(passages, table, hard=0.5)._near
            vectors = near[versions.content[answers[:6]]]
            cosines = vectors @ vectors.T - 2 * np.eye(6)
            assert cosines.max() <= 1
            found.append(cosines.max(axis=1).mean())
        return float(np.mean(found))

    assert nearest(0.5) > nearest(0.0) + 0.1


def test_equal_sentences_have_one_number() -> None:
    assert equal(to_tokens([[5, 6], [7], [5, 6], [], [6, 5]])).tolist() == [0, 1, 0, 2, 3]


def test_similarity_by_hand() -> None:
    u, v = torch.tensor([[1.0, 0], [1, 0], [2, 0]]), torch.tensor([[3.0, 0], [0, 1], [1, math.sqrt(3)]])  # 1, 0, 1/2
    assert similarity(u, v, torch.tensor([5.0, 1, 3])).item() == pytest.approx(0, abs=1e-6)
    assert similarity(u, v, torch.tensor([1.0, 5, 3])).item() == pytest.approx(2)
    # Centred 1/2, -1/2, 0 and 1, 1, -2: no correlation; with 2, 0, 1 less 1 and 2: half the root of three.
    assert similarity(u, v, torch.tensor([3.0, 3, 0])).item() == pytest.approx(1)
    assert similarity(u, v, torch.tensor([1.0, 0, 0])).item() == pytest.approx(1 - math.sqrt(3) / 2)
    depths = similarity(torch.stack([u, v]), torch.stack([v, v]), torch.tensor([5.0, 1, 3]))
    assert depths.tolist() == pytest.approx([0, 1], abs=1e-6)  # cosines that are all 1 agree with nobody
    assert similarity(u, v, torch.ones(3)).item() == 1


def stage_of(**objectives: object) -> StageConfig:
    shape = {"num_layers": 2, "layer_prefixes": (1, 2), "batch_size": PAIRS, "steps": 1, "exit_weight": 0.5}
    return StageConfig(name="s", **shape, objectives=Objectives(**objectives))


def vectors_of(model: torch.nn.Module, sentences: list[list[int]]) -> Tensor:
    tokens = to_tokens(sentences)
    return model.encoder.vectors_and_states(tokens, [1, 2], torch.empty(0, dtype=torch.long))[0]


FIRST, SECOND = [[5, 6, 7], [8, 9], [10], [11, 5]], [[7, 6], [8, 9, 4], [12, 13], [14]]


def test_the_losses_of_other_text_in_a_batch() -> None:
    stage = stage_of(distil=2, similarity=1, retrieve={"weight": 1, "temperature": 0.1})
    model, batch = model_and_batch(stage, teacher_dim=16)
    a, b = vectors_of(model, FIRST), vectors_of(model, SECOND)
    score, seen = torch.tensor([1.0, 2, 3, 5]).double(), torch.randn(12, 16).double()
    sides = to_tokens(FIRST), to_tokens(SECOND)
    pairs = ScoredBatch(sides, score, seen[:8])
    # Two blocks of two; in the second, both have the same answer.
    asked = Asked(sides, torch.tensor([0, 0, 1, 1]), torch.arange(4), torch.tensor([0, 1, 2, 2]), seen[8:])
    losses = model(batch._replace(scored=pairs, asked=asked))
    plain = model(batch)
    assert set(losses) == {"distil", "similarity", "retrieve"} and set(plain) == {"distil"}

    def weighed(loss: Tensor) -> float:
        return float((0.5 * loss[0] + loss[1]).detach() / 1.5)

    assert losses["similarity"].item() == pytest.approx(weighed(similarity(a, b, score)))
    first = align(a[:, :2], b[:, :2], temperature=0.1)
    assert losses["retrieve"].item() == pytest.approx(weighed(first) / 2)  # the other two have nothing to be told from
    # Every sentence counts as much: both sides of 8 pairs, those of 4 scored pairs, 4 queries.
    parts = weighed(distil(torch.cat([a, b], dim=1), seen[:8])), weighed(distil(a, seen[8:]))
    assert losses["distil"].item() == pytest.approx((16 * plain["distil"].item() + 8 * parts[0] + 4 * parts[1]) / 28)


def test_without_objectives_of_pairs_no_pair_is_read() -> None:
    model, batch = model_and_batch(stage_of(similarity=1))
    sides = to_tokens(FIRST), to_tokens(SECOND)
    pairs = ScoredBatch(sides, torch.tensor([1.0, 2, 3, 5]).double(), None)
    model._encode = None  # type: ignore[assignment]
    assert set(model(batch._replace(scored=pairs))) == {"similarity"}


def toy_recipe(folder: Path, *changes: tuple[str, str], minutes: float = 60) -> Path:
    """A table of words, then a stage of every kind of text."""
    recipe = write_toy_recipe(folder, ("steps = 150", "steps = 20"), minutes=minutes)
    text = recipe.read_text()
    text = text[: text.rindex("[[stage]]")].replace("[[stage]]", KINDS + "[[stage]]") + EVERY_KIND
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    recipe.write_text(text)
    write_toy_scored(folder / "scored.tsv")
    write_toy_passages(folder / "passages.tsv")
    return recipe


def test_a_stage_of_every_kind_of_text_resumes_to_the_bit(
    tmp_path: Path, mini_bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = train(toy_recipe(tmp_path), tmp_path / "whole", teacher=mini_bundle)
    recipe, run = toy_recipe(tmp_path, minutes=0), tmp_path / "run"
    command = ["xsent-train", str(recipe), "--data", str(tmp_path), "--out", str(run), "--threads", "1"]
    kill_in_the_middle([*command, "--teacher", str(mini_bundle)], run, "kinds", 9, write=790)
    assert_same_weights(train(recipe, run, teacher=mini_bundle), whole)
    row = (run / "log.jsonl").read_text()
    assert '"similarity": ' in row and '"retrieve": ' in row
    # Another text under the same name is another training.
    with open(tmp_path / "passages.tsv", "a", encoding="utf-8") as file:
        file.write("\t".join(["manual", "x", "question", "en", "blue fish", "one blue fish"]) + "\n")
    with pytest.raises(DataError, match=r"kinds-0000009 was trained with other settings \(passages: '\w+' became"):
        train(recipe, run, teacher=mini_bundle)


def test_what_the_objectives_need(tmp_path: Path) -> None:
    for change, message in (
        (('[scored]\nfiles = ["scored.tsv"]\n', ""), r"objective similarity of stage 'kinds' needs a table \[scored\]"),
        (("block = 6", "block = 5"), r"retrieve: block = 5 must divide queries = 12"),
        (('"passages.tsv"', '"nowhere.tsv"'), "nowhere.tsv: missing; name the data folder"),
    ):
        raises(DataError, message, train, toy_recipe(tmp_path, UNTAUGHT, change), tmp_path / "run")
    recipe = toy_recipe(tmp_path, UNTAUGHT)
    text = recipe.read_text()
    first = text[: text.index("[[stage]]")] + text[text.rindex("[[stage]]") :].replace("swapped = 0.25\n", "")
    recipe.write_text(first)
    raises(DataError, "retrieve.hard needs a trained encoder to start from.*--start", train, recipe, tmp_path / "run")


def test_a_start_teaches_itself_and_loses_the_direction_of_language(deep_checkpoint: Path, tmp_path: Path) -> None:
    """Its matrices into other spaces stay, as its vectors do."""
    config = load_checkpoint(deep_checkpoint).config
    names = ("num_heads", "ffn_dim", "max_length")
    shape = "".join(f"{name} = {getattr(config, name)}\n" for name in names)
    shape += f'activation = "{config.activation}"\nnorm_eps = {config.norm_eps}\nreadouts = true\n'
    recipe = toy_recipe(tmp_path, ("layer_prefixes = [0, 2]", "layer_prefixes = [0, 1, 2]"))
    text = recipe.read_text()
    text = text.replace("num_heads = 2\nffn_dim = 48\nmax_length = 24\n", shape)
    kinds, neutral = text[text.rindex("[[stage]]") :], '[[stage]]\nname = "neutral"\nlike = "kinds"\nsteps = 0\n'
    recipe.write_text(text[: text.index("[[stage]]")] + kinds + neutral + "language_directions = 2\n")
    given = {"start": deep_checkpoint, "teacher": deep_checkpoint}
    end = load_checkpoint(train(recipe, tmp_path / "run", **given))
    before = load_checkpoint(tmp_path / "run" / "checkpoints" / "kinds-0000009")
    assert end.path.name == "neutral-0000000"
    matrix = load_checkpoint(deep_checkpoint).weights["spaces.their-model"]
    assert torch.equal(end.weights["spaces.their-model"], matrix)
    changed = {name for name, weight in end.weights.items() if not torch.equal(weight, before.weights[name])}
    assert changed == {f"encoder.readouts.{depth}.{part}" for depth in (0, 1, 2) for part in ("weight", "bias")}
    other = train(recipe, tmp_path / "other", **{**given, "teacher": before.path})  # another teacher, another space
    assert "spaces.their-model" not in load_checkpoint(other).weights
