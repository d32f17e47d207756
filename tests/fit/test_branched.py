"""Branching, the table and the head that are fitted on it."""

import math

import pytest
import torch

import dprm
from dprm.decode.host import Problems
from dprm.evaluate.compare import compare
from dprm.fit.branched import Branched, credited, transfer
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.fit.head import HeadFit, cautious
from dprm.fit.leaning import Leaning
from dprm.fit.teaching import teach
from dprm.order.basis import LEFT, echoes, names
from dprm.order.guards import HoldBack
from dprm.order.head import Head, HeadShape, Sight
from dprm.order.pace import TURNS
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


def solved(policy, problems=30):
    orders = {"confidence": dprm.Order(), "dprm": dprm.Order.from_policy(policy)}
    card, _ = compare(HOST, HOST.problems("test", problems), orders)
    return card.arms["confidence"].mean, card.arms["dprm"].mean


def test_a_branch_differs_from_its_native_decoding_in_one_choice():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 8), dprm.Order())
    rows = torch.arange(len(branches))
    assert branches.sight.candidates[rows, branches.native].all()
    assert branches.sight.candidates.gather(1, branches.alternative)[branches.kept].all()
    assert (branches.alternative != branches.native.unsqueeze(1))[branches.kept].all()
    # Confidence earns nothing here, so an alternative can only gain, and some do.
    assert branches.gain[branches.kept].min() == 0
    assert branches.gain[branches.kept].max() == 1
    assert branches.cost.rollouts == 8
    assert branches.cost.branches == int(branches.kept.sum())


def test_branches_do_not_depend_on_the_batch():
    problems = HOST.problems("fit", 9)
    whole = BRANCHING.collect(HOST, problems, dprm.Order())
    few = Branching(states=3, alternatives=3, temper=0.0, rows=4).collect(HOST, problems, dprm.Order())
    for name in ("group", "native", "alternative", "kept", "gain"):
        assert torch.equal(getattr(whole, name), getattr(few, name))
    assert whole.cost == few.cost


@pytest.mark.parametrize("width", [1, 2])
def test_a_branch_that_comes_back_is_not_continued(monkeypatch, width):
    setting = Branching(states=3, alternatives=3, temper=0.0, width=width)
    problems = HOST.problems("fit", 20)
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    monkeypatch.setattr("dprm.fit.branching._LOOK", 1)
    short = setting.collect(HOST, problems, dprm.Order())
    monkeypatch.setattr("dprm.fit.branching._LOOK", 100)
    whole = setting.collect(HOST, problems, dprm.Order())
    assert torch.equal(short.gain, whole.gain)
    assert whole.gain.any()
    assert whole.cost.rejoined == 0
    if width == 1:
        assert 0 < short.cost.rejoined < short.cost.branches
        assert short.cost.calls < whole.cost.calls


class Certain(ToyHost):
    """The four bits of the toy, and then eight positions that are certain from the start."""

    def denoiser(self):
        model, sure = super().denoiser(), torch.tensor([9.0, 0.0])
        return lambda tokens: torch.cat([model(tokens[:, :4]), sure.expand(len(tokens), 8, 2)], dim=1)

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return Problems(torch.full((count, 12), self.mask_id), posed.key, posed.facts)

    def reward(self, problems, tokens):
        return super().reward(problems, tokens[:, :4])


def test_what_is_certain_is_revealed_together_and_changes_no_difference(monkeypatch):
    host = Certain()
    # Far behind: the unsure four come first, and what is certain would take a step each.
    order = dprm.Order(signal=lambda reading: 1.0 - 0.9 * (reading.confidence > 0.99).float())
    problems, setting = host.problems("fit", 20), Branching(states=3, alternatives=3, temper=0.0, width=1)
    quick = setting.collect(host, problems, order)
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    slow = setting.collect(host, problems, order)
    assert torch.equal(quick.gain, slow.gain)
    assert quick.gain.any()
    native = 12 * len(problems)
    assert (quick.cost.calls - native) < 0.5 * (slow.cost.calls - native)


