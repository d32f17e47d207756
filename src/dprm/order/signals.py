"""Signals: the host's own opinion ψ of each position, one definition each.

A signal gives a `value` [B,L] whose descending order, ties to the left, *is* the host's order. DPRM adds β·R̂ to log ψ.
To keep the host's order bit for bit where nothing is known, a value is never sent through a logarithm: a `linear`
signal is ψ itself and the correction multiplies it by e^{βR̂}; any other is log ψ and the correction is added.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from dprm.order.checks import check_bounds, check_number, check_shape
from dprm.order.lanes import log
from dprm.order.noise import RANDOM_ORDER, Stream
from dprm.order.reading import Reading

# Smallest ψ that takes part in a draw or a logarithm; below it positions are all equally unattractive.
LEAST_PSI = 1e-20


class Signal:
    """Base of all signals. Subclasses are frozen dataclasses: their fields are the signal's settings."""

    name: ClassVar[str]
    linear: ClassVar[bool] = True
    needs_noise: ClassVar[bool] = False

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        """[B,L] the host's ranking value."""
        raise TypeError(f"{type(self).__name__} defines no value")

    def log_psi(self, value: Tensor) -> Tensor:
        """[B,L] log ψ, from the ranking value."""
        return value.clamp(min=LEAST_PSI).log() if self.linear else value

    def spec(self) -> dict[str, Any]:
        """Name and settings, as a policy stores them."""
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **settings}


@dataclass(frozen=True)
class Confidence(Signal):
    """ψ = p(token): the incumbent of nearly every system."""

    name: ClassVar[str] = "confidence"

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        return reading.confidence


@dataclass(frozen=True)
class Odds(Signal):
    """ψ = p/(1 − p), the odds of the token: the order of confidence, on a scale that has room near certainty.

    Between p = .99 and p = .999 log p moves by .009 and the log odds by 2.3: a learned correction that may move
    positions at p = .6 would shuffle the sure ones on the first scale, and leaves them alone on the second. The
    logarithm is taken in float64, which keeps any two float32 p < 1 apart.
    """

    name: ClassVar[str] = "odds"
    linear: ClassVar[bool] = False

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        p = reading.confidence.double()
        against = (1.0 - p).clamp_(min=2.0**-25)
        p.clamp_(min=1e-45)
        return log(p, out=p).sub_(log(against, out=against))


@dataclass(frozen=True)
class Margin(Signal):
    """ψ = p₁ − p₂."""

    name: ClassVar[str] = "margin"

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        return reading.margin


@dataclass(frozen=True)
class Entropy(Signal):
    """log ψ = −H(p)."""

    name: ClassVar[str] = "entropy"
    linear: ClassVar[bool] = False

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        return -reading.entropy


@dataclass(frozen=True)
class Uncertainty(Signal):
    """ψ = 1 − p₁: the unsure positions first, the reward-blind control that the paper calls entropy order."""

    name: ClassVar[str] = "uncertainty"

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        return 1.0 - (reading.confidence if reading.peak is None else reading.peak)


@dataclass(frozen=True)
class Random(Signal):
    """ψ = 1: a uniformly random order, from the row's seed.

    The value is a standard Gumbel variate, so adding β·R̂ and taking the largest draws exactly ∝ e^{βR̂}.
    """

    name: ClassVar[str] = "random"
    linear: ClassVar[bool] = False
    needs_noise: ClassVar[bool] = True

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        if stream is None:
            raise ValueError("signal 'random' needs a seed")
        return -stream.log_uniform(reading.tokens.shape[1], RANDOM_ORDER).neg_().log_()

    def log_psi(self, value: Tensor) -> Tensor:
        return torch.zeros_like(value)


@dataclass(frozen=True)
class NoisyConfidence(Signal):
    """log ψ = log p(token) + r · (1 − progress) · Gumbel: confidence that explores early, as samplers of molecules do.

    At r = 0 it is the order of confidence. The noise belongs to the signal, so every order that is made of it has it.
    """

    name: ClassVar[str] = "noisy_confidence"
    linear: ClassVar[bool] = False
    needs_noise: ClassVar[bool] = True
    randomness: float = 0.3

    def __post_init__(self) -> None:
        check_number("randomness", self.randomness, 0)

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        if stream is None:
            raise ValueError("signal 'noisy_confidence' needs a seed")
        gumbel = -stream.log_uniform(reading.tokens.shape[1], RANDOM_ORDER).neg_().log_()
        left = 1.0 - stream.progress
        scale = left.to(gumbel).unsqueeze(1) if isinstance(left, Tensor) else left
        return reading.confidence.clamp(min=LEAST_PSI).log() + self.randomness * scale * gumbel


@dataclass(frozen=True)
class LeftToRight(Signal):
    """log ψ = −slope · position: a correction must be worth `slope` to jump one position ahead."""

    name: ClassVar[str] = "left_to_right"
    linear: ClassVar[bool] = False
    slope: float = 1.0

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        rows, length = reading.tokens.shape
        position = torch.arange(length, device=reading.tokens.device, dtype=torch.float32)
        return (position * -self.slope).expand(rows, length)


