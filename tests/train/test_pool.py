"""The streaming pool: phases, budgets, teacher forcing, and agreement with the decoder."""

import itertools

import pytest
import torch

import dprm
from dprm.data.draws import Draws
from dprm.train.pool import ProgressivePool

MASK = 5


class Letters:
    """Random tokens 0 … 4 on ten positions, all but the first two of them the answer."""

    mask_id = MASK

    def __init__(self, device="cpu"):
        self.device = device

    def batch(self, step, rows):
        answer = torch.arange(10, device=self.device) >= 2
        return Draws(11, step, device=self.device).below(5, rows, 10), answer.expand(rows, 10)


def favourite_logits(rows, strength):
    """Logits [rows,10,6] whose confidence grows with `strength` [10], whatever the canvas."""
    logits = torch.zeros(rows, 10, 6)
    logits[..., 0] = strength
    return logits


def test_canvases_show_true_tokens_and_keep_the_prompt_and_a_mask():
    pool = ProgressivePool(Letters(), 40, dprm.Order(), phases=4)
    for step in range(30):
        seen = pool.canvases(step)
        assert torch.equal(seen.noisy, torch.where(seen.masked, MASK, seen.clean))
        assert not bool(seen.masked[:, :2].any())
        assert bool(seen.masked.any(1).all())
        pool.advance(step, favourite_logits(40, torch.arange(10.0)))


def test_the_share_revealed_in_phase_j_of_k_lies_between_j_and_j_plus_one():
    pool = ProgressivePool(Letters(), 400, dprm.Order(), phases=4)
    shares = []
    for step in range(40):
        masked = pool.canvases(step).masked
        if step >= 4:  # From here on every row has gone through the pool from its start.
            shares.append(torch.stack([pool.phase(step), 8 - masked.sum(1)]))
        pool.advance(step, favourite_logits(400, torch.arange(10.0)))
    phase, revealed = torch.cat(shares, dim=1)
    for j in range(4):
        mine = revealed[phase == j].float()
        if j:  # Fresh rows are shown a binomial number.
            assert float(mine.min()) >= 2 * j
        assert abs(float(mine.mean()) - min(8 * (j + 0.5) / 4, 7)) < 0.3


def test_rows_are_replaced_when_their_phase_returns_to_zero_and_only_then():
    pool = ProgressivePool(Letters(), 12, dprm.Order(), phases=4)
    before = pool.canvases(0).clean.clone()
    for step in range(1, 9):
        pool.advance(step - 1, favourite_logits(12, torch.arange(10.0)))
        now = pool.canvases(step).clean.clone()
        assert torch.equal((now != before).any(1), pool.phase(step) == 0)
        before = now


def test_the_most_confident_masked_positions_are_revealed_first():
    pool = ProgressivePool(Letters(), 64, dprm.Order(), phases=8)
    strength = torch.tensor([0.0, 0.0, 3.0, 1.0, 5.0, 2.0, 8.0, 6.0, 4.0, 7.0])
    for step in range(16):
        before = pool.canvases(step).masked
        pool.advance(step, favourite_logits(64, strength))
        after = pool._noisy == MASK
        newly = before & ~after
        least_shown = torch.where(newly, strength, torch.inf).amin(1)
        most_left = torch.where(after, strength, -torch.inf).amax(1)
        assert bool((least_shown >= most_left)[newly.any(1)].all())


def test_a_restored_pool_goes_on_as_if_nothing_had_happened():
    one = ProgressivePool(Letters(), 16, dprm.Order(signal="random"), phases=4)
    for step in range(5):
        one.canvases(step)
        one.advance(step, favourite_logits(16, torch.arange(10.0)))
    two = ProgressivePool(Letters(), 16, dprm.Order(signal="random"), phases=4)
    two.restore({name: tensor.clone() for name, tensor in one.state().items()})
    for step in range(5, 12):
        assert torch.equal(one.canvases(step).noisy, two.canvases(step).noisy)
        one.advance(step, favourite_logits(16, torch.arange(10.0)))
        two.advance(step, favourite_logits(16, torch.arange(10.0)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_no_step_waits_for_the_device_and_canvases_are_those_of_the_cpu():
    pools = {device: ProgressivePool(Letters(device), 16, dprm.Order(), 4, device=device) for device in ("cuda", "cpu")}
    logits = favourite_logits(16, torch.arange(10.0))
    on_device = logits.to("cuda")
    for step in range(12):
        # The first steps bring tables to the device.
        torch.cuda.set_sync_debug_mode("error" if step > 3 else "default")
        try:
            noisy = pools["cuda"].canvases(step).noisy.clone()
            pools["cuda"].advance(step, on_device)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert torch.equal(noisy.cpu(), pools["cpu"].canvases(step).noisy)
        pools["cpu"].advance(step, logits)


def test_too_few_rows_for_the_phases_are_named():
    with pytest.raises(ValueError, match="phases is 8"):
        ProgressivePool(Letters(), 7, dprm.Order(), phases=8)


class Joint:
    """Three bits with a known joint law: the data are drawn from it, the denoiser knows its conditionals exactly."""

    mask_id = 2

    def __init__(self):
        self.outcomes = torch.tensor(list(itertools.product((0, 1), repeat=3)))
        self.law = torch.tensor([0.30, 0.02, 0.10, 0.08, 0.05, 0.15, 0.05, 0.25])

    def batch(self, step, rows):
        u = Draws(2, step).uniform(rows, 1)
        return self.outcomes[(u >= self.law.cumsum(0)).sum(1).clamp(max=7)], torch.ones(rows, 3, dtype=torch.bool)

    def denoiser(self, canvas):
        fits = ((canvas.unsqueeze(1) == self.outcomes) | (canvas == 2).unsqueeze(1)).all(2) * self.law
        chance = torch.stack([fits @ (self.outcomes == bit).float() for bit in (0, 1)], dim=-1)
        logits = (chance / chance.sum(-1, keepdim=True)).clamp(min=1e-9).log()
        return torch.cat([logits, torch.full_like(logits[..., :1], -30.0)], dim=-1)


def test_teacher_forced_states_have_the_law_of_the_decoders_states():
    """Data drawn from the model's own law and revealed in an order that sees no tokens: the pool is the decoder."""
    joint, order, rows = Joint(), dprm.Order(signal="entropy"), 24_000
    pool = ProgressivePool(joint, rows, order, phases=3)
    seen = []
    # A fresh row that shows nothing, then one more position a step, is a decoding of width 1.
    lonely = torch.zeros(rows, dtype=torch.bool)
    for step in range(9):
        noisy = pool.canvases(step).noisy
        left, phase = (noisy == joint.mask_id).sum(1), pool.phase(step)
        lonely = torch.where(phase == 0, left == 3, lonely & (left == 3 - phase))
        seen.append(noisy[lonely & (phase == 2)])
        pool.advance(step, joint.denoiser(noisy))
    forced = torch.cat(seen[2:])
    blank = torch.full((24_000, 3), 2)
    decoded = dprm.decode(joint.denoiser, blank, order, mask_id=2, temperature=1.0, seed=1, until=2).tokens
    powers = torch.tensor([9, 3, 1])
    frequency = [torch.bincount((part @ powers), minlength=27) / len(part) for part in (forced, decoded)]
    assert len(forced) > 5_000
    assert float((frequency[0] - frequency[1]).abs().sum() / 2) < 0.03
