"""What an order selects when every reveal is the right one: cross-entropy to the truth early, coverage of doubt late.

A problem with one known answer is decoded under an order, but what is written on the canvas is the truth, as in
teacher-forced training: all orders walk the same answers and differ in the way. Of the reveal of i at canvas s,

    CE = −log p(x_i | s, i),     p the model's probability of the true token x_i

    early      mean CE of the reveals made before half of the answer is visible
    late_low   of the reveals made after that, the share with confidence below 6/16: the paper's bins 0 to 5
    relation   correlation over the 16 confidence bins of the middle of a bin and its mean CE

The end-of-text token says nothing: where the host has one, its positions do not count, and an answer is half visible
when half of the others are.

These are tests of what the theory assumes of a host, not of what an order earns. Shapes: N problems, L positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.decode.loop import Step, advance, begin
from dprm.decode.state import State
from dprm.evaluate.bootstrap import mean_interval
from dprm.evaluate.diagnostics import LATE, LOW, listed
from dprm.host.host import Host, Problems
from dprm.order.noise import mix, mix_rows
from dprm.order.order import Order

BINS = 16


@dataclass
class Forced:
    """One order on problems with known answers, every sum problem by problem, [N] or [N,BINS] float64.

    Attributes:
        early, early_count: CE of early reveals, and how many. late_low, late_count: late reveals in low bins, and all.
        entropy, count: CE of the reveals of a bin, and how many.
    """

    early: Tensor
    early_count: Tensor
    late_low: Tensor
    late_count: Tensor
    entropy: Tensor
    count: Tensor

    @classmethod
    def empty(cls, problems: int) -> Forced:
        """Nothing was revealed."""
        one, many = torch.zeros(problems, dtype=torch.float64), torch.zeros(problems, BINS, dtype=torch.float64)
        return cls(one, one.clone(), one.clone(), one.clone(), many, many.clone())

    def add(self, rows: Tensor, chosen: Tensor, entropy: Tensor, confidence: Tensor, progress: Tensor) -> None:
        """Count the reveals [n,L] of some rows, at their progress [n]."""
        entropy, confidence = entropy.double().cpu(), confidence.double().cpu()
        chosen, late = chosen.cpu(), (progress >= LATE).cpu()
        made, spent = chosen.sum(1).double(), (entropy * chosen).sum(1)
        low = (chosen & (confidence < LOW)).sum(1).double()
        self.early[rows] += spent * ~late
        self.early_count[rows] += made * ~late
        self.late_low[rows] += low * late
        self.late_count[rows] += made * late
        bins = (confidence * BINS).long().clamp(0, BINS - 1)
        self.count[rows] += torch.zeros(len(rows), BINS).double().scatter_add(1, bins, chosen.double())
        self.entropy[rows] += torch.zeros(len(rows), BINS).double().scatter_add(1, bins, entropy * chosen)

    def relation(self) -> float:
        """Correlation of confidence and mean CE over the bins that have reveals; NaN for fewer than two."""
        count = self.count.sum(0)
        seen = count > 0
        if int(seen.sum()) < 2:
            return float("nan")
        middle = (torch.arange(BINS, dtype=torch.float64) + 0.5)[seen] / BINS
        return float(torch.corrcoef(torch.stack([middle, self.entropy.sum(0)[seen] / count[seen]]))[0, 1])

    def facts(self, usual: Forced | None, resamples: int = 5000, seed: int = 0) -> dict[str, Any]:
        """Plain numbers for a card: means over problems with their intervals, and differences to the host's order."""
        found: dict[str, Any] = {}
        for name in ("early", "late_low"):
            own = self._mean(name)
            found[name] = _listed(mean_interval(own[~own.isnan()], resamples, seed=seed))
            if usual is not None:
                difference = own - usual._mean(name)
                delta = mean_interval(difference[~difference.isnan()], resamples, seed=seed)
                found[name] |= {f"delta{end}": value for end, value in zip(("", "_low", "_high"), _round(delta))}
        found["relation"] = listed(torch.tensor([self.relation()]))[0]
        found["entropy"] = listed(self.entropy.sum(0) / self.count.sum(0))
        found["share"] = listed(self.count.sum(0) / self.count.sum().clamp(min=1))
        return found

    def _mean(self, name: str) -> Tensor:
        """[N] the mean of a problem; NaN where nothing counts."""
        counted: Tensor = getattr(self, "early_count" if name == "early" else "late_count")
        total: Tensor = getattr(self, name)
        return total / counted


