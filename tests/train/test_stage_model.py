"""The losses of a stage: prefixes stand alone, frozen things stay."""

import pytest
import torch
from stages import DIM, MASKABLE, PAIRS, model_and_batch

from xsent_train import model as encoders
from xsent_train.data.masking import Labelled, hide
from xsent_train.devices import launch
from xsent_train.losses import Whitening, align, sentence_ctl, similarity_distil
from xsent_train.objectives import Objectives
from xsent_train.recipe import StageConfig
from xsent_train.tokens import Packing, Tokens, group_of

PLAIN = dict.fromkeys(("smlm", "xtr", "ugt", "align", "sim", "sentence_ctl", "distil", "contrastive_distil"), 1)
# Of the negatives all there are: no chance involved.
EVERYTHING = Objectives(**PLAIN, mlm={"share": 0.4}, tlm={"share": 0.4}, word_ctl={"negatives": 10_000})
STAGE = StageConfig(name="all", num_layers=2, steps=1, batch_size=PAIRS, table_learning_rate=0.1, objectives=EVERYTHING)


def changed(**settings: object) -> StageConfig:
    """The stage with other settings, checked like any."""
    return StageConfig(**{**dict(STAGE), **settings})


def test_every_objective_has_a_gradient() -> None:
    model, batch = model_and_batch(STAGE)
    losses = model(batch)
    assert set(losses) == set(EVERYTHING.weights) and len(losses) == 11
    torch.stack(list(losses.values())).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.abs().max() > 0, name


def test_a_step_reads_no_result_that_a_gpu_would_have_to_be_waited_for() -> None:
    objectives = Objectives(distil=1, similarity_distil=1, align={"weight": 1})
    model, batch = model_and_batch(changed(objectives=objectives))
    model(batch)  # looks at the queries of readouts once
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as step:
        torch.stack(list(model(batch).values())).sum().backward()
    names = [event.name for event in step.events()]
    assert "aten::addmm" in names
    assert {"aten::_local_scalar_dense", "aten::nonzero"}.isdisjoint(names)


def test_everything_is_made_on_the_device_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a GPU: what is made without naming the inputs' device lands on another one, and the two do not mix.
    monkeypatch.setattr(encoders, "packing", lambda lengths: Packing([group_of(lengths)]))
    more = {"align": {"margin": 0.1}, "contrastive_distil": {"ignore_above": 0.9}, "similarity_distil": 1}
    objectives = Objectives(**{**dict(EVERYTHING), **more})
    model, batch = model_and_batch(changed(ignore_above=0.9, prefixes=(4, DIM), objectives=objectives))
    with torch.device("meta"):
        losses = model(batch)
        torch.stack(list(losses.values())).sum().backward()
    assert len(losses) == 12
    assert {p.grad.device.type for p in model.parameters() if p.grad is not None} == {"cpu"}


def test_layer_and_dimension_prefixes_are_trained_to_stand_alone_and_frozen_layers_stay() -> None:
    wanted = Objectives(align=1)
    stage = changed(objectives=wanted, prefixes=(4, DIM), layer_prefixes=(0, 2), learning_rate=0.0)
    model, batch = model_and_batch(stage)
    assert [name for name, p in model.encoder.named_parameters() if p.requires_grad] == ["table.weight"]
    loss = model(batch)["align"]
    expected = []
    tokens = [side.tokens for side in batch.hiding.read]
    for depth in (0, 2):
        u, v = (model.encoder.first(depth)(side) for side in tokens)
        expected += [align(u[:, :d], v[:, :d], temperature=0.05) for d in (4, DIM)]
    assert loss.item() == pytest.approx(torch.stack(expected).mean().item(), rel=1e-5)


def test_the_english_side_is_encoded_and_learns_only_where_an_objective_reads_it() -> None:
    left = {"english": False}
    for wanted in (Objectives(align=1), Objectives(distil=left), Objectives(distil=1, xtr=1)):
        assert not wanted.takes_english_alone
    assert not Objectives(distil=left, contrastive_distil={"english": False}).reads_english
    assert Objectives(distil=left, contrastive_distil=1).reads_english
    assert Objectives(distil=left, align=1).reads_english
    alone, beside = (changed(objectives=Objectives(distil=left, xtr=xtr)) for xtr in (None, 1))
    first, batch = model_and_batch(alone)
    second, _ = model_and_batch(beside)
    second.load_state_dict(first.state_dict(), strict=False)
    whole = [Labelled(side, torch.full_like(side.ids, -1)) for side in batch.hiding.sides]  # nothing is hidden
    loss = first(batch)["distil"]
    loss.backward()
    gradient = first.encoder.table.weight.grad
    touched = set(gradient.abs().sum(dim=1).nonzero()[:, 0].tolist())
    translations = batch.hiding.sides[1].ids.tolist()
    assert touched == {*translations, first.encoder.config.first, first.encoder.config.last}
    hidden = hide(batch.hiding.sides, beside.objectives, MASKABLE, 20, torch.Generator())
    other = second(batch._replace(hiding=hidden._replace(read=whole)))["distil"]
    assert loss.item() == pytest.approx(other.item())