def test_what_a_host_holds_back_is_not_revealed_early(monkeypatch):
    host = Certain()
    host.guard = HoldBack((0,))
    problems, setting = host.problems("fit", 6), Branching(states=2, alternatives=2, width=1)
    guarded = setting.collect(host, problems, dprm.Order())
    assert guarded.kept.any()
    assert (guarded.sight.tokens.gather(1, guarded.alternative) != 0)[guarded.kept].all()
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    assert setting.collect(host, problems, dprm.Order()).cost == guarded.cost


def test_two_certain_positions_are_not_compared():
    class Sure(ToyHost):
        def denoiser(self):
            return lambda tokens: torch.tensor([20.0, 0.0, 0.0]).expand(*tokens.shape, 3)

    branches = BRANCHING.collect(Sure(), HOST.problems("fit", 4), dprm.Order())
    assert not branches.kept.any()
    assert branches.cost.branches == 0


def test_positions_far_behind_are_tried_too():
    head = Head(HeadShape(), support=1000).requires_grad_(False)
    head.linear.weight.copy_(Leaning(LEFT, -1000.0).weight(head.shape))
    order = dprm.Order(head=head, guidance=1.0, signal="odds")
    branches = Branching(states=4, alternatives=1, temper=0.3).collect(HOST, HOST.problems("fit", 400), order)
    first = branches.sight.candidates.all(1)
    assert (branches.native[first] == 0).all()
    # The second is 250 log odds ahead of the third; those behind it count as ten behind: e⁻³ : e⁻³ : 1.
    others = float((branches.alternative[first, 0] > 1).float().mean())
    assert others == pytest.approx(2 / (2 + math.exp(3.0)), abs=0.05)


class SureThenUnsure(ToyHost):
    """Eight positions, four of them certain, whatever else is revealed."""

    def denoiser(self):
        confidence = torch.tensor([1 - 1e-5] * 4 + [0.6] * 4)
        logits = torch.stack([confidence.log(), (1 - confidence).log(), torch.full((8,), -30.0)], dim=1)
        return lambda tokens: logits.expand(*tokens.shape, 3)

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return Problems(torch.full((count, 8), self.mask_id), posed.key, posed.facts)

    def reward(self, problems, tokens):
        return torch.zeros(len(tokens))


def test_sure_choices_are_looked_into_where_several_positions_are_revealed():
    host, order = SureThenUnsure(), dprm.Order()
    problems = host.problems("fit", 64)

    def early(even, width):
        found = Branching(states=1, even=even, width=width).collect(host, problems, order)
        return int((found.sight.progress < 0.5).sum())

    assert early(0.0, 1) == early(0.5, 1) == 0
    assert early(0.0, 2) == 0
    assert 0 < early(0.5, 2) < early(1.0, 2) < 64


def test_two_positions_a_step_keep_the_other_one():
    branches = Branching(states=2, alternatives=4, width=2).collect(HOST, HOST.problems("fit", 6), dprm.Order())
    assert (branches.sight.budget == 2).all()
    assert (branches.sight.candidates.sum(1) > 2).all()


def test_branches_survive_a_file(tmp_path):
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 4), dprm.Order())
    branches.save(tmp_path / "b", {"host": "toy"})
    again, header = Branches.load(tmp_path / "b")
    assert header["host"] == "toy"
    assert again.cost == branches.cost
    assert torch.equal(again.sight.confidence, branches.sight.confidence)
    assert torch.equal(again.gain, branches.gain)


def test_held_out_problems_are_whole():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 40), dprm.Order())
    seen = []
    for learned, judged in branches.folds(3):
        assert len(learned) + len(judged) == len(branches)
        assert not set(learned.group.tolist()) & set(judged.group.tolist())
        assert 0 < len(judged) < len(learned)
        seen += judged.group.tolist()
    assert sorted(seen) == sorted(branches.group.tolist())


