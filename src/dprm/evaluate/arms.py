"""The arms of a comparison: which ways of answering are set side by side, and what is known of them beforehand.

Every card begins with the host's own order, under the name of its signal; it is the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dprm.evaluate.ablations import ablation_name, ablations, acts_as
from dprm.fit.montecarlo import MONTE_CARLO, MonteCarlo, is_local
from dprm.host.host import Host
from dprm.host.rollout import BestOf, Decode, Way
from dprm.order.order import Order
from dprm.order.policy import Policy
from dprm.search.around import Searching

# A table of earlier questions as the start of every fresh one, in a search.
WARM = "warm table"
# What is compared with the host's own order unless something else is asked for.
SIGNALS = ("confidence", "random", "entropy", "margin", "uncertainty")


@dataclass(frozen=True)
class Contender:
    """A way of answering in a comparison.

    Attributes:
        fit: what its policy says of its fit; or which control it is.
        ablates: the arm that this one takes something away from.
    """

    way: Way
    fit: Mapping[str, str] = field(default_factory=dict)
    ablates: str | None = None

    @property
    def order(self) -> Order | None:
        """The order that decodes; None for the host's own, and for ways that have several."""
        return self.way.order if isinstance(self.way, Decode) else None


def arms_of(
    host: Host,
    signals: Sequence[str] = SIGNALS,
    policies: Mapping[str, Policy] | None = None,
    shuffled: Mapping[str, Policy] | None = None,
    *,
    rule: str | None = None,
    ablate: bool = False,
    best_of: int = 1,
    candidates: int = 0,
    seed: int = 0,
) -> dict[str, Contender]:
    """The host's own order, orders by signals, learned orders, and controls, by name.

    Args:
        policies: learned orders. shuffled: of heads, the controls fitted with them, by the same names.
        rule: how policies select; None: as stored.
        ablate: add the ablations of every policy. best_of: add the best of so many paths of the host's own order.
        candidates: add values asked of continuations, of so many positions at a time; 0: do not.
        seed: of what is shuffled.
    """
    own, answered = host.decoding.signal.name, host.way or Decode
    arms = {own: Contender(answered(None))}
    orders = {own: host.decoding.order()}
    for name in signals:
        if name not in arms:
            orders[name] = Order(signal=name)
            arms[name] = Contender(answered(orders[name]))
    for name, policy in (policies or {}).items():
        if name in arms:
            raise ValueError(f"policies has {name!r}, the name of a signal that is compared: give it another name")
        if is_local(policy):
            # At guidance 0 nothing has to be asked.
            way: Way = MonteCarlo.of_policy(policy) if policy.guidance > 0 else Decode()
            arms[name] = Contender(way, policy.notes)
            continue
        orders[name] = Order.from_policy(policy, rule=rule)
        arms[name] = Contender(answered(orders[name]), policy.notes)
        if isinstance(host.way, Searching) and (warm := host.way.warm(policy)) is not None:
            arms[f"{name}, {WARM}"] = Contender(warm, policy.notes)
        if ablate and policy.guidance > 0:
            acting = {acts_as(order) for order in orders.values()}
            for ablation, order in ablations(orders[name], (shuffled or {}).get(name), seed).items():
                if acts_as(order) not in acting:
                    arms[ablation_name(name, ablation)] = Contender(answered(order), ablates=name)
    arms |= {name: Contender(way) for name, way in host.ways.items()}
    if best_of > 1:
        control = f"{own}, best of {best_of}"
        arms[control] = Contender(BestOf(best_of), {"control": control})
    if candidates:
        asking = MonteCarlo(candidates=candidates)
        arms[MONTE_CARLO] = Contender(asking, {"estimator": MONTE_CARLO, "setting": repr(asking)})
    return arms
