"""On an accelerator: the same choices, and no waiting for values."""

import contextlib

import pytest
import torch

import dprm
from dprm.decode import Even
from dprm.order.features import names
from dprm.order.head import Head
from tests.draws import RULES, candidates, logits, taught
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")]


@contextlib.contextmanager
def no_sync():
    """Any wait for the device inside is an error."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_top_m_chooses_the_same_positions_as_on_the_cpu(dtype):
    for seed in range(20):
        order = taught(dprm.Order(), seed, share=0.5)
        reading, flags = dprm.read(logits(seed, 16, 40, 6, dtype)), candidates(seed, 16, 40)
        parts = (reading.tokens, reading.confidence, reading.margin, reading.entropy)
        there = dprm.Reading(*(part.cuda() for part in parts))
        budget = torch.randint(0, 6, (16,), generator=torch.Generator().manual_seed(seed))
        here = order.select(reading, flags, budget, 0.4).mask
        assert torch.equal(here, order.select(there, flags.cuda(), budget, 0.4).mask.cpu())
        assert torch.equal(here, order.select(there, flags.cuda(), budget.cuda(), 0.4).mask.cpu())


@pytest.mark.parametrize("rule", RULES)
def test_nothing_in_a_selection_waits_for_the_device(rule):
    order = taught(dprm.Order(rule=rule), 1, share=0.5)
    x, flags = logits(1, 16, 40, 6).cuda(), candidates(1, 16, 40).cuda()
    seeds, progress = torch.arange(16).cuda(), torch.rand(16).cuda()
    order.select(dprm.read(x), flags, 3, progress, seed=seeds)  # Tables go to the device once.
    budgets = (3, torch.full((16,), 3), torch.full((16,), 3).cuda())
    with no_sync():
        masks = [order.select(dprm.read(x, forbid=2), flags, m, progress, seed=seeds).mask for m in budgets]
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])
    assert torch.equal(masks[0].sum(1), flags.sum(1).clamp(max=3))


@pytest.mark.parametrize("rule", RULES)
def test_nothing_in_a_selection_by_a_head_waits_for_the_device(rule):
    head = Head(torch.randn(len(names(1, 4)), generator=torch.Generator().manual_seed(0)), support=1000)
    order = dprm.Order(rule=rule, signal="odds", head=head)
    x, flags = logits(1, 16, 40, 6).cuda(), candidates(1, 16, 40).cuda()
    seeds, progress = torch.arange(16).cuda(), torch.rand(16).cuda()
    order.select(dprm.read(x), flags, 3, progress, seed=seeds)  # The head goes to the device once.
    with no_sync():
        mask = order.select(dprm.read(x), flags, 3, progress, seed=seeds).mask
    assert torch.equal(mask.sum(1), flags.sum(1).clamp(max=3))


@pytest.mark.parametrize("budget", [2, Even(7)])
def test_decoding_waits_at_its_ends_only(budget):
    order, denoiser, steps = taught(dprm.Order(rule="shortlist_top_m"), 1), MockDenoiser(1), []
    for name in ("left", "right", "place"):
        setattr(denoiser, name, getattr(denoiser, name).cuda())

    def guarded(step):
        steps.append(step)
        torch.cuda.set_sync_debug_mode("error" if len(steps) < 5 else "default")

    try:
        canvas = masked_canvas(8, 16).cuda()
        result = dprm.decode(denoiser, canvas, order, mask_id=MASK, budget=budget, temperature=0.7, on_step=guarded)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert result.nfe == 7
    assert not (result.tokens == MASK).any()


def test_rows_draw_the_same_numbers_on_both_devices():
    from dprm.order.noise import Stream

    seeds, progress = torch.arange(64), torch.rand(64)
    here = Stream(seeds, progress, 64, torch.device("cpu")).log_uniform(200, 1)
    there = Stream(seeds.cuda(), progress.cuda(), 64, torch.device("cuda")).log_uniform(200, 1)
    torch.testing.assert_close(here, there.cpu(), rtol=1e-5, atol=1e-6)


def test_reading_by_the_kernel_and_drawing_wait_for_nothing():
    x, flags = logits(2, 8, 16, 4000).bfloat16().cuda(), candidates(2, 8, 16).cuda()
    tokens = torch.zeros(8, 16, dtype=torch.int64, device="cuda")
    for guard in (contextlib.nullcontext, no_sync):  # Kernels are compiled at the first turn.
        with guard():
            readings = [dprm.read(x, None, flags, forbid=3), dprm.read(x, tokens, flags, forbid=3)]
    for there, given in zip(readings, (None, tokens.cpu())):
        here = dprm.read(x.cpu(), given, flags.cpu(), forbid=3)
        assert torch.equal(here.tokens, there.tokens.cpu())
        torch.testing.assert_close(here.confidence, there.confidence.cpu(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["table", "head"])
def test_a_decision_can_be_captured_into_a_graph(name):
    head = Head(torch.randn(len(names(1, 4)), generator=torch.Generator().manual_seed(0)), support=1000)
    order = dprm.Order(signal="odds", head=head) if name == "head" else taught(dprm.Order(), 1, share=0.5)
    x, flags = logits(1, 16, 40, 600).cuda(), candidates(1, 16, 40).cuda()

    def decide():
        return order.select(dprm.read(x, None, flags), flags, 3, 0.5, seed=1).mask

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        wanted = [decide() for _ in range(3)][-1]
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = decide()
    graph.replay()
    assert torch.equal(captured, wanted)