def test_credit_is_the_difference_and_the_native_choice_has_none():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 8), dprm.Order())
    cells = dprm.Order(phases=4, bins=8).cells
    stats = credited(branches, cells, beta=1.0, reward_range=(-1.0, 1.0))
    assert int(stats.count.sum()) == int(branches.kept.sum()) + len(branches)


def test_the_branched_table_leaves_the_wrong_order(tmp_path):
    setting = Branched(BRANCHING, phases=4, beta=2.0, ready=8, guidance=4.0)
    policy = setting.fit(HOST, HOST.problems("fit", 32), tmp_path / "p.dprm")
    assert solved(policy) == (0.0, 1.0)
    assert int(policy.notes["branches"]) > 0
    assert int(policy.notes["calls"]) > 0
    assert float(policy.notes["explained"]) > 0.3


@pytest.mark.parametrize(("paying", "shape"), [("state", (1, 1, 2)), ("late state", (2, 1, 2)), ("bin", (1, 4, 1))])
def test_cells_are_as_rich_as_other_problems_bear_out(tmp_path, monkeypatch, paying, shape):
    """What pays is known here, but for luck: the cells keep what it depends on and drop the rest."""
    draw = torch.Generator().manual_seed(0)
    states, length = 600, 4
    confidence, progress = torch.rand(states, length, generator=draw), torch.rand(states, generator=draw)
    aux = torch.randint(2, (states, length), generator=draw)
    place = torch.rand(states, length, generator=draw).argsort(1)
    worth = {"state": aux, "late state": aux * (progress >= 0.5).unsqueeze(1), "bin": (confidence * 4).floor() == 2}
    gain = worth[paying].float().gather(1, place)
    luck = 0.5 * torch.randn(states, 2, generator=draw)
    plain = torch.zeros(states, length)
    sight = Sight(plain, confidence, plain, plain, plain == 0, progress, torch.ones(states), aux)
    branches = Branches(
        sight=sight,
        group=torch.arange(states) // 3,
        native=place[:, 0],
        alternative=place[:, 1:3],
        kept=torch.ones(states, 2, dtype=torch.bool),
        gain=(gain[:, 1:3] - gain[:, :1] + luck).clamp(-1, 1),
        cost=Cost(),
    )
    monkeypatch.setattr(Branching, "collect", lambda *given: branches)
    host = ToyHost()
    host.aux_states = 2
    policy = Branched(phases=2, bins=4).fit(host, host.problems("fit", 1), tmp_path / "p.dprm")
    assert policy.cells.shape == shape
    tried = dict(entry.split(": ") for entry in policy.notes["grids"].split(", "))
    assert len(tried) == 6
    assert float(tried[" × ".join(map(str, shape))]) > 0.9 * max(map(float, tried.values())) > 0.1


def head_fit(**others):
    return HeadFit(BRANCHING, rounds=2, trials=8, strengths=(3.0, 30.0), **others)


def test_the_head_leaves_the_wrong_order_and_survives_its_file(tmp_path):
    policy = head_fit().fit(HOST, HOST.problems("fit", 72), tmp_path / "p.dprm")
    assert solved(policy) == (0.0, 1.0)
    loaded = dprm.Policy.load(tmp_path / "p.dprm")
    assert loaded.digest == policy.digest
    assert loaded.header["values"] == "head"
    assert solved(loaded) == (0.0, 1.0)


def test_what_the_trials_chose_is_one_of_the_strengths_not_a_third_setting(tmp_path, monkeypatch):
    monkeypatch.setattr("dprm.fit.head.teach", lambda *given: teach(*given)._replace(spread=0.010224))
    fit = head_fit(worths=())
    policy = fit.fit(HOST, HOST.problems("fit", 72), tmp_path / "p.dprm")
    assert len(fit.guidances(policy)) == 2
    assert policy.guidance in fit.guidances(policy)


