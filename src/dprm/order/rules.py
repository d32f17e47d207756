"""Three selection rules, named for what they do, vectorised over rows with a budget each.

    top_m             the m largest scores (hard tilt, the MAP limit)
    shortlist_top_m   draw N without replacement ∝ ψ (an exponential race), then the m largest scores
    soft_bon          draw N i.i.d. ∝ ψ, then one of them ∝ e^{βR̂} with multiplicity; m times without replacement

Shapes: B rows, L positions, K the largest budget, N the largest shortlist.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.order.choice import Choice, Decision, Picks, clear_cut, largest, only
from dprm.order.noise import ACCEPT, DRAW, SHORTLIST, Stream
from dprm.order.signals import LEAST_PSI

# From here on, adding LEAST_PSI changes no float32.
_FAR_ABOVE_LEAST_PSI = LEAST_PSI * 2**26

RULES = ("top_m", "shortlist_top_m", "soft_bon")


def top_m(decision: Decision) -> Choice:
    """The m largest scores; with a silent table, the host's own order."""
    if decision.tilt.silent:
        picks = decision.host_picks()
        return Choice(decision, picks, decision.cell_at(picks.position), by_host=True)
    cell = decision.all_cells()
    rank = decision.rank(decision.host_value, cell)
    positive = decision.positive and decision.tilt.factor is not None and decision.seen is None
    score = only(decision.candidates, rank, positive, out=rank)
    picks = largest(score, decision.candidates, decision.budget, decision.most)
    return Choice(decision, picks, cell.gather(1, picks.position))


def draw(decision: Decision, rule: str, shortlist: tuple[int, int, int], stream: Stream, everywhere: bool) -> Choice:
    """The two rules that draw: N = min(most, max(least, per·m)) of every row, never below m.

    Unless `everywhere`, rows in which no candidate has a correction keep the host's own order.
    """
    least, ceiling, per = shortlist
    most, budget = decision.most, decision.budget
    size_most = max(most, min(ceiling, max(least, per * most)))
    size: int | Tensor = size_most
    if isinstance(budget, Tensor):
        size = torch.maximum(budget, (budget * per).clamp(least, ceiling))
    one_by_one = soft_bon if rule == "soft_bon" else shortlist_top_m
    picks, cell = one_by_one(decision, size, size_most, stream)
    if everywhere:
        return Choice(decision, picks, cell)
    informed = (decision.bonus(decision.all_cells()) != 0) & decision.candidates
    known = informed.any(1, keepdim=True)
    host = decision.host_picks()
    index = torch.where(known, picks.position, host.position)
    picks = Picks(index, torch.where(known, picks.kept_flags(), host.kept_flags()))
    return Choice(decision, picks, decision.cell_at(index))


def shortlist_top_m(decision: Decision, size: int | Tensor, size_most: int, stream: Stream) -> tuple[Picks, Tensor]:
    """Looks values up for the shortlist only: the table costs nothing for the other positions."""
    keys = race(decision, stream)
    drawn = largest(keys, decision.candidates, size, size_most, descending=True)
    listed, most = drawn.position, decision.most
    cell, value = decision.cell_and_value_at(listed)
    rank = decision.rank(value, cell, listed)
    if drawn.kept is None:
        best = clear_cut(rank, most) or _best_in_turn(rank, keys.gather(1, listed), most)
    else:
        best = largest(only(drawn.kept, rank), drawn.kept, decision.budget, most)
    return Picks(listed.gather(1, best.position), best.kept), cell.gather(1, best.position)


def _best_in_turn(rank: Tensor, keys: Tensor, most: int) -> Picks:
    """The `most` largest of a full shortlist; a tie goes to the first to ring."""
    turn = keys.sort(dim=1, descending=True, stable=True).indices
    best = rank.gather(1, turn).sort(dim=1, descending=True, stable=True).indices[:, :most]
    return Picks(turn.gather(1, best), None)


def race(decision: Decision, stream: Stream) -> Tensor:
    """Keys whose N largest are N draws without replacement ∝ ψ: of exponential clocks at rate ψ the first to ring.

    Clock i rings at E_i/ψ_i with E = −log u. A linear signal is ψ itself, and −E/ψ = log u/ψ needs no second logarithm;
    non-candidates ring at infinity.
    """
    value = decision.host_value
    log_u = stream.log_uniform(value.shape[1], SHORTLIST)
    if not decision.signal.linear:
        return only(decision.candidates, decision.signal.log_psi(value) - log_u.neg_().log_())
    if value is not decision.confidence or decision.low < _FAR_ABOVE_LEAST_PSI:
        value = value + LEAST_PSI
    return log_u.div_(value * decision.candidates.view(torch.uint8))


def soft_bon(decision: Decision, size: int | Tensor, size_most: int, stream: Stream) -> tuple[Picks, Tensor]:
    """The law of the Soft-BoN theorem, for one position after the other without replacement."""
    cell = decision.all_cells()
    bonus = decision.bonus(cell)
    psi = decision.host_value if decision.signal.linear else decision.signal.log_psi(decision.host_value).exp()
    mass = psi.double().clamp(min=LEAST_PSI) * decision.candidates
    rows, length = psi.shape
    width = min(decision.most, length)
    column = torch.arange(size_most, device=psi.device)
    drawn = column < (size.unsqueeze(1) if isinstance(size, Tensor) else size)
    index = torch.zeros(rows, width, dtype=torch.int64, device=psi.device)
    kept = torch.zeros(rows, width, dtype=torch.bool, device=psi.device)
    for turn in range(width):
        cumulative = mass.cumsum(1)
        total = cumulative[:, -1:]
        uniform = stream.log_uniform(size_most, DRAW, turn).expm1_().neg_()
        draws = torch.searchsorted(cumulative, uniform * total, right=True).clamp_(max=length - 1)
        clock = stream.log_uniform(size_most, ACCEPT, turn).neg_().log_()
        tilted = torch.where(drawn, bonus.gather(1, draws) - clock, -torch.inf)
        winner = draws.gather(1, tilted.argmax(1, keepdim=True))
        index[:, turn] = winner.squeeze(1)
        kept[:, turn] = (turn < decision.budget) & (total.squeeze(1) > 0)
        mass.scatter_(1, winner, 0.0)
    return Picks(index, kept), cell.gather(1, index)
