"""What a post-training selects and what the theory assumes of it, refresh by refresh (diagnostics D12 to D16).

    reward, spread        mean and standard deviation of the rewards of a refresh
    early                 mean CE to the rollout's tokens on canvases of which at most half of the answer is visible
    relation              correlation over confidence bins of confidence and mean CE, of all masked positions
    entropy in bin b      that mean CE, for each of 16 bins
    late_low              of the reveals after half of the answer, the share with confidence below 6/16
    gradient              mean of √(1 − 2p + Σ p²) over masked positions, the norm of the gradient in the logits
    value                 mean R̂ of the low-confidence cells of late phases, weighed by their events
    radius, drift         median radius of R̂ over the events; mean change of the cells' means since the refresh before

All are averages of a refresh and change nothing. Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.decode.loop import Result
from dprm.order import Order, Stats
from dprm.order.values import drift, radius
from dprm.train.masks import Canvases

BINS, LOW, HALF = 16, 6 / 16, 0.5
# With which probability any radius may fail.
DELTA = 0.05


def of_rewards(reward: Tensor) -> dict[str, float]:
    """Mean and standard deviation of rewards [P,G]."""
    return {"reward": reward.mean().item(), "spread": reward.std(correction=0).item()}


def of_reveals(result: Result) -> dict[str, float]:
    """The share of late reveals of a decoding that come from low-confidence bins."""
    step = result.step_map
    revealed = step > 0
    earlier = (step.unsqueeze(1) < step.unsqueeze(2)) & revealed.unsqueeze(1)
    progress = earlier.sum(2) / revealed.sum(1, keepdim=True).clamp(min=1)
    late = revealed & (progress >= HALF)
    low = late & (result.trace.confidence < LOW)
    return {"late_low": (low.sum() / late.sum().clamp(min=1)).item()}


@torch.no_grad()
def of_update(logits: Tensor, canvases: Canvases, answers: Tensor) -> dict[str, float]:
    """What the masked positions of an update look like to the model.

    Args:
        logits: [B,L,V]. answers: [B], positions of every answer, masked or not.
    """
    law = logits.float().log_softmax(-1)
    entropy = -law.gather(-1, canvases.clean.unsqueeze(-1)).squeeze(-1)
    p = law.exp()
    confidence, square = p.amax(-1), p.square().sum(-1)
    masked = canvases.masked
    norm = (1 - 2 * p.gather(-1, canvases.clean.unsqueeze(-1)).squeeze(-1) + square).clamp(min=0).sqrt()
    early = masked & (masked.sum(1) >= HALF * answers).unsqueeze(1)
    column = (confidence[masked] * BINS).long().clamp(0, BINS - 1)
    count = column.bincount(minlength=BINS).double()
    mean = column.bincount(entropy[masked].double(), minlength=BINS) / count
    seen = count > 0
    found = {"gradient": norm[masked].mean().item(), "entropy": entropy[masked].mean().item()}
    if bool(early.any()):
        found["early"] = entropy[early].mean().item()
    found |= {f"entropy in bin {number}": mean[number].item() for number in seen.nonzero().flatten().tolist()}
    if int(seen.sum()) > 1:
        middle = ((torch.arange(BINS, device=mean.device).double() + 0.5) / BINS)[seen]
        found["relation"] = torch.corrcoef(torch.stack([middle, mean[seen]]))[0, 1].item()
    return {name: value for name, value in found.items() if value == value}


def of_order(order: Order, before: Stats | None) -> dict[str, float]:
    """Radius, drift and late low-confidence value of an order that learns; nothing before it knows anything."""
    stats = order.stats
    if stats is None or not float(stats.sums[0].sum()) > 0:
        return {}
    events = stats.sums[0]
    wide, rank = radius(stats, DELTA).sort()
    middle = int(torch.searchsorted(events[rank].cumsum(0), events.sum() / 2))
    found = {"radius": wide[middle].item()}
    if before is not None:
        found["drift"] = ((drift(before, stats) * events).sum() / events.sum()).item()
    cells = order.cells
    grid = events.view(cells.tables, *cells.shape), order.table().value.view(cells.tables, *cells.shape)
    weight, value = (part[:, cells.phases // 2 :, : int(cells.bins * LOW)] for part in grid)
    if float(weight.sum()) > 0:
        found["value"] = ((weight * value).sum() / weight.sum()).item()
    return {name: number for name, number in found.items() if number == number and abs(number) != float("inf")}
