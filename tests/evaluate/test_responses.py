"""A preference is held against the order that serves the opposite one, every replication by itself."""

import pytest
import torch

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.responses import opposites, own_metric, responses
from dprm.host.metrics import Metric, Preference
from dprm.report.responses import response_tables

R, M, Z = "tchebycheff:a=0.9,b=0.075,c=0.025", "tchebycheff:a=0.05,b=0.9,c=0.05", "tchebycheff:a=0.025,b=0.075,c=0.9"
B = "tchebycheff:a=0.45,b=0.35,c=0.2"
PREFERENCES = {"toy-R": R, "toy-M": M, "toy-B": B, "toy-Z": Z, "toy-R-again": R}


def card(seeds=(0,)):
    fits = {"confidence": "", "random": "", **PREFERENCES}
    return Card(
        host="toy",
        split="test",
        problems="p",
        count=60,
        groups=20,
        decoding={"count": "1"},
        metrics=[Metric("a"), Metric("b"), Metric("c")],
        seeds=list(seeds),
        resamples=300,
        reference="confidence",
        arms={
            name: Arm(mean=0.0, nfe=1.0, fit={"preference": fit} if fit else {}, policy=fit or None, guidance=1.0)
            for name, fit in fits.items()
        },
    )


def outcomes(seeds=1):
    """Every order earns 0.5 everywhere, and a little more in its own metric; R does so in two replications only."""
    generator = torch.Generator().manual_seed(0)
    noise = 0.01 * torch.randn(seeds, 60, 3, generator=generator)
    scores = dict.fromkeys(card().arms, 0.5 + noise)
    for column, name in ((0, "toy-R"), (1, "toy-M"), (2, "toy-Z")):
        scores[name] = scores[name].clone()
        scores[name][..., column] += 0.1 + 0.01 * torch.randn(seeds, 60, generator=generator)
    third = torch.arange(60) % 3 == 2
    if seeds == 1:
        scores["toy-R"][0, third, 0] -= 0.1
    else:
        scores["toy-R"][-1, :, 0] -= 0.1
    nfe = {name: torch.ones(seeds, 60, dtype=torch.int64) for name in scores}
    return Outcomes(torch.arange(60), torch.arange(20).repeat_interleave(3), scores, nfe)


def test_the_own_metric_has_most_of_the_weight_and_the_opposite_gives_it_the_least():
    wanted = {name: Preference.read(text) for name, text in PREFERENCES.items()}
    assert [own_metric(wanted[name]) for name in wanted] == ["a", "b", "reward", "c", "a"]
    assert opposites("a", wanted) == ["toy-Z"]
    assert opposites("b", wanted) == ["toy-R", "toy-Z"]  # Both give it as little.
    assert opposites("c", wanted) == ["toy-R"]
    assert opposites("reward", wanted) == []
    assert opposites("a", {"toy-R": wanted["toy-R"]}) == []


@pytest.mark.parametrize("seeds", [1, 3])
def test_every_replication_has_its_own_interval(seeds):
    found = {(each.arm, each.control): each for each in responses(card(range(seeds)), outcomes(seeds))}
    moved = found["toy-Z", "toy-R"]
    assert moved.opposite
    assert moved.always
    assert [interval.estimate for interval in moved.each] == pytest.approx([0.1] * 3, abs=0.02)
    assert moved.together.estimate == pytest.approx(0.1, abs=0.01)
    lost = found["toy-R", "confidence"]
    assert not lost.opposite
    assert [interval.above_zero for interval in lost.each] == [True, True, False]
    assert not lost.always
    assert lost.together.above_zero
    still = found["toy-B", "confidence"]
    assert still.own == "reward"
    assert still.together.estimate == 0.0
    assert ("toy-R-again", "toy-Z") in found


def test_without_replications_nothing_is_always_so():
    alone = outcomes()
    alone = Outcomes(alone.key, alone.key, alone.scores, alone.nfe)
    found = responses(card(), alone)
    assert all(each.each == [] and not each.always for each in found)
    assert any(each.together.above_zero for each in found)


def test_the_page_of_a_host_shows_them(tmp_path):
    card(range(3)).save(tmp_path / "toy-test.json", outcomes(3))
    text = response_tables(tmp_path, "toy", "results")
    assert text.startswith("[toy](results/toy-test.json): 60 of test.")
    assert (
        "| order | its own metric | against | decode seed 1 | decode seed 2 | decode seed 3 | together | always |"
        in text
    )
    assert "| dprm M | b | dprm R (opposite) | +0.100 [" in text
    assert response_tables(tmp_path, "other", "results") == ""
