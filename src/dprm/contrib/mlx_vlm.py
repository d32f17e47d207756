"""mlx-vlm: the function with which its diffusion sampler accepts positions, for Apple computers.

    _diffusion_confidence_transfer_mask(confidence [B,L], unrevealed [B,L], threshold, *, force_all) → mask [B,L]

What it accepts stays, also where the model has no mask token, so that an order is the same thing here. A table over
confidence is applied in arrays of the engine, which stay unevaluated; what is traced is read one step later, when the
engine has looked at its canvas. Only an order that draws, or ranks by odds, reads the arrays at once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch

NAME = "_diffusion_confidence_transfer_mask"


class Ordered:
    """The same function, accepting as many positions as it would, chosen by a policy.

    Args:
        mx: `mlx.core`.
    """

    def __init__(self, transfer_mask: Callable[..., Any], selector: Selector, mx: Any, watch: Watch | None = None):
        self.transfer_mask, self.selector, self.mx = transfer_mask, selector, mx
        self.watch = watch or Watch()
        order = selector.order
        # Where p · exp(bonus of its cell) is all there is to a score, no number has to be known.
        self._factor: Any = None
        if not order.draws and order.head is None and order.signal.name == "confidence" and order.cells.aux == 1:
            factor = order._tilt(torch.device("cpu"), order.gate.ramp(order.step)).factor
            self._factor = None if factor is None else mx.array(factor.numpy())
        self._noted: tuple[Any, ...] | None = None

    def __call__(self, confidence: Any, unrevealed: Any, threshold: float, **named: Any) -> Any:
        own = self.transfer_mask(confidence, unrevealed, threshold, **named)
        if self.selector.idle:
            return own
        if self._factor is None:
            score, candidates, mask = (_read(each) for each in (confidence, unrevealed, own))
            chosen = self.selector.select(mask.bool(), score, candidates.bool(), self.watch.mixed(candidates.bool()))
            return self.mx.array(chosen.numpy())
        chosen, changed = self._chosen(confidence, unrevealed, own)
        self.note()
        if self.selector.traces is not None:
            self._noted = copy.copy(self.watch), chosen, confidence, unrevealed, changed
        return chosen

    def note(self) -> None:
        """Write down the step before, which the engine has looked at since."""
        if self._noted is None:
            return
        (watch, *arrays), self._noted = self._noted, None
        mask, confidence, candidates, changed = map(_read, arrays)
        requests = watch.mixed(candidates.bool())
        self.selector.record(mask.bool(), confidence, candidates.bool(), requests, changed=changed.bool())

    def _chosen(self, confidence: Any, unrevealed: Any, own: Any) -> tuple[Any, Any]:
        """mask [B,L] and changed [B], in arrays that nobody has evaluated."""
        mx, (phases, bins, _) = self.mx, self.selector.order.cells.shape
        p = mx.where(unrevealed, confidence.astype(mx.float32), 0.0)
        shown = 1.0 - mx.sum(unrevealed, axis=-1, keepdims=True).astype(mx.float32) / p.shape[-1]
        phase = mx.minimum((shown * phases).astype(mx.int32), phases - 1)
        cell = phase * bins + mx.minimum((p * bins).astype(mx.int32), bins - 1)
        count = mx.sum(own & unrevealed, axis=-1, keepdims=True)
        mine = self._top(p * mx.take(self._factor, cell), unrevealed, count)
        changed = mx.any(mine != self._top(p, unrevealed, count), axis=-1)
        return mx.where(changed[:, None], mine, own & unrevealed), changed

    def _top(self, score: Any, unrevealed: Any, count: Any) -> Any:
        """[B,L] bool, the `count` largest scores of every row, of equal ones the leftmost."""
        mx = self.mx
        score = mx.where(unrevealed, score, -1.0)
        place = mx.arange(score.shape[-1])
        here, there = score[:, :, None], score[:, None, :]
        before = (there > here) | ((there == here) & (place[None, None, :] < place[None, :, None]))
        return unrevealed & (mx.sum(before, axis=-1) < count)


def _read(array: Any) -> torch.Tensor:
    return torch.from_numpy(numpy.array(array))


@contextmanager
def attached(module: Any, selector: Selector, mx: Any) -> Iterator[Watch]:
    """Have `mlx_vlm.generate.diffusion` accept by a policy; `mx` is `mlx.core`."""
    if selector.order.head is not None:
        raise ValueError("this sampler shows only confidence: a head needs logits; use a policy with a table")
    ordered = Ordered(getattr(module, NAME, None), selector, mx)  # type: ignore[arg-type]
    with replaced(module, NAME, ordered):
        try:
            yield ordered.watch
        finally:
            ordered.note()