@torch.no_grad()
def forced(host: Host, problems: Problems, answers: Tensor, order: Order | None = None, *, seed: int = 0) -> Forced:
    """Walk the answers [N,L] of problems under an order; None: the host's own.

    Raises:
        ValueError: answers do not agree with what the problems show, or the host takes reveals back.
    """
    decoding = host.decoding
    if decoding.revoke is not None:
        raise ValueError(f"host {host.name} takes reveals back: an answer cannot be walked one reveal after the other")
    shown = problems.canvas != decoding.mask_id
    answers = answers.to(problems.canvas.device)
    if answers.shape != shown.shape or bool(((answers != problems.canvas) & shown).any()):
        raise ValueError("answers does not agree with the visible part of problems: expected [N,L] whole canvases")
    model = host.model()
    seen: list[Any] = []

    def watched(*asked: Any) -> Any:
        seen[:] = [model(*asked)]
        return seen[0]

    eot = (host.audit or {}).get("eot")
    content = ~shown if eot is None else ~shown & (answers != eot)
    found = Forced.empty(len(problems))
    state = begin(problems.canvas, decoding, mix_rows(problems.key, mix(seed)), problems.context)
    order = decoding.order() if order is None else order
    assert decoding.reader is not None
    reader = decoding.reader
    while bool((unfinished := (state.tokens == decoding.mask_id).any(1)).any()):
        rows = unfinished.nonzero().flatten()
        state = state[rows]
        true, counted = answers[state.row], content[state.row]

        def take(step: Step, true: Tensor = true, counted: Tensor = counted) -> None:
            truth = reader.read(seen[0], true)
            entropy = -truth.confidence.double().clamp(min=1e-30).log()
            left = (counted & (step.state.tokens == decoding.mask_id)).sum(1)
            progress = 1 - left / counted.sum(1).clamp(min=1)
            chosen = step.choice.mask & counted
            found.add(step.state.row.cpu(), chosen, entropy, step.reading.confidence, progress)

        # Every row is in the middle of its answer: none is left out of the step, and rows stay where they are.
        after = advance(watched, state, order, decoding, until=state.step + 1, on_step=take).state
        state = _corrected(after, true, decoding.mask_id)
    return found


def _corrected(state: State, true: Tensor, mask_id: int) -> State:
    """The same reveals, with the right tokens."""
    return replace(state, tokens=torch.where(state.tokens == mask_id, state.tokens, true))


def probed(
    host: Host,
    problems: Problems,
    answers: Tensor,
    orders: Mapping[str, Order | None],
    *,
    rows: int = 64,
    seed: int = 0,
    resamples: int = 5000,
) -> dict[str, dict[str, Any]]:
    """Every order on the same answers, by name; the first is what the others are compared with."""
    done: dict[str, Forced] = {}
    for name, order in orders.items():
        parts = [
            forced(host, problems[first : first + rows], answers[first : first + rows], order, seed=seed)
            for first in range(0, len(problems), rows)
        ]
        done[name] = Forced(*(torch.cat([vars(part)[field] for part in parts]) for field in vars(parts[0])))
    usual = next(iter(done.values()))
    return {name: each.facts(None if each is usual else usual, resamples, seed) for name, each in done.items()}


def _listed(interval: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("mean", "low", "high"), _round(interval), strict=True))


def _round(values: tuple[float, float, float]) -> list[float]:
    return [round(value, 6) for value in values]
