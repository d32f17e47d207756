"""Poorer tables hold the same evidence in fewer cells."""

import pytest
import torch

import dprm
from dprm.fit.events import Events
from dprm.hosts.llada_v.host import STATES
from dprm.hosts.llada_v.tables import POOLED, poorer


def test_cells_that_differ_in_what_was_left_out_have_one_value():
    order = dprm.Order(phases=1, bins=8, aux=STATES, baseline="global")
    cell = torch.arange(8 * STATES).repeat(3)
    reward = torch.rand(len(cell), generator=torch.Generator().manual_seed(0)).double()
    order.observe(Events(len(cell), torch.arange(len(cell)), cell), reward)
    policy = order.policy()
    tables = poorer(policy)
    value = {name: table.table.value.view(8, 3, 2, 4) for name, table in tables.items()}
    assert tables.keys() == {*POOLED, "counts-alone"}
    assert torch.equal(value["no-format"], value["no-format"][:, :1].expand(8, 3, 2, 4))
    assert torch.equal(value["no-eot"], value["no-eot"][:, :, :1].expand(8, 3, 2, 4))
    assert torch.equal(value["no-position"], value["no-position"][..., :1].expand(8, 3, 2, 4))
    assert len(value["no-state"].unique()) == 8
    assert tables["no-state"].table.support.view(8, -1)[0].tolist() == [72.0] * STATES
    own = policy.table.value.view(8, 3, 2, 4)
    assert torch.equal(value["counts-alone"][:, 1], own[:, 1])
    assert not value["counts-alone"][:, [0, 2]].any()


def test_a_policy_without_evidence_is_refused():
    with pytest.raises(ValueError, match="no evidence"):
        poorer(dprm.Order(phases=1, bins=8, aux=STATES).policy())
