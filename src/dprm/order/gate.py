"""The gate: how far the learned value is trusted.

    η_u(cell) = clip((u − T_warm)/(T_switch − T_warm), 0, 1) · min(N_cell/N_ready, 1)

With T_switch = T_warm the first factor is a step: 0 before T_warm, 1 from it on.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dprm.order.checks import check_number


@dataclass(frozen=True)
class Gate:
    """Warm-up, full switch and readiness thresholds (T_warm, T_switch, N_ready)."""

    warm: float = 0
    switch: float = 0
    ready: float = 64

    def __post_init__(self) -> None:
        check_number("warm", self.warm, 0)
        check_number("switch", self.switch, 0)
        check_number("ready", self.ready, 0, open_low=True)
        if self.switch < self.warm:
            raise ValueError(f"switch is {self.switch}: the full switch cannot come before warm = {self.warm}")

    def ramp(self, step: float) -> float:
        """The global factor at schedule index u."""
        if self.switch == self.warm:
            return float(step >= self.warm)
        return min(max((step - self.warm) / (self.switch - self.warm), 0.0), 1.0)

    def readiness(self, support: Tensor) -> Tensor:
        """The cell's factor, from the evidence it holds."""
        return (support / self.ready).clamp(max=1.0)
