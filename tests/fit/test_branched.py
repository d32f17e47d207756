"""The branched table: what is credited, how rich its cells are, and whether it transfers."""

import pytest
import torch

import dprm
from dprm.evaluate.compare import compare
from dprm.fit.branched import Branched, credited, transfer
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.order.head import Sight
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


def test_credit_is_the_difference_and_the_native_choice_has_none():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 8), dprm.Order())
    cells = dprm.Order(phases=4, bins=8).cells
    stats = credited(branches, cells, beta=1.0, reward_range=(-1.0, 1.0))
    assert int(stats.count.sum()) == int(branches.kept.sum()) + len(branches)


def test_the_branched_table_leaves_the_wrong_order(tmp_path):
    setting = Branched(BRANCHING, phases=4, beta=2.0, ready=8, guidance=4.0)
    policy = setting.fit(HOST, HOST.problems("fit", 32), tmp_path / "p.dprm")
    orders = {"confidence": dprm.Order(), "dprm": dprm.Order.from_policy(policy)}
    card, _ = compare(HOST, HOST.problems("test", 30), orders)
    assert (card.arms["confidence"].mean, card.arms["dprm"].mean) == (0.0, 1.0)
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


def test_a_table_of_noise_does_not_transfer():
    problems = HOST.problems("fit", 200)
    branches = BRANCHING.collect(HOST, problems, dprm.Order())
    cells = dprm.Order(phases=4).cells
    assert transfer(branches, cells, 1.0, (-1.0, 1.0)) > 0.3
    noise = torch.randn(branches.gain.shape, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    branches.gain = torch.where(branches.kept, noise, 0.0)
    assert transfer(branches, cells, 1.0, (-1.0, 1.0)) < 0.02


def test_where_there_is_no_choice_to_make_the_host_keeps_its_order(tmp_path):
    # All four positions in one step: no state leaves an alternative.
    policy = Branched(Branching(width=4)).fit(HOST, HOST.problems("fit", 6), tmp_path / "p.dprm")
    assert int(policy.notes["branches"]) == 0
    assert float(policy.notes["explained"]) == 0.0
    assert not policy.table.value.any()
