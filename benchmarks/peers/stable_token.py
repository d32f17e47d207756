"""The peer without a reward: predict whether a token that is predicted now is the one that will stand there in the end.

The objective of TraceLock on our features. The host decodes problems in its own order; at some of the states it
visits, every masked candidate i has a provisional token ŷ_i, and the final canvas says whether it stayed:

    target_i = 1{ŷ_i = x_i},    value w · φ_i by ridge regression, target and features both centred in their state

No verifier is asked. Deployed, a value is added to the host's signal at a strength that the select split chooses, as
for a head. Shapes: B rows, L positions, F features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dprm.decode.loop import Step, advance, begin
from dprm.fit.cost import Cost
from dprm.fit.ridge import ridge
from dprm.fit.run import Run
from dprm.host.host import Problems
from dprm.order import Order, Policy
from dprm.order.cells import Cells
from dprm.order.head import Head, Sight
from dprm.order.noise import DRAW, Stream, mix, mix_rows

READY = 16


@dataclass(frozen=True)
class StableToken:
    """The estimator.

    Attributes:
        candidates: rows of a state that are learned from, at most. reach: neighbours that the head sees on each side.
    """

    candidates: int = 8
    reach: int = 4

    name = "stable_token"

    def learn(self, run: Run) -> Policy:
        """Fit; see `dprm.fit.fit`. Nothing is kept: a fit that was killed begins again."""
        host = run.host
        count = max(2, int((run.calls - run.cost.calls) / run.steps))
        run.reserve(count)
        problems = run.take(count)
        empty = Head.empty(host.decoding.states, self.reach, count)
        rows, counts = [], torch.zeros(Cells(aux=empty.aux).count, dtype=torch.int64)
        for start in range(0, len(problems), run.rows):
            features, target, group, cell = self._looked(run, problems[start : start + run.rows], empty)
            rows.append((features, target, group))
            counts += torch.bincount(cell, minlength=len(counts))
            if run.on_progress is not None:
                run.on_progress(run.cost.calls, "trajectories")
        features, target, group = (torch.cat(column) for column in zip(*rows, strict=True))
        result = ridge(features, target, group)
        spread = float((features.double() @ result.weight).square().mean().sqrt())
        weight = (result.weight / spread if spread > 0 else result.weight).float()
        order = Order(
            aux=empty.aux,
            ready=READY,
            signal="odds" if host.decoding.signal.name == "confidence" else host.decoding.signal,
            reward_range=host.reward_range,
            head=replace(empty, weight=weight, counts=counts),
        )
        return order.policy(explained=f"{result.explained:.5f}")

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try of a fitted policy, as of a head."""
        return (1.0, 3.0, 10.0, 30.0, 100.0) if policy.head is not None and bool(policy.head.weight.any()) else ()

    def _looked(self, run: Run, problems: Problems, empty: Head) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Centred features [n,F] and targets [n] of candidates, the problem and the cell of each [n]."""
        host = run.host
        seen: list[tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]] = []

        def on_step(step: Step) -> None:
            state = step.state
            lot = Stream(mix_rows(state.seeds, state.step, 2), 0.0, len(state), state.tokens.device)
            keys = lot.log_uniform(state.tokens.shape[1], DRAW).masked_fill(~step.choice.candidates, -torch.inf)
            few = keys.topk(min(self.candidates, keys.shape[1]), dim=1)
            aux = None if host.decoding.state_of is None else host.decoding.state_of(state.tokens, step.reading)
            sight = Sight.of(step.reading, step.choice.candidates, step.choice.budget, step.progress, aux)
            wide = few.indices.unsqueeze(2).expand(-1, -1, len(empty.weight))
            cells = Cells(aux=empty.aux)
            cell = cells.index(
                cells.first_of_phase(sight.progress), sight.confidence, sight.aux.int() if cells.aux > 1 else None
            )
            there = torch.isfinite(few.values)
            provisional = step.reading.tokens.gather(1, few.indices)
            near = empty.features(sight).gather(1, wide)
            seen.append((state.row, near, few.indices, there, provisional, cell.long().gather(1, few.indices)))

        seeds = mix_rows(problems.key, mix(run.seed, 17))
        state = begin(problems.canvas, host.decoding, seeds, problems.context)
        result = advance(host.model(), state, host.decoding.order(), host.decoding, on_step=on_step)
        run.cost += Cost(rollouts=len(problems), calls=int(result.row_nfe.sum()))
        parts = []
        for row, near, index, there, provisional, cell in seen:
            stays = (result.tokens[row].gather(1, index) == provisional).double()
            weight = there.double().unsqueeze(2)
            size = weight.sum(1, keepdim=True).clamp(min=1)
            centred = near - (near * weight).sum(1, keepdim=True) / size
            target = stays - (stays * there).sum(1, keepdim=True) / size.squeeze(2)
            # Where all candidates stay, or none does, nothing can be told apart.
            told = there & (target.abs().amax(1, keepdim=True) > 1e-9)
            group = problems.groups.to(row.device)[row].unsqueeze(1).expand_as(told)
            parts.append((centred[told].float(), target[told].float(), group[told], cell[there]))
        features, targets, groups, cells = (torch.cat(column).cpu() for column in zip(*parts, strict=True))
        return features, targets, groups, cells
