"""The protocol after a fit: which policy, at which guidance, is taken over the host's own order, if any.

Every setting, a policy at a guidance, decodes the select split, the same problems as the host's order. One is taken
only if the lower end of its paired interval, corrected for the number of settings, is above 0; a policy whose values do
not transfer to problems it has not seen is not tried at all. Otherwise guidance is 0. Values that are asked prompt by
prompt cost model calls at every decoding, so they are taken only where no policy with values of its own is. The account
says why, and how many problems it would have taken to see the gain that was found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from dprm.evaluate.choosing import choose, problems_needed
from dprm.evaluate.compare import compare
from dprm.evaluate.verdict import EQUAL_CALLS
from dprm.fit.montecarlo import MonteCarlo, is_local
from dprm.fit.tracking import DELTA
from dprm.host.host import Host, Problems
from dprm.order import Order, Policy
from dprm.order.files import write_whole
from dprm.order.values import radius

# A table with less of its evidence settled than this needs more.
_ENOUGH = 0.5


@dataclass(frozen=True)
class Setting:
    """One policy at one guidance, on the select split.

    Attributes:
        mean: its mean reward. delta, low, high: paired difference to the host's order, its interval corrected for the
            number of settings. needed: problems that would show this difference, if it is one; None where it is not.
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

    def lines(self) -> list[str]:
        """For people."""
        said = [f"{self.count} problems of select; the host's own order earns {self.host_mean:.3f}"]
        for setting in self.settings:
            more = setting.calls > EQUAL_CALLS * self.host_calls
            price = f", {setting.calls:.1f} calls a problem instead of {self.host_calls:.1f}" if more else ""
            said.append(
                f"{setting.policy} at guidance {setting.guidance:g}: {setting.delta:+.4f} "
                f"[{setting.low:+.4f}, {setting.high:+.4f}]{price}"
            )
        said += [f"{name}: not tried, {reason}" for name, reason in self.refused.items()]
        if self.taken is not None:
            said.append(f"taken: {self.taken.policy} at guidance {self.taken.guidance:g}")
            return said
        said.append("taken: the host's own order (guidance 0); no corrected interval is above 0")
        said += [
            f"{name}: {share:.0%} of its evidence is for values larger than they can be off (radius, δ = {DELTA}): "
            "raise --paths"
            for name, share in self.settled.items()
            if share < _ENOUGH
        ]
        best = max(self.settings, key=lambda setting: setting.delta, default=None)
        if best is not None and best.needed is not None and best.needed > self.count:
            said.append(f"to see a gain of {best.delta:+.4f} takes about {best.needed} problems: raise --select")
        return said

    def save(self, path: Path) -> None:
        """One JSON file."""
        write_whole(path, (json.dumps(asdict(self), indent=2) + "\n").encode())


def settle(
    host: Host,
    problems: Problems,
    policies: dict[str, Policy],
    guidances: Mapping[str, tuple[float, ...]],
    *,
    width: int | None = None,
    rows: int = 64,
    seed: int = 0,
    folder: Path | None = None,
    on_batch: Callable[[str, int], None] | None = None,
) -> tuple[Policy, Account]:
    """The policy to deploy, at guidance 0 where none is better than the host's order, and the account.

    Args:
        problems: the select split. policies: by name. guidances: what is tried of each, above 0.
        folder: keeps finished batches, as in `compare`.
    """
    refused = {name: reason for name, policy in policies.items() if (reason := _does_not_transfer(policy))}
    orders, local, settings = {"host": Order()}, {}, {}
    for name, policy in policies.items():
        if name not in refused:
            for guidance in guidances[name]:
                title = f"{name} at {guidance:g}"
                if is_local(policy):
                    local[title] = MonteCarlo.of_policy(policy, guidance, width, seed)
                else:
                    orders[title] = Order.from_policy(policy, rule="top_m", guidance=guidance)
                settings[title] = (name, guidance)
    _, found = compare(
        host,
        problems,
        orders,
        reference="host",
        split="select",
        budget=width,
        seed=seed,
        rows=rows,
        folder=folder,
        local=local,
        on_batch=on_batch,
    )
    control = found["host"].reward
    tried: dict[str, Setting] = {}
    taken = None
    if settings:
        chosen = choose({title: found[title].reward for title in settings}, control, seed=seed, costly=local)
        for title, (name, guidance) in settings.items():
            delta, low, high = chosen.intervals[title]
            variance = float((found[title].reward.double() - control.double()).var())
            needed = problems_needed(delta, variance, tries=len(settings)) if delta > 0 else None
            mean, calls = (float(part.double().mean()) for part in (found[title].reward, found[title].nfe))
            tried[title] = Setting(name, guidance, mean, delta, low, high, needed, calls)
        taken = None if chosen.setting is None else tried[chosen.setting]
    account = Account(
        host.name,
        len(problems),
        problems.digest,
        float(control.double().mean()),
        float(found["host"].nfe.double().mean()),
        taken,
        tuple(tried.values()),
        refused,
        {name: _settled(policy) for name, policy in policies.items() if policy.stats is not None},
    )
    policy = policies[taken.policy] if taken is not None else next(iter(policies.values()))
    guidance = 0.0 if taken is None else taken.guidance
    notes = {**policy.notes, "selected_on": problems.digest}
    return replace(policy, guidance=guidance, rule="top_m", notes=notes), account


def _settled(policy: Policy) -> float:
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
