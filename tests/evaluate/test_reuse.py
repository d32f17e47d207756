"""Reuse of a table: what it says of prompts it was not made from, beside saying nothing."""

import pytest
import torch

from dprm.evaluate.reuse import agreement, correlation, ranks, reuse
from dprm.fit.branches import Branches
from dprm.order.head import Sight
from tests.toy_host import ToyHost


def test_agreement_of_predictions_with_what_was_gained():
    gained = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    perfect = agreement(gained, gained)
    assert perfect["rmse"] == 0.0
    assert perfect["rmse of zero"] == pytest.approx(3.5**0.5)
    assert perfect["pearson"] == pytest.approx(1.0)
    assert agreement(-gained, gained)["spearman"] == pytest.approx(-1.0)
    nothing = agreement(torch.zeros(4).double(), gained)
    assert nothing["rmse"] == nothing["rmse of zero"]
    assert nothing["pearson"] is None


def test_equal_values_share_their_rank():
    assert ranks(torch.tensor([5.0, 1.0, 5.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert correlation(torch.ones(3).double(), torch.arange(3).double()) is None


def test_a_table_that_transfers_has_a_smaller_error_than_zero():
    """What pays is known here, but for luck: positions of one bin of confidence."""
    draw = torch.Generator().manual_seed(0)
    states, length = 600, 4
    confidence, position = torch.rand(2, states, length, generator=draw)
    position = position.argsort(1)
    gain = ((confidence * 4).floor() == 2).float().gather(1, position)
    luck = 0.3 * torch.randn(states, 2, generator=draw)
    plain, whole = torch.zeros(states, length), torch.zeros(states, length, dtype=torch.int64)
    progress = torch.rand(states, generator=draw)
    branches = Branches(
        sight=Sight(plain, confidence, plain, plain, plain == 0, progress, plain[:, 0], whole),
        group=torch.arange(states) // 3,
        native=position[:, 0],
        alternative=position[:, 1:3],
        tried=torch.ones(states, 2, dtype=torch.bool),
        native_scores=torch.zeros(states, 1),
        scores=(gain[:, 1:3] - gain[:, :1] + luck).clamp(-1, 1).unsqueeze(2),
    )
    order, facts = reuse(ToyHost(), branches, grids=((1, 1), (1, 4)))
    assert facts["taken"] == "1 × 4"
    assert facts["comparisons"] == 1200
    assert facts["grids"]["1 × 1"]["rmse"] == facts["grids"]["1 × 1"]["rmse of zero"]
    assert facts["grids"]["1 × 4"]["rmse"] < 0.9 * facts["grids"]["1 × 4"]["rmse of zero"]
    assert facts["grids"]["1 × 4"]["pearson"] > 0.5
    assert order.policy().stats is not None
