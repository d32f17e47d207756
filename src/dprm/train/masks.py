"""Which positions of a training canvas are masked: what a mask law is, and the uniform law.

A law turns clean sequences into canvases for one training step, and may look at the logits of that step to prepare the
next (the streaming pool does). Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.decode.rows import Rows
from dprm.host.identity import word
from dprm.order import Order
from dprm.train.transformer import Transformer


class Data(Protocol):
    """An endless supply of training sequences.

    What else belongs to them, such as pictures, is given by a method `context(step, rows)` where there is anything: B
    rows, see `decode.rows`.

    Attributes:
        mask_id: the token that hides a position.
    """

    mask_id: int

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        """clean [B,L] int64 and answer [B,L] bool (the positions to be predicted): a pure function of its arguments."""


@dataclass(frozen=True)
class Canvases:
    """What one training step sees.

    Attributes:
        clean: [B,L] int64. noisy: [B,L], clean with masks. masked: [B,L] bool, at least one a row.
        context: what the model is told besides; None: nothing.
    """

    clean: Tensor
    noisy: Tensor
    masked: Tensor
    context: Rows | None = field(default=None, kw_only=True)


class MaskLaw:
    """Canvases of every step, in order."""

    def canvases(self, step: int) -> Canvases:
        """The canvases of this step."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """Plain data that says which law this is, and on which data; a checkpoint belongs to it."""
        raise NotImplementedError

    def advance(self, step: int, logits: Tensor) -> None:
        """Take notice of the logits [B,L,V] that the model gave for the canvases of this step."""

    def lesson(self, step: int, average: Transformer) -> dict[str, float]:
        """Learn after `step` steps, perhaps from what the averaged model does; returns what the log should say."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold to go on with the next step."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from `state`."""


def hide(clean: Tensor, answer: Tensor, shown: Tensor, mask_id: int, draws: Draws) -> Canvases:
    """Show every answer position with probability `shown` [B], independently, but keep at least one masked.

    u_i ~ U(0,1);  i is masked ⇔ u_i ≥ min(shown, max_j u_j), which the position with the largest u always meets.
    """
    u = draws.uniform(*clean.shape).masked_fill(~answer, -1.0)
    masked = answer & (u >= torch.minimum(shown.unsqueeze(1), u.amax(1, keepdim=True)))
    return Canvases(clean, clean.masked_fill(masked, mask_id), masked)


class RandomMasks(MaskLaw):
    """The law of masked diffusion: a share t ~ U(0,1) of the answer is masked, each position independently.

    Args:
        data: the sequences. rows: B. seed: of the masks.
        device: where canvases live.
    """

    def __init__(self, data: Data, rows: int, seed: int = 0, device: torch.device | str = "cpu"):
        self.data, self.rows, self.seed, self.device = data, rows, seed, device

    def canvases(self, step: int) -> Canvases:
        clean, answer = self.data.batch(step, self.rows)
        draws = Draws("masks", self.seed, step, device=self.device)
        canvases = hide(clean, answer, draws.uniform(self.rows), self.data.mask_id, draws)
        return replace(canvases, context=context_of(self.data, step, self.rows))

    def spec(self) -> dict[str, Any]:
        return {"name": "random", "rows": self.rows, "seed": self.seed, "data": data_word(self.data)}


def context_of(data: Data, step: int, rows: int) -> Rows | None:
    """What else belongs to the sequences of a batch; None where there is nothing."""
    given = getattr(data, "context", None)
    return None if given is None else given(step, rows)


def data_word(data: Data) -> str:
    """A digest that tells data apart: of its first sequences."""
    context = context_of(data, 0, 4)
    return word(*data.batch(0, 4), *([] if context is None else [context]))


def order_spec(order: Order) -> dict[str, Any]:
    """Plain data that says what an order would do now."""
    policy = order.policy()
    return {**policy.header, "digest": policy.digest, "explore": order.explore}
