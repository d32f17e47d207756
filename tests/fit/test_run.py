"""A fit under way: problems that run out come again anew, and every answer is kept, counted and shared."""

import pytest
import torch

import dprm
from dprm.fit import OnPolicy, Run, fit
from dprm.fit.branching import Branching
from dprm.host.host import Problems
from tests.toy_host import ToyHost

HOST = ToyHost()
ORDER = dprm.Order()
FEW = {split: [([2] * 4, f"{split} {number}") for number in range(10)] for split in ("fit", "select", "test")}


def few_problems(fit_problems=FEW["fit"]):
    return dprm.make_host("few", HOST.model(), 2, {**FEW, "fit": fit_problems}, lambda tokens, facts: 0.0)


def test_when_problems_run_out_the_same_come_again_with_other_random_numbers():
    run = Run(few_problems(), 1000)
    run.reserve(25)
    first, second = run.take(7), run.take(18)
    keys = torch.cat([first.key, second.key])
    assert len(keys.unique()) == 25
    assert bool((keys >= 0).all())
    # They stay together in folds, and are what they were.
    groups = torch.cat([first.groups, second.groups])
    assert torch.equal(groups[:10], keys[:10])
    assert torch.equal(groups[10:20], keys[:10])
    assert list(second.facts[3:13]) == [*first.facts, *second.facts[:3]]


def test_no_problem_of_the_fit_split_comes_twice_before_all_have_come():
    run = Run(HOST, 1000)
    run.reserve(64)
    assert torch.cat([run.take(40).key, run.take(24).key]).tolist() == HOST.problems("fit", 64).key.tolist()


@pytest.mark.parametrize("asked", ["rewards", "branches", "trajectories"])
def test_an_answer_is_kept_for_all_that_it_depends_on(tmp_path, asked, monkeypatch):
    models = []

    class Watched(ToyHost):
        def model(self):
            plain = super().model()
            return lambda tokens: models.append(len(tokens)) or plain(tokens)

    def answer(host=Watched, order=ORDER, first=0, seed=0, rows=512):
        run = Run(host(), 1000, tmp_path, seed, rows)
        problems = HOST.problems("fit", 30)[first : first + 12]
        if asked == "rewards":
            found = {"": run.rewards(order, problems)}
        elif asked == "branches":
            found = run.branches(order, problems, Branching(states=2, alternatives=2)).tensors()
        else:
            found = run.trajectories(order, problems, 0)
        return found, run.cost

    found, cost = answer()
    models.clear()
    again, cost_again = answer(rows=5)
    probed = sum(models)  # To know whose model it is.
    assert cost == cost_again
    assert all(torch.equal(column.nan_to_num(-1), again[name].nan_to_num(-1)) for name, column in found.items())
    for change in ({"order": dprm.Order(signal="random")}, {"first": 12}, {"seed": 1}):
        models.clear()
        answer(**change)
        assert sum(models) > probed, change


def test_the_price_counts_what_choosing_settings_costs():
    run = Run(HOST, 1000)
    assert run.steps == 4.0
    assert run.cost.calls == 8 * 4
    run.rewards(ORDER, run.take(10))
    assert (run.cost.calls, run.cost.rollouts) == (18 * 4, 18)


def test_progress_is_said_inside_of_rounds():
    said = []
    setting = OnPolicy(prompts=32, samples=4)
    fit(setting, HOST, calls=1200, rows=16, on_progress=lambda calls, what: said.append((calls, what)))
    calls = [count for count, _ in said]
    assert calls == sorted(calls)
    assert len(set(calls)) > 1200 / 4 / 16
    assert {what for _, what in said} == {"trial", "trajectories"}


def test_a_host_without_fit_problems_is_named():
    class Nothing(ToyHost):
        def problems(self, split, count, seed=0):
            posed = super().problems(split, count, seed)
            return posed[:0] if split == "fit" else posed

    with pytest.raises(ValueError, match="host toy has no problems of the fit split: a fit needs at least one"):
        Run(Nothing(), 1000)


def test_bad_problems_of_a_host_are_named_before_any_work():
    class Twice(ToyHost):
        def problems(self, split, count, seed=0):
            posed = super().problems(split, count, seed)
            return Problems(posed.canvas, posed.key * 0, posed.facts)

    with pytest.raises(ValueError, match=r"problems of the fit split\.key\[row 1\] is 0, that of row 0 again"):
        Run(Twice(), 1000)