@dataclass(frozen=True)
class Halton(Signal):
    """log ψ = −slope · rank along the Halton (2, 3) sequence over an image grid: early reveals spread out.

    Every grid point takes the rank of the first point of the sequence that falls into it. Positions before `offset`
    (a text prompt) and after the grid come last, left to right.
    """

    name: ClassVar[str] = "halton"
    linear: ClassVar[bool] = False
    height: int = 16
    width: int = 16
    offset: int = 0
    slope: float = 1.0

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        rows, length = reading.tokens.shape
        ranks = _halton_row(self.height, self.width, self.offset, length, reading.tokens.device)
        return (ranks * -self.slope).expand(rows, length)


@dataclass(frozen=True)
class PositionWeighted(Signal):
    """ψ = p(token) · e^{−decay·position}: confidence that prefers the left, as PC-Sampler weighs it."""

    name: ClassVar[str] = "position_weighted"
    linear: ClassVar[bool] = False
    decay: float = 0.02

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        position = torch.arange(reading.tokens.shape[1], device=reading.tokens.device, dtype=torch.float32)
        return reading.confidence.clamp(min=LEAST_PSI).log() - self.decay * position


@dataclass(frozen=True)
class Custom(Signal):
    """ψ from any function of a Reading: [B,L], finite and not negative."""

    name: ClassVar[str] = "custom"
    function: Callable[[Reading], Tensor]

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        psi = self.function(reading)
        check_shape("signal(reading)", psi, tuple(reading.tokens.shape), "one ψ a position")
        psi = psi.float()
        check_bounds("signal(reading)", psi, 0.0, torch.finfo(torch.float32).max, "ψ must be finite and not negative")
        return psi

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "function": getattr(self.function, "__qualname__", type(self.function).__name__)}


SIGNALS: dict[str, type[Signal]] = {
    kind.name: kind
    for kind in (
        Confidence,
        Odds,
        Margin,
        Entropy,
        Uncertainty,
        Random,
        NoisyConfidence,
        LeftToRight,
        Halton,
        PositionWeighted,
    )
}


def resolve_signal(signal: str | Signal | Callable[[Reading], Tensor]) -> Signal:
    """A signal from its name, from itself, or from a function of a Reading that returns ψ.

    A name may set the signal's first number: `noisy_confidence:0.1`.
    """
    if isinstance(signal, Signal):
        return signal
    if isinstance(signal, str):
        name, colon, number = signal.partition(":")
        if name not in SIGNALS:
            raise ValueError(f"signal is {signal!r}: expected one of {', '.join(SIGNALS)}, or a function of a Reading")
        if not colon:
            return SIGNALS[name]()
        fields = dataclasses.fields(SIGNALS[name])  # type: ignore[arg-type]
        settings = [field for field in fields if field.type in ("int", "float")]
        try:
            return SIGNALS[name](**{settings[0].name: (int if settings[0].type == "int" else float)(number)})
        except (IndexError, ValueError):
            raise ValueError(f"signal is {signal!r}: expected NAME or NAME:NUMBER, of a signal that has one") from None
    if callable(signal):
        return Custom(signal)
    raise TypeError(f"signal is {signal!r}: expected a name, a Signal or a function of a Reading")


def signal_from_spec(spec: dict[str, Any]) -> Signal:
    """The signal a policy was fitted with. A custom function cannot be stored: it must be given again."""
    settings = {key: setting for key, setting in spec.items() if key != "name"}
    if spec["name"] == Custom.name:
        raise ValueError(f"the policy was fitted with your function {settings['function']!r}: pass it as signal=…")
    if spec["name"] not in SIGNALS:
        raise ValueError(f"the policy was fitted with signal {spec['name']!r}, which this version does not know")
    return SIGNALS[spec["name"]](**settings)


@functools.lru_cache(maxsize=32)
def _halton_row(height: int, width: int, offset: int, length: int, device: torch.device) -> Tensor:
    """[L] rank of every position of a row, kept on its device."""
    ranks = torch.arange(length, dtype=torch.float32) + height * width
    grid = torch.tensor(halton_ranks(height, width), dtype=torch.float32)
    inside = min(max(length - offset, 0), len(grid))
    ranks[offset : offset + inside] = grid[:inside]
    return ranks.to(device)


def halton_ranks(height: int, width: int) -> list[int]:
    """Rank of every grid point, row by row, along the Halton sequence in bases 2 (rows) and 3 (columns)."""
    ranks = [-1] * (height * width)
    found, index = 0, 1
    while found < len(ranks):
        cell = math.floor(_radical_inverse(index, 2) * height) * width + math.floor(_radical_inverse(index, 3) * width)
        if ranks[cell] < 0:
            ranks[cell] = found
            found += 1
        index += 1
    return ranks


def _radical_inverse(index: int, base: int) -> float:
    inverse, digit = 0.0, 1.0 / base
    while index:
        index, remainder = divmod(index, base)
        inverse += remainder * digit
        digit /= base
    return inverse
