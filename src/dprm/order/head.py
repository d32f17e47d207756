"""A learned head: the value of revealing each position, from what a decision shows anyway. No model call is added.

    R̂_i = w · φ_i,   φ the fixed features of `order.features`

Which token it is is not shown to it, and of its place only how many candidates stand to the left: with the tens of
thousands of comparisons that a fit can pay for, it would learn them by heart. With w = 0 the host's order stays as it
is. Shapes: B rows, L positions, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from dprm.order.features import basis, names, paced
from dprm.order.fold import Fold
from dprm.order.reading import Reading


@dataclass
class Sight:
    """What a head sees of one decision.

    Attributes:
        tokens: [B,L] int64, the canvas if all were revealed now: predictions, and what is visible already.
        confidence, margin, entropy: [B,L] float32, as in `Reading`; meaningless where nothing is masked.
        candidates: [B,L] bool. progress: [B] float32. budget: [B] int64.
        aux: [B,L] int64, the host's state of every position; zeros where there is none.
    """

    tokens: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    candidates: Tensor
    progress: Tensor
    budget: Tensor
    aux: Tensor

    @classmethod
    def of(
        cls,
        reading: Reading,
        candidates: Tensor,
        budget: int | Tensor,
        progress: float | Tensor,
        aux: Tensor | None,
    ) -> Sight:
        """The sight of a decision, as `Order.select` is asked for it."""
        device = candidates.device
        rows = (len(candidates),)
        zero = torch.zeros((), dtype=torch.int64, device=device)
        return cls(
            tokens=reading.tokens,
            confidence=reading.confidence.float(),
            margin=reading.margin.float(),
            entropy=reading.entropy.float(),
            candidates=candidates,
            progress=progress.float() if isinstance(progress, Tensor) else torch.full(rows, progress, device=device),
            budget=budget if isinstance(budget, Tensor) else torch.full(rows, budget, device=device),
            aux=zero.expand_as(candidates) if aux is None else aux.long(),
        )

    @classmethod
    def joined(cls, parts: Sequence[Sight]) -> Sight:
        """Several, one after the other."""
        return cls(**{f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def __getitem__(self, rows: Tensor | slice) -> Sight:
        return Sight(**{name: column[rows] for name, column in vars(self).items()})

    def to(self, device: torch.device | str) -> Sight:
        """The same, elsewhere."""
        return Sight(**{name: column.to(device) for name, column in vars(self).items()})

    def numbers(self) -> Tensor:
        """[B,L,17] float32, each of the order of 1; visible positions are sure; see `features.NUMBERS`."""
        open_ = self.candidates
        confidence = torch.where(open_, self.confidence, 1.0)
        log_psi = confidence.clamp(min=1e-6).log()
        hidden = torch.where(open_, log_psi, -torch.inf)
        best = hidden.amax(1, keepdim=True).clamp(min=-1e4)
        # The host's own picks: at least as sure as the m-th surest candidate.
        ordered = hidden.sort(dim=1, descending=True).values
        edge = ordered.gather(1, (self.budget.unsqueeze(1) - 1).clamp(0, open_.shape[1] - 1))
        columns = (
            confidence,
            (1.0 - confidence).clamp(min=1e-4).log() * -0.2,
            torch.where(open_, self.margin, 1.0),
            torch.where(open_, self.entropy, 0.0).clamp(max=4.0),
            (log_psi - best).clamp(-5.0, 0.0),
            open_.float(),
            (open_ & (hidden >= edge)).float(),
            self.progress.unsqueeze(1).expand_as(confidence),
            (self.budget.float() * 0.25).unsqueeze(1).expand_as(confidence),
        )
        turns = paced(confidence, open_, self.budget)
        return torch.cat([torch.stack(columns, dim=2), turns.to(confidence.dtype)], dim=2)


@dataclass(frozen=True, eq=False)
class Head:
    """Sight → R̂ [B,L].

    Attributes:
        weight: [F] float32.
        aux: number of aux states. reach: neighbours seen on each side.
        support: comparisons it was fitted on.
        counts: [cells] int64, positions that were compared, by their cell; the gate asks for it. None: not known.
    """

    weight: Tensor
    aux: int = 1
    reach: int = 4
    support: int = 0
    counts: Tensor | None = None

    def __post_init__(self) -> None:
        wanted = len(names(self.aux, self.reach))
        if self.weight.shape != (wanted,):
            raise ValueError(f"weight has shape {tuple(self.weight.shape)}: expected ({wanted},), one a feature")

    @classmethod
    def empty(cls, aux: int = 1, reach: int = 4, support: int = 0) -> Head:
        """The head that says nothing."""
        return cls(torch.zeros(len(names(aux, reach))), aux, reach, support)

    def features(self, sight: Sight) -> Tensor:
        """φ of every position, [B,L,F]."""
        return basis(sight.numbers(), sight.aux, sight.candidates, self.aux, self.reach)

    def __call__(self, sight: Sight) -> Tensor:
        """R̂ of every position, [B,L] float32: w · φ, see `order.fold`."""
        return self._folded(sight)

    @cached_property
    def _folded(self) -> Fold:
        return Fold.of(self.weight.detach(), self.aux, self.reach)

    def to(self, device: torch.device | str) -> Head:
        """The same, elsewhere."""
        return replace(self, weight=self.weight.to(device))

    def strongest(self, count: int) -> list[tuple[str, float]]:
        """The features with the largest weights, by name; features are of the order of 1."""
        weight = self.weight.cpu()
        named = names(self.aux, self.reach)
        top = weight.abs().topk(min(count, len(named))).indices.tolist()
        return [(named[index], float(weight[index])) for index in top if weight[index] != 0]

    def to_dict(self) -> dict[str, Any]:
        """Its shape and support, as a policy stores them."""
        return {"aux": self.aux, "reach": self.reach, "support": self.support}
