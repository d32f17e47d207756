"""The row of a study that the paper shows: trained and decoded by DPRM, against trained and decoded by confidence.

Both pipelines answer the same problems; what is kept of the pair, at one width:

    delta           share solved by the first minus that of the second, paired, with its interval
    treated_only    problems that only the first solves (under the first decode seed); control_only: only the second
    audit           of every statistic of the order audit its paired difference, and the same inside treated_only
    categories      the difference in every category of problems that the host names
    same_checkpoint the learned rules on the checkpoint of the learning arm, against its own top-k: share of answers
                    that are the same, token by token, and the difference in share solved: decoding without training
    seconds         mean seconds an answer of both, and their ratio
    wins            the first problems of treated_only as they were decoded by both, step by step

Shapes: S decode seeds, N problems, L positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.audit import means_of
from dprm.evaluate.bootstrap import mean_interval
from dprm.evaluate.replays import recording
from dprm.evaluate.study import LEARNED, Condition
from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout
from dprm.train.task import successes

# Arms that are trained along confidence order, of all kinds of studies.
CONTROLS = ("confidence", "confidence-progressive")
WINS = 2

Runs = Mapping[Condition, Sequence[Rollout]]


def pairs(conditions: Sequence[Condition], usual: str) -> list[tuple[Condition, Condition]]:
    """(treated, control) at every width: the first learned order of each arm that learns one, and the host's own order
    after the training along it."""
    found: dict[tuple[str, int], Condition] = {}
    for one in conditions:
        if one.order.startswith(LEARNED):
            found.setdefault((one.arm, one.width), one)
    controls = {one.width: one for one in conditions if one.arm in CONTROLS and one.order == usual}
    return [(one, controls[one.width]) for one in found.values() if one.width in controls]


def headline(
    host: Host,
    problems: Problems,
    treated: Condition,
    control: Condition,
    runs: Runs,
    usual: str,
    *,
    categories: Callable[[Any], Sequence[str]] | None = None,
    resamples: int = 5000,
    seed: int = 0,
) -> dict[str, Any]:
    """What is kept of one pair, as plain numbers for the card of a study; see the module.

    Args:
        host: of either arm: it judges, and says what an audit is told. problems: [N].
        runs: of these two conditions, and of those of the treated arm at this width.
        usual: the host's own order. categories: of the facts of a problem.
    """
    solved = {one: torch.stack([successes(host, run.scores) for run in runs[one]]) for one in runs}
    gain = solved[treated].double().mean(0) - solved[control].double().mean(0)
    first, second = solved[treated][0], solved[control][0]
    wins, losses = first & ~second, second & ~first
    how: dict[str, Any] = {"resamples": resamples, "seed": seed}
    found: dict[str, Any] = {"treated": asdict(treated), "control": asdict(control)}
    found |= _interval(gain, problems.groups.cpu(), **how)
    found |= {"treated_only": int(wins.sum()), "control_only": int(losses.sum())}
    if host.audit is not None:
        found["audit"] = _audited(host, runs[treated][0], runs[control][0], wins, **how)
    if categories is not None:
        names = [tuple(categories(facts)) for facts in problems.facts]
        found["categories"] = {}
        for name in sorted({name for each in names for name in each}):
            rows = torch.tensor([name in each for each in names])
            told = _interval(gain[rows], problems.groups.cpu()[rows], **how)
            found["categories"][name] = {"problems": int(rows.sum()), **told}
    found["same_checkpoint"] = _same_checkpoint(treated, runs, solved, usual, **how)
    seconds = {
        side: float(Rollout.joined(runs[one]).seconds.double().mean())
        for side, one in (("treated", treated), ("control", control))
    }
    found["seconds"] = {**seconds, "ratio": seconds["treated"] / max(seconds["control"], 1e-12)}
    rows_drawn = wins.nonzero().flatten().tolist()[:WINS]
    sides = {"treated": runs[treated][0], "control": runs[control][0]}
    found["wins"] = [
        {
            side: asdict(recording(run, float(host.reward(run.scores[row : row + 1])[0]), row))
            for side, run in sides.items()
        }
        for row in rows_drawn
    ]
    tokens = {int(token) for row in rows_drawn for run in sides.values() for token in run.tokens[row]}
    found["shown"] = {str(token): host.show(token) for token in sorted(tokens)}
    return found


def _audited(host: Host, run: Rollout, other: Rollout, wins: Tensor, **how: Any) -> dict[str, Any]:
    """Every statistic that is defined for both somewhere: its difference, overall and inside the wins."""
    nothing = torch.zeros(len(wins), dtype=torch.bool)
    told = host.audit or {}
    own, usual = (means_of(each.step_map, each.tokens, nothing, **told) for each in (run, other))
    found: dict[str, dict[str, Any]] = {}
    for name in own:
        difference = own[name][0] - usual[name][0]
        for part, rows in (("all", ~difference.isnan()), ("wins", ~difference.isnan() & wins)):
            if bool(rows.any()):
                found.setdefault(name, {})[part] = _interval(difference[rows], None, **how)
    return found


def _same_checkpoint(
    treated: Condition, runs: Runs, solved: Mapping[Condition, Tensor], usual: str, **how: Any
) -> list[dict[str, Any]]:
    """The learned rules of the treated arm against the host's own order on the same weights."""
    own = Condition(treated.arm, usual, treated.width)
    found = []
    for one in runs:
        if own in runs and one.arm == treated.arm and one.width == treated.width and one.order.startswith(LEARNED):
            same = [(run.tokens == other.tokens).all(1) for run, other in zip(runs[one], runs[own], strict=True)]
            difference = solved[one].double().mean(0) - solved[own].double().mean(0)
            told = {"order": one.order, "same": float(torch.stack(same).double().mean())}
            found.append({**told, **_interval(difference, None, **how)})
    return found


def _interval(values: Tensor, groups: Tensor | None, resamples: int, seed: int) -> dict[str, float]:
    interval = mean_interval(values.double(), resamples, seed=seed, groups=groups)
    return {name: round(value, 6) for name, value in zip(("delta", "low", "high"), interval, strict=True)}
