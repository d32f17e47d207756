"""The branched table: what is credited, how rich its cells are, and whether it transfers."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode.counts import Fixed
from dprm.fit import Branched, Branching, fit
from dprm.fit.branched import credited, poorest, transfer
from dprm.fit.branches import Branches
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.order import Cells
from dprm.order.head import Sight
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


def collected(problems):
    return BRANCHING.collect(HOST, HOST.problems("fit", problems), dprm.Order(), HOST.model())[0]


def signed(cells):
    return dprm.Order(*cells.shape, reward_range=(-1.0, 1.0), baseline="none", shrunken=True)


def test_credit_is_the_difference_and_the_native_choice_has_none():
    branches, cells = collected(8), Cells(4, 8)
    stats = credited(HOST, branches, signed(cells), cells)
    assert int(stats.count.sum()) == branches.count + len(branches)


def test_the_branched_table_leaves_the_wrong_order():
    setting = Branched(BRANCHING, phases=4, bins=16, beta=2.0, gate=(0, 0, 8))
    policy = fit(setting, HOST, calls=700).policy
    ways = {"host": Decode(), "dprm": Decode(dprm.Order.from_policy(policy, guidance=4.0))}
    rollouts = decoded(HOST, HOST.problems("test", 30), ways)
    assert rollouts["host"].scores.mean() == 0.0
    assert rollouts["dprm"].scores.mean() == 1.0
    assert int(policy.notes["branches"]) > 0
    assert float(policy.notes["explained"]) > 0.3


@pytest.mark.parametrize(("paying", "shape"), [("state", (1, 1, 2)), ("late state", (2, 1, 2)), ("bin", (1, 4, 1))])
def test_cells_are_as_rich_as_other_problems_bear_out(paying, shape):
    """What pays is known here, but for luck: the cells keep what it depends on and drop the rest."""
    draw = torch.Generator().manual_seed(0)
    states, length = 600, 4
    confidence, progress = torch.rand(states, length, generator=draw), torch.rand(states, generator=draw)
    aux = torch.randint(2, (states, length), generator=draw)
    position = torch.rand(states, length, generator=draw).argsort(1)
    worth = {"state": aux, "late state": aux * (progress >= 0.5).unsqueeze(1), "bin": (confidence * 4).floor() == 2}
    gain = worth[paying].float().gather(1, position)
    luck = 0.5 * torch.randn(states, 2, generator=draw)
    plain = torch.zeros(states, length)
    branches = Branches(
        sight=Sight(plain, confidence, plain, plain, plain == 0, progress, torch.ones(states), aux),
        group=torch.arange(states) // 3,
        native=position[:, 0],
        alternative=position[:, 1:3],
        tried=torch.ones(states, 2, dtype=torch.bool),
        native_scores=torch.zeros(states, 1),
        scores=(gain[:, 1:3] - gain[:, :1] + luck).clamp(-1, 1).unsqueeze(2),
    )
    grids = [Cells(p, b, a) for p in (2, 1) for b in (4, 1) for a in (2, 1) if (b, a) != (1, 1)]
    shares = {cells: transfer(HOST, branches, signed(cells), cells) for cells in grids}
    assert len(shares) == 6
    chosen = poorest(shares, branches.count)
    assert chosen.shape == shape
    assert shares[chosen] > 0.9 * max(shares.values()) > 0.1


def test_a_fit_tries_every_grid_and_says_so():
    policy = fit(Branched(BRANCHING, phases=2, bins=4), HOST, calls=400).policy
    tried = dict(entry.split(": ") for entry in policy.notes["grids"].split(", "))
    assert set(tried) == {"2 × 4 × 1", "1 × 4 × 1"}
    assert " × ".join(map(str, policy.cells.shape)) in tried


def test_a_table_of_noise_does_not_transfer():
    branches, cells = collected(200), Cells(4, 16)
    assert transfer(HOST, branches, signed(cells), cells) > 0.3
    noise = torch.randn(branches.scores.shape, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    assert transfer(HOST, replace(branches, scores=noise), signed(cells), cells) < 0.02


def test_where_there_is_no_choice_to_make_the_host_keeps_its_order():
    # All four positions in one step: no state leaves an alternative.
    policy = fit(Branched(), HOST.with_decoding(count=Fixed(4)), calls=64).policy
    assert int(policy.notes["branches"]) == 0
    assert float(policy.notes["explained"]) == 0.0
    assert not policy.table.value.any()


def test_later_rounds_branch_under_what_was_learned():
    policy = fit(Branched(BRANCHING, rounds=3, phases=4, beta=2.0, gate=(0, 0, 8)), HOST, calls=1500).policy
    assert policy.step == 3
    assert 1500 / 1.25 < int(policy.notes["calls"]) < 1500 * 1.25