def test_a_teachers_cosines_are_asked_of_both_sides_and_all_prefixes() -> None:
    stage = changed(num_layers=0, objectives=Objectives(similarity_distil=1), prefixes=(4, DIM))
    model, batch = model_and_batch(stage)
    assert model.projection is None and stage.objectives.reads_english  # cosines need no common dimension
    u, v = (model.encoder.static(side.tokens) for side in batch.hiding.read)
    expected = [similarity_distil(side[:, :d], u[:, :d], batch.teacher) for side in (u, v) for d in (4, DIM)]
    assert model(batch)["similarity_distil"].item() == pytest.approx(torch.stack(expected).mean().item())


@pytest.mark.parametrize(
    ("num_layers", "objectives"),
    [
        (2, Objectives(align=1, sim=1, sentence_ctl=1, distil=1, contrastive_distil=1, similarity_distil=1)),
        (0, Objectives(embedding_match=1)),
    ],
)
def test_english_alone_is_a_pair_with_itself(num_layers: int, objectives: Objectives) -> None:
    assert objectives.takes_english_alone
    stage = changed(num_layers=num_layers, objectives=objectives)
    model, batch = model_and_batch(stage, teacher_dim=DIM)
    model.whitening = Whitening.fit(torch.randn(40, DIM).double())
    english, translation = batch.hiding.sides
    there = torch.tensor([True, False] * 4)[:PAIRS]
    kept = Tokens(translation.ids[there[translation.sentence]], translation.lengths * there)
    parts = [(translation if there[i] else english).part(i, i + 1) for i in range(PAIRS)]
    doubled = Tokens(torch.cat([part.ids for part in parts]), torch.cat([part.lengths for part in parts]))
    losses = []
    for other in (kept, doubled):
        hiding = hide((english, other), objectives, MASKABLE, 20, torch.Generator())
        found = model(batch._replace(hiding=hiding))
        losses.append({name: float(loss.detach()) for name, loss in found.items()})
    assert losses[0] == pytest.approx(losses[1]) and set(losses[0]) == set(objectives.weights)


def test_bfloat16_leaves_vectors_and_what_the_teacher_says_as_they_are() -> None:
    objectives = Objectives(distil=1, contrastive_distil={"ignore_above": 0.9}, similarity_distil=1, align=1)
    model, batch = model_and_batch(changed(num_layers=0, objectives=objectives), teacher_dim=DIM)
    model, batch = model.float(), batch._replace(teacher=batch.teacher.float(), queue=batch.queue.float())
    expected = {name: loss.item() for name, loss in model(batch).items()}
    model.mixed = True
    module, _ = launch(1).setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert {name: loss.item() for name, loss in module(batch).items()} == expected


def test_a_copy_is_told_from_its_pair_however_near_and_nobody_taught_it() -> None:
    stage = changed(objectives=Objectives(align=1, distil=1, similarity_distil=1))
    model, batch = model_and_batch(stage, DIM)
    kept, alike = PAIRS - 2, torch.zeros(PAIRS, dtype=torch.long)
    copies = batch._replace(group=alike, teacher=batch.teacher[:kept], copied=torch.tensor([1, 3]))
    losses = model(copies)
    u, v, *_ = model._encode(batch.hiding)
    ignore = ~torch.eye(PAIRS, dtype=torch.bool)
    for copy, pair in ((kept, 1), (kept + 1, 3)):
        ignore[copy, pair] = ignore[pair, copy] = False
    assert losses["align"].item() == pytest.approx(align(u[-1], v[-1], temperature=0.05, ignore=ignore).item())
    sides = u[-1, :kept], v[-1, :kept]
    near = [similarity_distil(side, sides[0], batch.teacher[:kept]).item() for side in sides]
    assert losses["similarity_distil"].item() == pytest.approx(sum(near) / 2)
    cosines = [torch.cosine_similarity(side, batch.teacher[:kept]).mean().item() for side in sides]
    assert losses["distil"].item() == pytest.approx(1 - sum(cosines) / 2)


def test_text_of_one_language_finds_its_shuffled_copy() -> None:
    assert not Objectives(sentence_ctl=1).takes_english_alone
    assert not Objectives(sentence_ctl={"shuffled": True}, ugt=1).takes_english_alone
    objectives = Objectives(mlm=1, tlm=1, word_ctl=1, sentence_ctl={"shuffled": True})
    assert objectives.takes_english_alone
    model, batch = model_and_batch(changed(objectives=objectives))
    english = batch.hiding.sides[0]
    alone = Tokens(english.ids[:0], torch.zeros_like(english.lengths))
    batch = batch._replace(hiding=hide((english, alone), objectives, MASKABLE, 20, torch.Generator().manual_seed(1)))
    u, v = (model.encoder(side.tokens) for side in batch.hiding.read)
    losses = model(batch)
    assert losses["sentence_ctl"].item() == pytest.approx(sentence_ctl(u, v, temperature=0.05).item(), rel=1e-5)
    assert all(loss.isfinite() for loss in losses.values())