def test_a_killed_head_fit_goes_on_to_the_same_policy(tmp_path):
    problems = HOST.problems("fit", 40)
    whole = head_fit().fit(HOST, problems, tmp_path / "whole.dprm")

    def kill(done, explained):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        head_fit().fit(HOST, problems, tmp_path / "cut.dprm", kill)
    again = head_fit().fit(HOST, problems, tmp_path / "cut.dprm")
    assert again.digest == whole.digest
    assert again.notes == whole.notes
    with pytest.raises(ValueError, match="another fit"):
        head_fit(signal="confidence").fit(HOST, problems, tmp_path / "cut.dprm")


def test_a_head_fit_killed_while_it_branches_goes_on_to_the_same_policy(tmp_path, monkeypatch):
    problems = HOST.problems("fit", 40)
    whole = head_fit().fit(HOST, problems, tmp_path / "whole.dprm")
    collect, turns = Branching.collect, []

    def cut(self, *args):
        turns.append(self.seed)
        if len(turns) == 2:
            raise KeyboardInterrupt
        return collect(self, *args)

    monkeypatch.setattr(Branching, "collect", cut)
    with pytest.raises(KeyboardInterrupt):
        head_fit().fit(HOST, problems, tmp_path / "cut.dprm")
    again = head_fit().fit(HOST, problems, tmp_path / "cut.dprm")
    assert (again.digest, again.notes) == (whole.digest, whole.notes)
    assert len(turns) == 3  # The round that was finished was not made again, nor is a whole fit.
    assert head_fit().fit(HOST, problems, tmp_path / "cut.dprm").digest == whole.digest
    assert len(turns) == 3


def test_the_strength_between_rounds_is_the_smallest_that_is_about_as_good():
    base = (torch.arange(100) < 20).double()

    def solving(first, last):
        return base + ((torch.arange(100) >= first) & (torch.arange(100) < last))

    assert cautious({0.0: base, 1.0: solving(20, 50), 3.0: solving(35, 66), 9.0: solving(20, 25)}) == 1.0
    assert cautious({0.0: base, 1.0: solving(20, 25), 3.0: solving(30, 90)}) == 3.0
    assert cautious({0.0: base, 1.0: base}) == 1.0  # It changes nothing here; its branches may tell more.
    assert cautious({0.0: base, 1.0: base * 0.0}) == 0.0
    assert cautious({0.0: base}) == 0.0


def test_a_head_does_not_repeat_what_the_host_takes():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 60), dprm.Order())
    branches.gain -= 0.3
    named = names(1, 4)
    weight = teach(branches, HeadShape()).head.linear.weight.squeeze(0)
    assert weight.any()
    alone = [name for name, value in zip(named, weight.tolist(), strict=True) if value != 0]
    assert not {"host's choice", "turn below 0.9", "first below 0.99", "turn below 0.9 × progress"} & set(alone)
    # With two positions a step turns are worth something.
    assert sum(echoes(1, 4, width=2)) == 1
    assert sum(echoes(1, 4, width=1)) == 1 + 4 * len(TURNS)


def test_a_head_that_was_taught_nothing_is_the_hosts_order():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 20), dprm.Order())
    branches.gain.zero_()
    taught = teach(branches, HeadShape())
    assert taught.explained == 0.0
    assert not taught.head.linear.weight.any()
    reading = dprm.read(torch.randn(5, 4, 2))
    order = dprm.Order(head=taught.head, guidance=100.0, signal="odds")
    candidates = torch.ones(5, 4, dtype=torch.bool)
    chosen = order.select(reading, candidates, 2, 0.0).mask
    assert torch.equal(chosen, dprm.Order().select(reading, candidates, 2, 0.0).mask)


def test_a_table_of_noise_does_not_transfer():
    problems = HOST.problems("fit", 200)
    branches = BRANCHING.collect(HOST, problems, dprm.Order())
    cells = dprm.Order(phases=4).cells
    assert transfer(branches, cells, 1.0, (-1.0, 1.0)) > 0.3
    noise = torch.randn(branches.gain.shape, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    branches.gain = torch.where(branches.kept, noise, 0.0)
    assert transfer(branches, cells, 1.0, (-1.0, 1.0)) < 0.02
