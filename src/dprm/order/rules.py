"""Three selection rules, named for what they do, vectorised over rows with a budget each.

    top_m             the m largest scores (hard tilt, the MAP limit)
    shortlist_top_m   draw N without replacement ∝ ψ (an exponential race), then the m largest scores
    soft_bon          draw N i.i.d. ∝ ψ, then one of them ∝ e^{βR̂} with multiplicity; m times without replacement

Shapes: B rows, L positions, K the largest budget, N the largest shortlist.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.order.choice import Choice
from dprm.order.moment import Moment
from dprm.order.noise import ACCEPT, DRAW, SHORTLIST, Stream
from dprm.order.ranking import Picks, clear_cut, largest, only
from dprm.order.signals import LEAST_PSI

# From here on, adding LEAST_PSI changes no float32.
_FAR_ABOVE_LEAST_PSI = LEAST_PSI * 2**26

RULES = ("top_m", "shortlist_top_m", "soft_bon")


def top_m(moment: Moment) -> Choice:
    """The m largest scores; with a silent table, the host's own order."""
    if moment.tilt.silent:
        picks = moment.host_picks()
        return Choice(moment, picks, moment.cell_at(picks.position), by_host=True)
    cell = moment.all_cells()
    rank = moment.rank(moment.host_value, cell)
    positive = moment.positive and moment.tilt.factor is not None and moment.seen is None
    picks = largest(only(moment.candidates, rank, positive, out=rank), moment.candidates, moment.budget, moment.most)
    return Choice(moment, picks, cell.gather(1, picks.position))


def draw(moment: Moment, rule: str, shortlist: tuple[int, int, int], stream: Stream, everywhere: bool) -> Choice:
    """The two rules that draw: N = min(most, max(least, per·m)) of every row, never below m.

    Unless `everywhere`, rows in which no candidate has a correction keep the host's own order.
    """
    least, ceiling, per = shortlist
    most, budget = moment.most, moment.budget
    size_most = max(most, min(ceiling, max(least, per * most)))
    size: int | Tensor = size_most
    if isinstance(budget, Tensor):
        size = torch.maximum(budget, (budget * per).clamp(least, ceiling))
    one_by_one = soft_bon if rule == "soft_bon" else shortlist_top_m
    picks, cell = one_by_one(moment, size, size_most, stream)
    if everywhere:
        return Choice(moment, picks, cell)
    informed = (moment.bonus(moment.all_cells()) != 0) & moment.candidates
    known = informed.any(1, keepdim=True)
    host = moment.host_picks()
    index = torch.where(known, picks.position, host.position)
    picks = Picks(index, torch.where(known, picks.kept_flags(), host.kept_flags()))
    return Choice(moment, picks, moment.cell_at(index))


def shortlist_top_m(moment: Moment, size: int | Tensor, size_most: int, stream: Stream) -> tuple[Picks, Tensor]:
    """Looks values up for the shortlist only: the table costs nothing for the other positions."""
    keys = race(moment, stream)
    drawn = largest(keys, moment.candidates, size, size_most)
    listed, most = drawn.position, moment.most
    cell, value = moment.cell_and_value_at(listed)
    rank = moment.rank(value, cell, listed)
    if drawn.kept is None:
        best = clear_cut(rank, most) or _best_in_turn(rank, keys.gather(1, listed), most)
    else:
        best = largest(only(drawn.kept, rank), drawn.kept, moment.budget, most)
    return Picks(listed.gather(1, best.position), best.kept), cell.gather(1, best.position)


def _best_in_turn(rank: Tensor, keys: Tensor, most: int) -> Picks:
    """The `most` largest of a full shortlist; a tie goes to the first to ring."""
    turn = keys.sort(dim=1, descending=True, stable=True).indices
    best = rank.gather(1, turn).sort(dim=1, descending=True, stable=True).indices[:, :most]
    return Picks(turn.gather(1, best), None)


def race(moment: Moment, stream: Stream) -> Tensor:
    """Keys whose N largest are N draws without replacement ∝ ψ, or ∝ ψ·e^bonus where the proposal is tilted.

    Of exponential clocks at rate ψ these are the first to ring.

    Clock i rings at E_i/ψ_i with E = −log u. A linear signal is ψ itself, and −E/ψ = log u/ψ needs no second logarithm;
    non-candidates ring at infinity.
    """
    value = moment.host_value
    log_u = stream.log_uniform(value.shape[1], SHORTLIST)
    if moment.tilted:
        log_psi = moment.signal.log_psi(value) + moment.bonus(moment.all_cells())
        return only(moment.candidates, log_psi - log_u.neg_().log_())
    if not moment.signal.linear:
        return only(moment.candidates, moment.signal.log_psi(value) - log_u.neg_().log_())
    if value is not moment.confidence or moment.low < _FAR_ABOVE_LEAST_PSI:
        value = value + LEAST_PSI
    return log_u.div_(value * moment.candidates.view(torch.uint8))


def soft_bon(moment: Moment, size: int | Tensor, size_most: int, stream: Stream) -> tuple[Picks, Tensor]:
    """The law of the Soft-BoN theorem, for one position after the other without replacement."""
    cell = moment.all_cells()
    bonus = moment.bonus(cell)
    psi = moment.host_value if moment.signal.linear else moment.signal.log_psi(moment.host_value).exp()
    mass = psi.double().clamp(min=LEAST_PSI) * moment.candidates
    rows, length = psi.shape
    width = min(moment.most, length)
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
        kept[:, turn] = (turn < moment.budget) & (total.squeeze(1) > 0)
        mass.scatter_(1, winner, 0.0)
    return Picks(index, kept), cell.gather(1, index)
