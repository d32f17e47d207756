"""Hosts of a few lines with the signatures of the paper's: what decides on positions in each, written anew."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from tests.contrib.engines import MASK, VOCABULARY


class Net:
    """Logits from the neighbours of each position, with many ties; the mask is never likely."""

    def __init__(self, seed: int = 0):
        generator = torch.Generator().manual_seed(seed)
        self.left, self.right = (torch.randn(VOCABULARY, VOCABULARY, generator=generator).round() for _ in range(2))
        self.place = torch.randn(64, VOCABULARY, generator=generator).round()
        for table in (self.left, self.right, self.place):
            table[:, MASK] = -30.0
        self.calls = 0

    def __call__(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        return self.left[tokens.roll(1, 1)] + self.right[tokens.roll(-1, 1)] + self.place[: tokens.shape[1]]


def dream(net: Net, x: Tensor, steps: int, hook=lambda step, x, logits: x) -> Tensor:  # type: ignore[no-untyped-def]
    """`_sample` of Dream: top-k over the whole text, one number for the batch, and the hook after every step."""
    x = hook(None, x.clone(), None)
    for step in range(steps):
        masked = x == MASK
        logits = net(x)
        count = -(-int(masked.sum(1).max()) // (steps - step))
        sure, tokens = logits.softmax(-1).max(-1)
        index = torch.where(masked, sure, -torch.inf).topk(count).indices
        taken = torch.zeros_like(masked).scatter(1, index, True) & masked
        x = hook(step, torch.where(taken, tokens, x), logits)
    return x


class Mdlm:
    """`MDLM` of bionemo-moco: draws everywhere, ranks by the noisy probability of what was drawn."""

    mask_index, rng_generator = MASK, None

    def _subs_parameterization(self, logits: Tensor, xt: Tensor) -> Tensor:
        logits = logits.clone()
        logits[..., self.mask_index] = -1e9
        return logits.log_softmax(-1)

    def step_confidence(
        self,
        logits,
        xt,
        curr_step,
        num_steps,
        logit_temperature=1.0,
        randomness=1.0,
        confidence_temperature=1.0,
        num_tokens_unmask=1,
    ):
        law = torch.softmax(self._subs_parameterization(logits, xt) / logit_temperature, dim=-1)
        drawn = torch.distributions.Categorical(probs=law).sample()
        noise = -torch.log(-torch.log(torch.rand(xt.shape, generator=self.rng_generator)))
        rank = law.gather(-1, drawn.unsqueeze(-1)).squeeze(-1).log() + noise * randomness * (
            1 - curr_step / (num_steps - 1)
        )
        rank = torch.where(xt == self.mask_index, rank / confidence_temperature, -torch.inf)
        taken = torch.zeros_like(xt, dtype=torch.bool).scatter(1, rank.topk(num_tokens_unmask).indices, True)
        return torch.where(taken & (xt == self.mask_index), drawn, xt)


class Dplm:
    """DPLM-2: amino acids and structure tokens in one text; the lowest scores of each are masked again."""

    aa_type, struct_type, aa_mask_id, struct_mask_id = 0, 1, 7, 8

    def _reparam_decoding(
        self,
        output_tokens,
        output_scores,
        cur_tokens,
        cur_scores,
        decoding_strategy,
        xt_neq_x0,
        type_ids,
        non_special_sym_mask,
        t,
        max_step,
    ):
        hidden = torch.zeros_like(xt_neq_x0)
        for kind, mask_id in ((self.aa_type, self.aa_mask_id), (self.struct_type, self.struct_mask_id)):
            here = (type_ids == kind) & non_special_sym_mask
            keep = here.sum(1) - (here.sum(1) * (1 - t / max_step)).long()
            order = torch.where(here, cur_scores, -torch.inf).sort(dim=1, descending=True, stable=True).indices
            rank = order.argsort(1)
            shown = here & (rank < keep.unsqueeze(1))
            fresh = shown & xt_neq_x0
            output_tokens = torch.where(fresh, cur_tokens, torch.where(here & ~shown, mask_id, output_tokens))
            output_scores = torch.where(fresh, cur_scores, torch.where(here & ~shown, -torch.inf, output_scores))
            hidden = hidden | (here & ~shown)
        return hidden, output_tokens, output_scores


class Diffusion(torch.nn.Module):
    """MDLM and its kin: every position is revealed by chance."""

    mask_index = MASK

    def __init__(self, net: Net):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        return self.net(x).log_softmax(-1)

    def _ddpm_update(self, x: Tensor, t: Tensor, dt: float, return_process: bool = False):  # type: ignore[no-untyped-def]
        law = self.forward(x, t[:, 0]).exp() * dt
        law[..., MASK] = (t - dt).clamp(min=0.0)
        drawn = (law / (1e-10 - (torch.rand_like(law) + 1e-10).log())).argmax(-1)
        after = torch.where(x == MASK, drawn, x)
        return (after, x, t) if return_process else after


def unmask_from_scores(scores: Tensor, num_unmask: Tensor, x0: Tensor, xt_format: Tensor) -> Tensor:
    """Of PUMA: the true tokens of the largest scores of every row."""
    rank = scores.argsort(dim=1, descending=True, stable=True).argsort(1)
    return torch.where(rank < num_unmask.unsqueeze(1), x0, xt_format)


class PhasedMasking:
    """The pool of PUMA, as far as it chooses."""

    def __init__(self, x0: Tensor, xt: Tensor):
        self.x0, self.xt, self.mask_id = x0, xt, MASK
        self.state = {"L_eff": torch.full((len(x0),), x0.shape[1])}

    def update_with_logits(self, log_probs: Tensor) -> None:
        masked = self.xt == self.mask_id
        score = torch.where(masked, log_probs.amax(2), torch.finfo(log_probs.dtype).min)
        count = masked.sum(1).clamp(max=2)
        self.xt = unmask_from_scores(score, count, self.x0, self.xt)
        start = torch.full_like(self.x0, MASK)
        self.fresh = unmask_from_scores(torch.rand(self.x0.shape), count, self.x0, start)


def get_transfer_index(logits, temperature, remasking, mask_index, x, num_transfer_tokens, threshold=None):
    """Of the sampler that the trainer of DMPO calls."""
    tokens = torch.where(mask_index, logits.argmax(-1), x)
    sure = torch.where(mask_index, logits.softmax(-1).amax(-1), -torch.inf)
    taken = torch.zeros_like(mask_index)
    for row, count in enumerate(num_transfer_tokens):
        taken[row, sure[row].topk(int(count)).indices] = True
    return tokens, taken & mask_index


def generate(model, prompt, steps, mask_id=MASK):
    """A sampler with the signature that a trainer calls."""
    x = prompt.clone()
    while (masked := x == mask_id).any():
        tokens, taken = get_transfer_index(model(x), 0.0, "low_confidence", masked, x, masked.sum(1).clamp(max=2))
        x = torch.where(taken, tokens, x)
    return x


def hierarchical(model, x, threshold=2.0):
    """The inner step of Prism's search: a threshold, or top-k over the confidence of what is masked alone."""
    x = x.clone()
    while (masked := x == MASK).any():
        sure, tokens = model(x).softmax(-1).max(-1)
        for row in range(len(x)):
            places = masked[row].nonzero().flatten()
            if len(places):
                above = places[sure[row, places] > threshold]
                _, index = torch.topk(sure[row][places], k=min(2, len(places)))
                chosen = above if len(above) >= 2 else places[index]
                x[row, chosen] = tokens[row, chosen]
        assert torch.topk(sure[0], k=2, largest=False).indices[0] == sure[0].argmin()
    return x


TRAINER = SimpleNamespace(generate=generate)
