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
from dprm.order.moment import Moment, look_up
from dprm.order.noise import ACCEPT, DRAW, SHORTLIST, Stream
from dprm.order.ranking import Picks, largest, only
from dprm.order.signals import LEAST_PSI, Signal

RULES = ("top_m", "shortlist_top_m", "soft_bon")


def top_m(moment: Moment) -> Choice:
    """The m largest scores; with a silent table, the host's own order."""
    if moment.tilt.silent:
        picks = largest(only(moment.candidates, moment.host_value), moment.budget, moment.most)
        return Choice(moment, picks, moment.cell_at(picks.position), by_host=True)
    cell = moment.all_cells()
    rank = moment.tilt.rank(moment.signal, moment.host_value, cell)
    picks = largest(only(moment.candidates, rank), moment.budget, moment.most)
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
    informed = (look_up(moment.tilt.bonus, moment.all_cells()) != 0) & moment.candidates
    known = informed.any(1, keepdim=True)
    host = largest(only(moment.candidates, moment.host_value), budget, most)
    index = torch.where(known, picks.position, host.position)
    picks = Picks(index, torch.where(known, picks.flags(), host.flags()))
    return Choice(moment, picks, moment.cell_at(index))


def shortlist_top_m(moment: Moment, size: int | Tensor, size_most: int, stream: Stream) -> tuple[Picks, Tensor]:
    """Looks values up for the shortlist only: the table costs nothing for the other positions."""
    keys = race(moment.signal, moment.host_value, moment.candidates, stream)
    listed, present = largest(keys, size, size_most)
    cell, value = moment.cell_and_value_at(listed)
    rank = moment.tilt.rank(moment.signal, value, cell)
    if present is None and isinstance(moment.budget, int):
        # A full shortlist is short enough to be sorted, which settles ties by itself.
        best = Picks(rank.sort(dim=1, descending=True, stable=True).indices[:, : moment.most], None)
    else:
        best = largest(rank if present is None else only(present, rank), moment.budget, moment.most)
    return Picks(listed.gather(1, best.position), best.kept), cell.gather(1, best.position)


def race(signal: Signal, value: Tensor, candidates: Tensor, stream: Stream) -> Tensor:
    """Keys whose N largest are N draws without replacement ∝ ψ: of exponential clocks at rate ψ the first to ring.

    Clock i rings at E_i/ψ_i with E = −log u. A linear signal is ψ itself, and −E/ψ = log u/ψ needs no second logarithm;
    non-candidates ring at infinity.
    """
    log_u = stream.log_uniform(value.shape[1], SHORTLIST)
    if signal.linear:
        return log_u.div_((value + LEAST_PSI).mul_(candidates.view(torch.uint8)))
    return only(candidates, signal.log_psi(value) - log_u.neg_().log_())


def soft_bon(moment: Moment, size: int | Tensor, size_most: int, stream: Stream) -> tuple[Picks, Tensor]:
    """The law of the Soft-BoN theorem, for one position after the other without replacement."""
    cell = moment.all_cells()
    bonus = look_up(moment.tilt.bonus, cell)
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
