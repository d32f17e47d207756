"""The host of picture questions: pictures reach the model, cells are told from the canvas, cards show what happened."""

import pytest
import torch

import dprm
from dprm.evaluate.arms import Contender
from dprm.evaluate.compare import compare
from dprm.fit.events import Events
from dprm.host.rollout import Decode
from dprm.hosts.llada_v import cards, model, words
from dprm.hosts.llada_v.host import SIDE, STATES, TASK, PictureData, PictureQuestions, cell_state, format_of
from dprm.order import Reading
from dprm.train.denoiser import Denoiser
from dprm.train.masks import RandomMasks
from dprm.train.recipe import Recipe
from dprm.train.training import Training


@pytest.fixture(scope="module")
def network():
    return TASK.first(32, 1, 0)


@pytest.fixture(scope="module")
def host(network):
    return PictureQuestions(Denoiser(network))


def test_the_picture_is_the_context_of_its_row(host):
    problems = host.problems("fit", 6)
    problems.check()
    assert problems.context.shape == (6, SIDE, SIDE, 3)
    logits = host.model()(problems.canvas, problems.context)
    assert logits.shape == (6, words.LENGTH, words.VOCABULARY)
    other = host.model()(problems.canvas, problems.context.roll(1, 0))
    assert not torch.allclose(logits, other)


def test_patches_are_cut_row_by_row(network):
    pictures = torch.zeros(1, SIDE, SIDE, 3, dtype=torch.uint8)
    before = network.patches(pictures)
    pictures[0, 1 + 10 : 1 + 20, 1 + 20 : 1 + 30] = 255  # The middle row's last cell.
    changed = (network.patches(pictures) != before).any(2)[0]
    assert changed.nonzero().flatten().tolist() == [5]


def test_splits_share_no_scene_and_formats_come_in_turn(host):
    shown = {split: {fact.grid for fact in host.problems(split, 60).facts} for split in ("fit", "select", "test")}
    assert not shown["fit"] & shown["select"]
    assert not shown["fit"] & shown["test"]
    assert not shown["select"] & shown["test"]
    assert [fact.question.format for fact in host.problems("fit", 6).facts] == [0, 1, 2, 0, 1, 2]


def test_the_format_is_told_from_the_words(host):
    for family in ("things", "relations"):
        problems = host.at(family).problems("test", 90)
        assert format_of(problems.canvas).tolist() == [fact.question.format for fact in problems.facts]


def test_cells_tell_position_eot_and_format_apart(host):
    problems = host.problems("fit", 3)
    tokens = torch.full_like(problems.canvas, words.EOT)
    tokens[:, words.QUESTION] = words.TOKEN["3"]
    zeros = torch.zeros(tokens.shape)
    state = cell_state(problems.canvas, Reading(tokens, zeros, zeros, zeros))[:, words.QUESTION :]
    assert state.tolist() == [[0 + 8 * form, 5 + 8 * form, 6 + 8 * form, 7 + 8 * form] for form in range(3)]
    assert int(state.max()) < STATES


def test_both_metrics_are_judged(host):
    problems = host.problems("test", 30)
    right = torch.tensor([words.encoded(fact.question.words, fact.question.reference) for fact in problems.facts])
    assert host.judge(problems, right)[:, 0].tolist() == [1.0] * 30
    assert host.judge(problems, problems.canvas)[:, 0].tolist() == [0.0] * 30


def test_unknown_family_and_split_are_named(host):
    with pytest.raises(ValueError, match="difficulty is 'charts': expected one of things, relations"):
        host.at("charts")
    with pytest.raises(ValueError, match="split is 'dev'"):
        host.problems("dev", 3)
    with pytest.raises(ValueError, match="patch is 40"):
        model.PictureConfig(10, patch=40)


def test_a_training_sees_pictures_and_goes_on_to_the_same_bits(tmp_path):
    recipe = Recipe(rows=8, steps=6, log_every=2)

    def training(folder):
        law = RandomMasks(PictureData(40), recipe.rows)
        return Training(TASK.first(32, 1, 0), law, recipe, tmp_path / folder)

    whole, first = training("whole"), training("parts")
    whole.run()
    first.run(until=3)
    first.save()
    second = training("parts")
    second.run()
    for one, other in zip(whole.average.parameters(), second.average.parameters()):
        assert torch.equal(one, other)
    changed = whole.average.patch_matrix.weight - TASK.first(32, 1, 0).patch_matrix.weight
    assert bool((changed != 0).any())


def test_a_comparison_goes_part_by_part_and_shows_wins_and_losses(host):
    # Later slots have led to more, in every bin of confidence.
    order = dprm.Order(phases=1, bins=8, aux=STATES, ready=1, baseline="global")
    cell = torch.arange(order.cells.count)
    order.observe(Events(len(cell), cell, cell), (cell % words.SLOTS).double() / words.SLOTS)
    learned = dprm.Order.from_policy(order.policy(), rule="top_m", guidance=8.0)
    arms = {"confidence": Contender(Decode()), "dprm": Contender(Decode(learned), {"estimator": "onpolicy"})}
    card = compare(host, host.problems("test", 60), arms, split="test").card
    parts = card.notes["parts"]
    assert {"choice", "count", "open"} <= set(parts)
    assert parts["count"]["count"] == 20
    assert {"mean", "delta", "won", "lost"} <= set(parts["count"]["arms"]["dprm"])
    told = card.notes["mechanism"]["dprm"]["all"]
    assert told["permutations changed"] >= told["first parting"]["rows"] > 0
    assert told["first parting"]["reversal"][0] == 1.0
    assert told["first parting"]["score"][0] > 0 > told["first parting"]["confidence"][0]


def test_cards_are_lines_that_are_drawn(host):
    problems = host.problems("test", 6)
    run = Decode().answer(host, problems, 0, host.model())
    lines = host.gallery(problems, {"confidence": run})
    assert len(lines) == 2
    assert all("wrong, confidence: " in line for line in lines)
    svg = cards.drawn([*lines, "0 0 0 0 5 0 0 0 0 · a <b> & c ? · right, x: 3 1, red 2, □ 3, □ 4"])
    assert svg.count("<g ") == 3
    assert "a &lt;b&gt; &amp; c ?" in svg
