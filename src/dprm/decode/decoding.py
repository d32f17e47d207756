"""All that a decoder is told, said once by the host: the model's own part of every decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from dprm.decode.counts import CountRule, Fixed
from dprm.decode.guards import HoldBack
from dprm.decode.reader import Logits, Reader
from dprm.decode.revoke import Revoke
from dprm.decode.windows import Window
from dprm.order.checks import check_count, check_number, check_one_of
from dprm.order.order import Order
from dprm.order.reading import Reading
from dprm.order.signals import Confidence, Signal

StateOf = Callable[[Tensor, Reading], Tensor]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a host decodes.

    Attributes:
        mask_id: the token that hides a position; the model need not give it.
        forbid: other tokens that are never revealed; the model need not give them.
        signal: the host's own order; every order called "host" is made of it.
        count, window, guard, revoke: the host's objects; None: whole canvas, no guard, nothing is revoked.
        together: reveal with what is chosen all that is surer than this; None: nothing.
        temperature: 0 takes the most probable token. Otherwise every position has its own noise, drawn once, and its
            value changes only when the canvas does.
        top_p, top_k: of the draws, see `Logits`.
        confidence_of: with a temperature, whose clean probability the order sees: that of the "drawn" token, as most
            hosts have it, or that of the "mode", so that the order does not depend on what was drawn.
        reader: reads what the model gives; None: logits.
        states: number of host-specific cell states, 1 for none. state_of: (canvas, reading) → [B,L] int, the state of
            every position.
    """

    mask_id: int
    forbid: tuple[int, ...] = ()
    signal: Signal = field(default_factory=Confidence)
    count: CountRule = field(default_factory=Fixed)
    window: Window | None = None
    guard: HoldBack | None = None
    revoke: Revoke | None = None
    together: float | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    confidence_of: str = "drawn"
    reader: Reader | None = None
    states: int = 1
    state_of: StateOf | None = None

    def __post_init__(self) -> None:
        check_count("mask_id", self.mask_id, 0)
        if not isinstance(self.forbid, tuple | list):
            raise TypeError(f"forbid is {self.forbid!r}: expected a tuple of tokens")
        for token in self.forbid:
            check_count("forbid", token, 0)
        check_number("temperature", self.temperature, 0.0)
        check_one_of("confidence_of", self.confidence_of, ("drawn", "mode"))
        check_count("states", self.states, 1)
        if self.states > 1 and self.state_of is None:
            raise ValueError(f"states is {self.states}: expected state_of as well, which says the state of a position")
        if self.revoke is not None and getattr(self.count, "steps", None) is None:
            raise ValueError(
                f"revoke needs a count with a fixed number of steps (Cumulative or Even), not {self.count}"
            )
        if self.reader is None:
            reader = Logits((self.mask_id, *self.forbid), self.top_p, self.top_k)
            object.__setattr__(self, "reader", reader)

    def order(self) -> Order:
        """The host's own order."""
        return Order(signal=self.signal)

    def words(self) -> dict[str, str]:
        """For people: the count rule and the signal, and what else is not as usual."""
        count = str(self.count.m) if isinstance(self.count, Fixed) else str(self.count)
        usual = Decoding(mask_id=self.mask_id)
        names = ("window", "guard", "revoke", "together", "temperature", "top_p", "top_k", "confidence_of", "states")
        other = {name: str(getattr(self, name)) for name in names if getattr(self, name) != getattr(usual, name)}
        return {"count": count, "signal": self.signal.name, **other}
