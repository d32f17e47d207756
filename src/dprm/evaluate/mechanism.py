"""How a learned order comes to other answers than the host's own: where they first part, and what it shows before what.

Both orders decode alike until they first choose differently: up to there the canvas is the same, bit for bit. With i
the learned order's choice and j the host's at that canvas:

    Δψ      = ψ_i − ψ_j                what the learned order gives up in confidence
    ΔR̂      = R̂_i − R̂_j                what it expects to gain
    Δscore  = s_i − s_j                at least 0
    reversal   log ψ_i < log ψ_j and s_i > s_j

Shapes: N problems, L positions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from dprm.decode.loop import Step, advance, begin
from dprm.evaluate.audit import means_of
from dprm.evaluate.bootstrap import mean_interval, paired_interval
from dprm.evaluate.parts import rows_of_parts
from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout
from dprm.order import Order
from dprm.order.noise import mix, mix_rows

# There are many intervals of these.
RESAMPLES = 1000


class FirstParting:
    """Looks on while an order decodes, and keeps its first choice that is not the host's own, of every row.

    Attributes:
        columns: by name, [N] float64, NaN where the orders never part: step, confidence, value, score (chosen minus the
            host's choice), reversal (0 or 1), and the canvas positions `chosen` and `usual`.
        canvas: [N,L] what both had made until then.
    """

    NAMES = ("step", "confidence", "value", "score", "reversal", "chosen", "usual")

    def __init__(self, count: int, length: int):
        self.columns = {name: torch.full((count,), torch.nan, dtype=torch.float64) for name in self.NAMES}
        self.canvas = torch.full((count, length), -1)

    def __call__(self, step: Step) -> None:
        choice, row = step.choice, step.state.row
        parted = choice.changed & self.columns["step"].to(row.device)[row].isnan()
        if not bool(parted.any()):
            return
        mine, usual = choice.mask & ~choice.host_mask, choice.host_mask & ~choice.mask

        def gap(values: Tensor) -> Tensor:
            return _mean_at(values, mine) - _mean_at(values, usual)

        place = torch.arange(mine.shape[1], device=mine.device).expand_as(mine)
        score = gap(choice.score)
        found = {
            "step": step.state.step + 1,
            "confidence": gap(step.reading.confidence),
            "value": gap(choice.value),
            "score": score,
            "reversal": (gap(choice.log_psi) < 0) & (score > 0),
            "chosen": _mean_at(place, mine),
            "usual": _mean_at(place, usual),
        }
        where = row[parted].cpu()
        for name, column in found.items():
            self.columns[name][where] = column[parted].double().cpu()
        self.canvas[where] = step.state.tokens[parted].cpu()


def first_partings(host: Host, problems: Problems, order: Order, seed: int = 0, rows: int = 256) -> FirstParting:
    """Decode as `Decode` does, and look on."""
    found = FirstParting(len(problems), problems.canvas.shape[1])
    for start in range(0, len(problems), rows):
        some = problems[start : start + rows]
        part = FirstParting(len(some), problems.canvas.shape[1])
        tables = order.cells.tables
        table = mix_rows(some.key, 6) % tables if tables > 1 else None
        state = begin(some.canvas, host.decoding, mix_rows(some.key, mix(seed)), some.context)
        advance(host.model(), state, order, host.decoding, table=table, on_step=part)
        for name, column in part.columns.items():
            found.columns[name][start : start + rows] = column
        found.canvas[start : start + rows] = part.canvas
    return found


def mechanism(
    host: Host, problems: Problems, order: Order, run: Rollout, control: Rollout, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """For a card: what is above and below, over all problems and part by part.

    Args:
        run, control: what the order and the host's own order have decoded with this seed.
    """
    parted = first_partings(host, problems, order, seed)
    rewards = [host.reward(each.scores) for each in (run, control)]
    won, lost = rewards[0] > rewards[1], rewards[0] < rewards[1]
    changed = (run.step_map != control.step_map).any(1)
    told = dict(host.audit or {})
    timing = [means_of(each.step_map, each.tokens, won, **told)["first_number"][0] for each in (run, control)]
    words = [words_first(each, told.get("eot"), told.get("digits", ())) for each in (run, control)]
    facts = {}
    for part, rows in {"all": torch.arange(len(problems)), **rows_of_parts(host, problems)}.items():
        here = {
            "problems": len(rows),
            "permutations changed": int(changed[rows].sum()),
            "mean gate": float(run.gate[rows].sum() / run.picks[rows].sum().clamp(min=1)),
            "first parting": _means({name: column[rows] for name, column in parted.columns.items()}),
        }
        if told.get("digits"):
            both = rows[~timing[0][rows].isnan() & ~timing[1][rows].isnan()]
            if len(both):
                mine, usual = timing[0][both], timing[1][both]
                here["first number"] = {
                    "rows": len(both),
                    "learned": float(mine.mean()),
                    "host": float(usual.mean()),
                    "difference": [round(end, 5) for end in paired_interval(mine, usual, RESAMPLES)],
                }
            for name, which in (("wins", won), ("losses", lost)):
                some = rows[which[rows]]
                here[name] = {
                    "problems": len(some),
                    "words before the number": {
                        "learned": int(words[0][some].sum()),
                        "host": int(words[1][some].sum()),
                    },
                    "first parting": _means({key: column[some] for key, column in parted.columns.items()}),
                }
        facts[part] = here
    return facts


def cases(
    host: Host, problems: Problems, run: tuple[str, Rollout], control: tuple[str, Rollout]
) -> dict[str, list[str]]:
    """For a card: what only the order solves, `won`, and what only the reference does, `lost`, as the host shows it.

    Args:
        run, control: name and rollout of the order and of the reference.
    """
    difference = host.reward(run[1].scores) - host.reward(control[1].scores)
    shown = {}
    for name, which in (("won", difference > 0), ("lost", difference < 0)):
        rows = which.nonzero().flatten()
        if lines := host.gallery(problems[rows], {control[0]: control[1][rows], run[0]: run[1][rows]}):
            shown[name] = lines
    return shown


def words_first(rollout: Rollout, eot: int | None, digits: Collection[int]) -> Tensor:
    """[N] bool: a token that is neither a number nor EOT was revealed before the first number."""
    number = torch.isin(rollout.tokens, torch.tensor(list(digits), dtype=rollout.tokens.dtype))
    revealed = rollout.step_map > 0
    never = torch.iinfo(torch.int32).max
    first = torch.where(number & revealed, rollout.step_map, never).amin(1)
    other = revealed & ~number
    if eot is not None:
        other &= rollout.tokens != eot
    return (torch.where(other, rollout.step_map, never).amin(1) < first) & (first < never)


def _mean_at(values: Tensor, where: Tensor) -> Tensor:
    """[B] the mean of values [B,L] over some positions."""
    return torch.where(where, values.double(), 0.0).sum(1) / where.sum(1)


def _means(columns: dict[str, Tensor]) -> dict[str, Any]:
    """How many rows parted, and the means over them, of differences with 95 % intervals."""
    there = ~columns["step"].isnan()
    facts: dict[str, Any] = {"rows": int(there.sum())}
    if facts["rows"]:
        facts |= {
            name: [round(end, 5) for end in mean_interval(columns[name][there], RESAMPLES)]
            for name in FirstParting.NAMES[:5]
        }
    return facts
