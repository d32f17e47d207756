"""The protocol after a fit: which policy, at which guidance, is taken over the host's own order, if any.

Every setting, a policy at a guidance, decodes the select split, the same problems as the host's order. One is taken
only if the lower end of its interval, corrected for the number of settings, is above 0; a policy whose values do not
transfer to problems it has not seen is not tried at all. Otherwise guidance is 0. Values that are asked prompt by
prompt cost model calls at every decoding, so they are taken only where no policy with values of its own is. The account
says why, and how many problems it would have taken to see the gain that was found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from dprm.evaluate.choosing import choose, problems_needed
from dprm.evaluate.verdict import EQUAL_CALLS, REGARDLESS
from dprm.fit.estimators import Fitted
from dprm.fit.montecarlo import MonteCarlo, is_local
from dprm.fit.seen import SELECTED, sketch
from dprm.fit.tracking import DELTA
from dprm.host.decoded import decoded
from dprm.host.engine import Engine
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode, Way
from dprm.order.files import write_whole
from dprm.order.order import Order
from dprm.order.policy import Policy
from dprm.order.values import radius

# A table with less of its evidence settled than this needs more.
_ENOUGH = 0.5
HOST = "host"


@dataclass(frozen=True)
class Setting:
    """One policy at one guidance, on the select split.

    Attributes:
        mean: its mean reward. delta, low, high: difference to the host's order, its interval corrected for the number
            of settings. needed: problems that would show this difference, if it is one; None where it is not.
        calls: mean model calls a problem.
    """

    policy: str
    guidance: float
    mean: float
    delta: float
    low: float
    high: float
    needed: int | None
    calls: float


@dataclass(frozen=True)
class Account:
    """What was tried, and what was taken.

    Attributes:
        taken: the setting, or None for the host's own order. settings: all that were tried.
        refused: policies that were not tried, and why. count: problems of the select split. host_mean, host_calls:
            their reward and model calls under the host's own order.
        settled: of tables, the share of the evidence that lies in cells whose value is larger than its radius.
        calls: model calls of this choice, all settings together; those of the fits are in the notes of the policies.
    """

    host: str
    count: int
    problems: str
    host_mean: float
    host_calls: float
    taken: Setting | None
    settings: tuple[Setting, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[str, float] = field(default_factory=dict)
    calls: int = 0

    def lines(self) -> list[str]:
        """For people."""
        lines = [f"{self.count} problems of select; the host's own order earns {self.host_mean:.3f}"]
        for setting in self.settings:
            more = setting.calls > EQUAL_CALLS * self.host_calls
            price = f", {setting.calls:.1f} calls a problem instead of {self.host_calls:.1f}" if more else ""
            lines.append(
                f"{setting.policy} at guidance {setting.guidance:g}: {setting.delta:+.4f} "
                f"[{setting.low:+.4f}, {setting.high:+.4f}]{price}"
            )
        lines += [f"{name}: not tried, {reason}" for name, reason in self.refused.items()]
        lines.append(f"the choice took {self.calls:,} model calls")
        if self.taken is not None:
            return [*lines, f"taken: {self.taken.policy} at guidance {self.taken.guidance:g}"]
        lines.append("taken: the host's own order (guidance 0); no corrected interval is above 0")
        lines += [
            f"{name}: {share:.0%} of its evidence is for values larger than they can be off (radius, δ = {DELTA}): "
            "raise --calls"
            for name, share in self.settled.items()
            if share < _ENOUGH
        ]
        best = max(self.settings, key=lambda setting: setting.delta, default=None)
        if best is not None and best.needed is not None and best.needed > self.count:
            lines.append(f"to see a gain of {best.delta:+.4f} takes about {best.needed} problems: raise --select")
        return lines

    def save(self, path: Path) -> None:
        """One JSON file."""
        write_whole(path, (json.dumps(asdict(self), indent=2) + "\n").encode())


@dataclass(frozen=True)
class Settled:
    """The policy to deploy, at guidance 0 where none is better than the host's order; its control; and the account."""

    policy: Policy
    shuffled: Policy | None
    account: Account


