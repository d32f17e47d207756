"""Decode a host's problems under an order, batch by batch, and judge the results.

Every problem has its own random stream, made of the seed and its key: what happens to it does not depend on the batch
it is in, on the other problems, or on a resume. Shapes: N problems, B rows of a batch, L positions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from dprm.decode.counts import CountRule
from dprm.decode.loop import Denoiser, OnStep, Result, decode
from dprm.decode.state import State
from dprm.host.host import Host, Problems
from dprm.order import Order
from dprm.order.noise import mix, mix_rows


@dataclass
class Rollout:
    """What came of N problems under one order.

    Attributes:
        tokens, step_map: [N,L]. confidence: [N,L], of every position when it was revealed.
        reward: [N] float32. nfe: [N] int64, model calls each problem needed.
        decisions, changed, picks, ready, gate: [N], as in `Trace`.
        seconds: [N] float32, each problem's share of its batch.
    """

    tokens: Tensor
    step_map: Tensor
    confidence: Tensor
    reward: Tensor
    nfe: Tensor
    decisions: Tensor
    changed: Tensor
    picks: Tensor
    ready: Tensor
    gate: Tensor
    seconds: Tensor

    @classmethod
    def joined(cls, parts: list[Rollout]) -> Rollout:
        """Several rollouts, one after the other."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))


def run(
    host: Host,
    canvas: Tensor | State,
    order: Order,
    *,
    denoiser: Denoiser,
    budget: int | CountRule | None = None,
    temperature: float | None = None,
    seed: int | Tensor = 0,
    until: int | None = None,
    on_step: OnStep | None = None,
) -> Result:
    """`decode` as the host does it; None takes its own budget and temperature."""
    return decode(
        denoiser,
        canvas,
        order,
        mask_id=host.mask_id,
        budget=host.budget if budget is None else budget,
        window=host.window,
        guard=host.guard,
        # An order with one state, such as plain confidence, has no use for the host's.
        aux=host.aux if order.cells.aux > 1 else None,
        temperature=host.temperature if temperature is None else temperature,
        seed=seed,
        until=until,
        on_step=on_step,
    )


def batches(
    host: Host,
    problems: Problems,
    order: Order,
    *,
    budget: int | CountRule | None = None,
    temperature: float | None = None,
    seed: int = 0,
    rows: int = 64,
    denoiser: Denoiser | None = None,
) -> Iterator[tuple[Result, Rollout]]:
    """Decode `rows` problems at a time; None takes the host's own budget and temperature.

    Yields:
        the result, with its trace for `Order.observe`, and the rollout of each batch.
    """
    model = host.denoiser() if denoiser is None else denoiser
    for start in range(0, len(problems), rows):
        part = problems[start : start + rows]
        began = time.perf_counter()
        seeds = mix_rows(part.key, mix(seed))
        result = run(host, part.canvas, order, denoiser=model, budget=budget, temperature=temperature, seed=seeds)
        tokens = result.tokens.cpu()
        share = (time.perf_counter() - began) / len(part)
        yield (
            result,
            Rollout(
                tokens=tokens,
                step_map=result.step_map.cpu(),
                confidence=result.trace.confidence.cpu(),
                reward=host.reward(part, tokens).float().cpu(),
                nfe=result.row_nfe.cpu(),
                decisions=result.trace.decisions.cpu(),
                changed=result.trace.changed.cpu(),
                picks=result.trace.picks.cpu(),
                ready=result.trace.ready.cpu(),
                gate=result.trace.gate.cpu(),
                seconds=torch.full((len(part),), share),
            ),
        )
