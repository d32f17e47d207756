"""The order audit: what a decoding's order of reveals looks like.

A decoding gives tokens and a step map (the 1-based step of every reveal, 0 = given). EOT says nothing: its reveals are
removed first, with the steps that revealed nothing else, and the steps that are left are renumbered 1 … T. Then S_t is
the set of positions revealed in step t, i ∈ S_t(i), and n = Σ_t |S_t|. Padding an answer with EOT, whenever that is
revealed, changes nothing below.

Between steps, for any number of reveals a step. With d_i = min |i − j| over the other reveals j of the same step and of
the step before it, defined where there is one (at one reveal a step: the jump from the reveal before):

    adjacency      share of reveals with d_i = 1
    span           mean of d_i / n
    nonlocal_rate  share of reveals with d_i ≥ 8
    backfill       share of reveals after the first step that are to the left of the rightmost earlier reveal

Within steps, the paper's audit of several reveals a step; only steps with |S_t| ≥ 2 count, so NaN at one reveal a step:

    step_adjacency  mean over steps of #{i : i and i+1 ∈ S_t} / (|S_t| − 1)
    step_span       mean over steps of max S_t − min S_t, in positions
    step_nonlocal   share of steps with max S_t − min S_t ≥ 8

Across steps, as in the paper, with the centroid c_t = mean of S_t:

    returns         share of steps t ≥ 2 with c_t < c_{t−1}
    first_number    (t − 1)/(T − 1) of the first step that reveals a digit: 0 at the start, 1 at the end
    final_number    the same for the digits to the right of the last mark (`#`, or the last `=`): the final answer

These describe order, not reasoning: a reveal is never replaced. Shapes: B rows, L positions, T steps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import mean_interval

FAR = 8
# Of a decoding, by statistic: [N] its mean over the samples of a problem, and over those that were won.
Means = Mapping[str, tuple[Tensor, Tensor]]


class Mean(NamedTuple):
    """The mean of a statistic over the rows for which it is defined, and how many those are."""

    mean: float
    rows: int


@dataclass(frozen=True)
class Audit:
    """One number a row, [B] float64 each, NaN where the row has nothing to measure; see the module for definitions."""

    adjacency: Tensor
    span: Tensor
    nonlocal_rate: Tensor
    backfill: Tensor
    step_adjacency: Tensor
    step_span: Tensor
    step_nonlocal: Tensor
    returns: Tensor
    first_number: Tensor
    final_number: Tensor

    def summary(self) -> dict[str, Mean]:
        """Every statistic by name."""
        return {field.name: _mean(getattr(self, field.name)) for field in fields(self)}


def audit(
    step_map: Tensor,
    tokens: Tensor,
    *,
    eot: int | None = None,
    digits: Collection[int] = (),
    mark: int | None = None,
    far: int = FAR,
    rows: int = 512,
) -> Audit:
    """Audit decoded rows.

    Args:
        step_map: [B,L] the 1-based step of each reveal, 0 = given (`Result.step_map`).
        tokens: [B,L] what was revealed (`Result.tokens`).
        eot: the token that ends and fills up an answer; None: there is none.
        digits: the tokens of digits; none: `first_number` is NaN.
        mark: the token after whose last occurrence the final answer stands; None: `final_number` is NaN.
        far: from which distance on a jump is nonlocal.
        rows: how many rows are measured at a time; memory grows with rows·L².
    """
    if step_map.dim() != 2 or step_map.shape != tokens.shape:
        raise ValueError(f"step_map is {tuple(step_map.shape)} and tokens {tuple(tokens.shape)}: expected both [B,L]")
    if step_map.numel() and int(step_map.min()) < 0:
        raise ValueError(f"step_map holds {int(step_map.min())}: expected steps from 1, and 0 where given")
    if far < 1 or rows < 1:
        raise ValueError(f"far is {far} and rows is {rows}: expected at least 1")
    parts = []
    for start in range(0, max(1, len(tokens)), rows):
        some = slice(start, start + rows)
        parts.append(_audit(step_map[some].long(), tokens[some], eot, tuple(digits), mark, far))
    return Audit(**{field.name: torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Audit)})


def means_of(
    step_map: Tensor, tokens: Tensor, won: Tensor, samples: int = 1, **told: Any
) -> dict[str, tuple[Tensor, Tensor]]:
    """Every statistic problem by problem: [N] its mean over the samples, and over those that were won, NaN for none.

    Args:
        step_map, tokens: [N·n,L], the samples of a problem beside each other. won: [N·n] bool.
        told: what `audit` is told of the text.
    """
    measured = vars(audit(step_map, tokens, **told))
    grouped = {name: value.view(-1, samples) for name, value in measured.items()}
    wins = won.view(-1, samples)
    return {name: (value.nanmean(1), value.masked_fill(~wins, torch.nan).nanmean(1)) for name, value in grouped.items()}


def summarised(
    means: Sequence[Means], usual: Sequence[Means] | None, resamples: int = 5000, seed: int = 0
) -> dict[str, Any]:
    """Every statistic that is defined somewhere, as plain numbers for a card: its mean and interval, its paired
    difference to the host's own order, and its mean inside the wins.

    Args:
        means: what `means_of` gives, one a decode seed. usual: the same of the host's own order; None, or the same
            list: there is no difference.
    """
    entry: dict[str, Any] = {}
    for name in means[0]:
        value, wins = (torch.stack([each[name][side] for each in means]).nanmean(0) for side in (0, 1))
        there = ~value.isnan()
        if not bool(there.any()):
            continue
        mean = mean_interval(value[there], resamples, seed=seed)
        entry[name] = {"mean": mean.estimate, "low": mean.low, "high": mean.high, "rows": int(there.sum())}
        if usual is not None and usual is not means:
            other = torch.stack([each[name][0] for each in usual]).nanmean(0)
            both = there & ~other.isnan()
            if bool(both.any()):
                delta = mean_interval((value - other)[both], resamples, seed=seed)
                entry[name] |= {"delta": delta.estimate, "delta_low": delta.low, "delta_high": delta.high}
        if not bool(wins.isnan().all()):
            entry[name]["wins"] = wins.nanmean().item()
    return entry


def content_steps(step_map: Tensor, tokens: Tensor, eot: int | None) -> Tensor:
    """[B,L] the step t(i) of every reveal, renumbered 1 … T in each row; 0 where given or EOT."""
    kept = step_map > 0
    if eot is not None:
        kept &= tokens != eot
    step = step_map * kept
    there = torch.zeros(len(step), int(step.max()) + 1 if step.numel() else 1, dtype=torch.int64, device=step.device)
    number = there.scatter(1, step, 1)
    number[:, 0] = 0
    return number.cumsum(1).gather(1, step) * kept


def _audit(
    step_map: Tensor, tokens: Tensor, eot: int | None, digits: tuple[int, ...], mark: int | None, far: int
) -> Audit:
    step = content_steps(step_map, tokens, eot)
    kept = step > 0
    jump = _jumps(step)
    defined = jump < step.shape[1]
    place = torch.arange(step.shape[1], device=step.device).expand_as(step)
    # Steps as columns 0 … T; column 0 takes what is not a reveal and is cut off.
    columns = torch.zeros(len(step), int(step.max()) + 1 if step.numel() else 1, device=step.device).double()
    size = columns.scatter_add(1, step, kept.double())[:, 1:]
    total = columns.scatter_add(1, step, (place * kept).double())[:, 1:]
    right = (columns - 1).scatter_reduce(1, step, place.double(), "amax")[:, 1:]
    left = (columns + step.shape[1]).scatter_reduce(1, step, place.double(), "amin")[:, 1:]
    pair = (step[:, 1:] == step[:, :-1]) & kept[:, 1:]
    pairs = columns.scatter_add(1, step[:, 1:], pair.double())[:, 1:]
    wide = size >= 2
    width = right - left
    centroid = total / size.clamp(min=1)
    later = (size > 0)[:, 1:]
    # The rightmost reveal before step t: no step before the first.
    edge = torch.cat([torch.full_like(columns[:, :1], -1).expand(-1, 2), right.cummax(1).values], 1).gather(1, step)
    digit = torch.isin(tokens, torch.tensor(digits, dtype=tokens.dtype, device=tokens.device))
    final = torch.zeros_like(digit) if mark is None else _after_last(tokens == mark)
    count = kept.sum(1, keepdim=True).clamp(min=1)
    return Audit(
        adjacency=_share(jump == 1, defined),
        span=_share(jump / count, defined),
        nonlocal_rate=_share(jump >= far, defined),
        backfill=_share(place < edge, step > 1),
        step_adjacency=_share(pairs / (size - 1).clamp(min=1), wide),
        step_span=_share(width, wide),
        step_nonlocal=_share(width >= far, wide),
        returns=_share(centroid[:, 1:] < centroid[:, :-1], later),
        first_number=_timing(step, digit),
        final_number=_timing(step, digit & final),
    )


def _jumps(step: Tensor) -> Tensor:
    """[B,L] int64 d_i; L where there is no other reveal in the same step or the one before."""
    length = step.shape[1]
    place = torch.arange(length, device=step.device)
    distance = (place.unsqueeze(1) - place).abs()
    lag = step.unsqueeze(2) - step.unsqueeze(1)
    kept = step > 0
    near = ((lag == 0) | (lag == 1)) & (distance > 0) & kept.unsqueeze(1) & kept.unsqueeze(2)
    return torch.where(near, distance, length).amin(2) if length else step


def _after_last(mark: Tensor) -> Tensor:
    """[B,L] bool: the positions to the right of the last mark; none where there is no mark."""
    marks = mark.cumsum(1)
    return (marks == marks[:, -1:]) & ~mark & (marks > 0)


def _timing(step: Tensor, wanted: Tensor) -> Tensor:
    """(t − 1)/(T − 1) of the first step that reveals a wanted position; NaN if none does."""
    last = step.amax(1)
    first = torch.where(wanted & (step > 0), step, last.unsqueeze(1) + 1).amin(1)
    timing = (first - 1).double() / (last - 1).clamp(min=1)
    return timing.masked_fill(first > last, torch.nan)


def _share(value: Tensor, where: Tensor) -> Tensor:
    """[B] the mean of `value` over the places of `where`; NaN if there are none."""
    return torch.where(where, value.double(), 0.0).sum(1) / where.sum(1)


def _mean(value: Tensor) -> Mean:
    defined = value[~value.isnan()]
    return Mean(defined.mean().item() if len(defined) else float("nan"), len(defined))