def settle(
    host: Host,
    problems: Problems,
    fits: Mapping[str, Fitted],
    strengths: Mapping[str, tuple[float, ...]],
    *,
    rule: str | None = "top_m",
    regardless: bool = False,
    rows: int = 64,
    seed: int = 0,
    folder: Path | None = None,
    on: Engine | None = None,
    on_batch: Callable[[str, int], None] | None = None,
) -> Settled:
    """Choose among fitted policies.

    Args:
        problems: the select split. fits: by name. strengths: guidances, above 0, to try of each.
        rule: how deployed policies select; None: as they were learned.
        regardless: where no setting is taken, deploy the one of the best mean all the same, and note it: to be shown
            beside others, not to be used.
        folder, on: as in `decoded`.
    """
    for name, fitted in fits.items():
        if bool((known := torch.isin(problems.groups.cpu(), fitted.groups)).any()):
            row = int(known.nonzero()[0])
            raise ValueError(
                f"problems[row {row}] of select was fitted on by {name}: what was learned on cannot choose"
            )
    policies = {name: fitted.policy for name, fitted in fits.items()}
    refused = {name: reason for name, policy in policies.items() if (reason := _does_not_transfer(policy))}
    ways: dict[str, Way] = {HOST: Decode()}
    tried: dict[str, tuple[str, float]] = {}
    for name, policy in policies.items():
        for guidance in () if name in refused else strengths[name]:
            title = f"{name} at {guidance:g}"
            ways[title] = _way(policy, guidance, rule)
            tried[title] = (name, guidance)

    def answered(ways: Mapping[str, Way]) -> dict[str, tuple[Tensor, Tensor]]:
        """Rewards and calls of every way."""
        rollouts = decoded(host, problems, ways, seed=seed, rows=rows, folder=folder, on=on, on_batch=on_batch)
        return {name: (host.reward(rollout.scores), rollout.nfe) for name, rollout in rollouts.items()}

    answers = answered(ways)
    control, host_calls = answers[HOST]
    settings: dict[str, Setting] = {}
    taken = None
    if tried:
        costly = [title for title in tried if is_local(policies[tried[title][0]])]
        rewards = {title: answers[title][0] for title in tried}
        chosen = choose(rewards, control, seed=seed, costly=costly, paired=host.paired, groups=problems.groups.cpu())
        for title, (name, guidance) in tried.items():
            delta, low, high = chosen.intervals[title]
            reward, nfe = answers[title]
            variance = float((reward - control).var())
            needed = problems_needed(delta, variance, tries=len(tried)) if delta > 0 else None
            calls = float(nfe.double().mean())
            settings[title] = Setting(name, guidance, float(reward.mean()), delta, low, high, needed, calls)
        taken = None if chosen.setting is None else settings[chosen.setting]
    shuffled = None
    if taken is not None and (control_policy := fits[taken.policy].shuffled) is not None:
        # Its strength is chosen as that of the policy was.
        trials = {f"shuffled at {g:g}": _way(control_policy, g, rule) for g in strengths[taken.policy]}
        controls = answered(trials)
        best = max(strengths[taken.policy], key=lambda g: float(controls[f"shuffled at {g:g}"][0].mean()))
        shuffled = replace(control_policy, guidance=best, rule=rule or control_policy.rule)
        answers |= controls
    account = Account(
        host.name,
        len(problems),
        problems.digest,
        float(control.mean()),
        float(host_calls.double().mean()),
        taken,
        tuple(settings.values()),
        refused,
        {name: _settled_share(policy) for name, policy in policies.items() if policy.stats is not None},
        sum(int(nfe.sum()) for _, nfe in answers.values()),
    )
    deployed, notes = taken, {"selected_on": problems.digest, SELECTED: sketch(problems.groups)}
    if taken is None and regardless and settings:
        deployed = max(settings.values(), key=lambda setting: setting.mean)
        notes[REGARDLESS] = f"select says {deployed.delta:+.4f} [{deployed.low:+.4f}, {deployed.high:+.4f}]"
    policy = policies[deployed.policy] if deployed is not None else next(iter(policies.values()))
    guidance = 0.0 if deployed is None else deployed.guidance
    settled = replace(policy, guidance=guidance, rule=rule or policy.rule, notes={**policy.notes, **notes})
    return Settled(settled, shuffled, account)


def _way(policy: Policy, guidance: float, rule: str | None) -> Way:
    if is_local(policy):
        return MonteCarlo.of_policy(policy, guidance)
    return Decode(Order.from_policy(policy, rule=rule, guidance=guidance))


def _settled_share(policy: Policy) -> float:
    """Share of a table's evidence in cells whose value is larger than its radius."""
    assert policy.stats is not None
    events = policy.stats.sums[0]
    sure = policy.table.value.abs() > radius(policy.stats, DELTA)
    return float(events[sure].sum() / events.sum().clamp(min=1e-300))


def _does_not_transfer(policy: Policy) -> str | None:
    """Why its values should not be trusted on other problems, if its fit has found that out."""
    if "leaning" in policy.notes:  # Found on whole decodings, not by the comparisons that explain nothing.
        return None
    explained = policy.notes.get("explained")
    if explained is not None and float(explained) <= 0.0:
        return f"on problems it was not fitted on its values explain nothing ({float(explained):+.4f} of the variance)"
    return None
