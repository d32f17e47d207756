"""A person's own reward: a function of one answer, or of many, whose mistakes are named by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.host.host import Problems


@dataclass(frozen=True)
class Judge:
    """`Host.judge`, by a function.

    Attributes:
        function: (tokens [L], facts) → a number, or one for every metric [J]; with `batched`,
            (tokens [N,L], list of facts) → [N] or [N,J].
        name: for messages.
    """

    function: Callable[..., Any]
    name: str = "reward"
    batched: bool = False

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def __call__(self, problems: Problems, tokens: Tensor) -> Tensor:
        if self.batched:
            return torch.as_tensor(self.function(tokens, list(problems.facts)))
        rows: list[Tensor] = []
        for row, (answer, facts) in enumerate(zip(tokens, problems.facts, strict=True)):
            try:
                rows.append(torch.as_tensor(self.function(answer, facts), dtype=torch.float64).detach().cpu())
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise ValueError(
                    f"{self.name} failed at row {row} (facts {str(facts)[:120]}): {reason[:400]}"
                ) from error
            if rows[row].shape != rows[0].shape or rows[row].dim() > 1:
                want = "a number, or one for every metric, the same for every row"
                raise ValueError(f"{self.name}[row {row}] has shape {tuple(rows[row].shape)}: expected {want}")
        return torch.stack(rows) if rows else torch.zeros(0)
