"""The paper's own controller on a host: cells, gate, rule and temperature, so that it can stand beside ours."""

from __future__ import annotations

from dataclasses import dataclass

from dprm.order.checks import check_count, check_number


@dataclass(frozen=True, kw_only=True)
class Controller:
    """Settings of the paper's DPRM on one host; what the paper does not say of a host is that of most of them.

    Attributes:
        phases, bins: of the cells. states: whether the cells know the host's own state.
        beta, guidance: the tilt is guidance · β · R̂.
        warm, switch: T_warm and T_switch as shares of the learning. ready: N_ready while learning.
        decoding_ready: N_ready of what is deployed; None: the same.
        rule, shortlist: how positions are selected, while learning and after it.
        warm_signal: the order before T_warm, where it is another one than the host's.
        sets: branched sets of positions are credited with the terminal reward, instead of whole trajectories.
    """

    phases: int = 8
    bins: int = 16
    states: bool = False
    beta: float = 1.0
    guidance: float = 1.0
    warm: float = 0.1
    switch: float = 0.4
    ready: float = 128.0
    decoding_ready: float | None = None
    rule: str = "shortlist_top_m"
    shortlist: tuple[int, int, int] = (8, 64, 4)
    warm_signal: str | None = None
    sets: bool = False

    def __post_init__(self) -> None:
        check_count("phases", self.phases, 1)
        check_count("bins", self.bins, 1)
        check_number("warm", self.warm, 0, 1)
        check_number("switch", self.switch, self.warm, 1)
