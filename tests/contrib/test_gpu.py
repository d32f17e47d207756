"""On an accelerator: a step waits for nothing, and reveals as many as the engine would."""

import pytest
import torch

from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from tests.contrib.engines import MASK, policy, states

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("rule", ["top_m", "soft_bon"])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_step_waits_for_nothing(tmp_path, rule, recorded):
    x, before = states(0)
    after = before.clone()
    after[torch.arange(6), (before == MASK).int().argmax(1)] = 0
    selector = Selector(policy(rule=rule), mask_id=MASK, traces=tmp_path if recorded else None)
    names = [str(row) for row in range(6)]
    x, before, after = x.cuda(), before.cuda(), after.cuda()
    requests = Requests.begin(names, before == MASK)
    selector.revise(before, after, x, requests)  # The policy moves to its device once.
    torch.cuda.set_sync_debug_mode("error")
    try:
        revised = selector.revise(before, after, x, requests)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal((revised == MASK).sum(1), (after == MASK).sum(1))
