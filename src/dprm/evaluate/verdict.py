"""The verdict: what a result card allows to be done with a learned order, and why.

The paper's deployment rule as a program. The rules are asked in this order; the first that fits decides:

    fall back            the policy changes no decision (guidance 0, or no evidence)
    do not promote       decisions change, every output is exactly the reference's, and there are at least 60
    do not promote       the whole paired interval is below 0
    fall back            no gain: the lower end of the paired interval, widened for the policies tried, is not above 0
    fall back            the gain was seen on the fit or select split only
    fall back            the select split did not take it: it was deployed to be shown
    fall back            sparse: fewer than half of the decisions are in ready cells
    fall back            unsettled: most of a table's evidence is for values smaller than their radius
    fall back            no value control in the card, or aliased: shuffled values do as well
    fall back            poorer cells, which tell fewer decisions apart, do significantly better
    fall back            it takes more model calls, and the best of as many reference paths does as well
    report rollout cost  it takes more model calls than the reference, or its values are estimated prompt by prompt
    apply                otherwise: a significant gain on problems that chose nothing, at equal model calls

With k policies on one test split, the best of them is a choice. Their intervals are widened as normal ones would be,

    low_k = low − (δ − low) · (z(1 − 0.025/k) / z(0.975) − 1),

so that all of them together are wrong as rarely as one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from dprm.evaluate.ablations import NO_PHASES, NO_STATES, SHUFFLED, ablation_name
from dprm.evaluate.card import Arm, Card
from dprm.evaluate.seeds import in_words
from dprm.fit.cost import Cost
from dprm.fit.montecarlo import MONTE_CARLO

APPLY, FALL_BACK, DO_NOT_PROMOTE, REPORT_COST = "apply", "fall back", "do not promote", "report rollout cost"
VERDICTS = (APPLY, FALL_BACK, DO_NOT_PROMOTE, REPORT_COST)
# Splits on which policies are made or chosen: a gain there has yet to be tested.
CHOOSING = ("train", "fit", "select")
# More calls than this share of the reference's are a cost, not rounding.
EQUAL_CALLS = 1.01
# The note of a policy that is shown although the select split did not take it.
REGARDLESS = "regardless"
# Outputs do not change if none of n does and, at 95 %, no more than this share can: 3/n, the rule of three.
FEW_OUTPUTS = 0.05
# Fewer decisions than this in ready cells: the table is sparse; less evidence than this for values larger than they can
# be off: it is not settled.
ENOUGH_READY = ENOUGH_SETTLED = 0.5


@dataclass(frozen=True)
class Verdict:
    """One of `VERDICTS` about one policy.

    Attributes:
        arm: the policy's arm in the card; None where no policy was compared.
        reason: why, in a few words. evidence: the numbers it rests on, a line each.
    """

    verdict: str
    reason: str
    arm: str | None = None
    evidence: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """For a card."""
        return asdict(self) | {"evidence": list(self.evidence)}


def policies(card: Card) -> list[str]:
    """The arms that act on learned values, without their ablations."""
    learned = (name for name, arm in card.arms.items() if arm.policy is not None or "estimator" in arm.fit)
    return [name for name in learned if card.arms[name].ablates is None and name != card.reference]


def judge(card: Card, tries: int | None = None) -> Verdict:
    """The verdict on a card: that of a policy that can be used, or else of the one with the largest difference.

    Args:
        tries: how many policies were tried in all, if more than the card shows.
    """
    names = policies(card)
    if not names:
        return Verdict(FALL_BACK, "no learned order was compared")
    found = [judge_policy(card, name, tries or len(names)) for name in names]
    return max(found, key=lambda one: (_usable(one), card.arms[one.arm or ""].delta or 0.0))


def judge_cards(cards: dict[str, Card]) -> tuple[Verdict, dict[str, Verdict]]:
    """The verdict on a host and on each of its cards.

    Cards of the test split count before others. The policies of all of them together are what was tried.
    """
    tested = {name: card for name, card in cards.items() if card.split not in CHOOSING and policies(card)}
    tries = max(1, sum(len(policies(card)) for card in tested.values()))
    each = {name: judge(card, tries if name in tested else None) for name, card in cards.items()}
    deciding = [each[name] for name in tested] or [one for one in each.values() if one.arm] or list(each.values())
    if not deciding:
        return Verdict(FALL_BACK, "there is no result card"), each
    return max(deciding, key=lambda one: (_usable(one), one.verdict == DO_NOT_PROMOTE)), each


def judge_policy(card: Card, name: str, tries: int = 1) -> Verdict:
    """The verdict on one policy of a card, among `tries`."""
    verdict, reason = _rule(card, name, tries)
    return Verdict(verdict, reason, name, tuple(_evidence(card, name, tries)))


def lower_end(arm: Arm, tries: int = 1) -> float:
    """Lower end of the paired interval of an arm, widened for `tries`; see the module."""
    if arm.delta is None or arm.delta_low is None:
        raise ValueError("this arm is the reference: it has no difference to itself")
    z = NormalDist().inv_cdf
    wider = z(1 - 0.025 / tries) / z(0.975) - 1
    return arm.delta_low - (arm.delta - arm.delta_low) * wider


def _usable(one: Verdict) -> int:
    return {APPLY: 2, REPORT_COST: 1}.get(one.verdict, 0)


def _rule(card: Card, name: str, tries: int) -> tuple[str, str]:
    arm, reference = card.arms[name], card.arms[card.reference]
    if arm.guidance == 0 or (arm.changed == 0 and not arm.differs):
        return FALL_BACK, "the policy is the host's own order"
    if arm.differs == 0 and 3 / card.count <= FEW_OUTPUTS:
        return DO_NOT_PROMOTE, "decisions change, outputs do not"
    if arm.delta_high is not None and arm.delta_high < 0:
        return DO_NOT_PROMOTE, "a significant loss"
    if lower_end(arm, tries) <= 0:
        return FALL_BACK, f"no gain on {card.split}" + ("; the table is sparse" if arm.ready < ENOUGH_READY else "")
    if card.split in CHOOSING:
        return FALL_BACK, f"a gain on {card.split}, not yet tested"
    if REGARDLESS in arm.fit:
        return FALL_BACK, f"a gain, but select did not take it: {arm.fit[REGARDLESS]}"
    if arm.nfe > EQUAL_CALLS * reference.nfe or arm.fit.get("estimator") == MONTE_CARLO:
        if any(control.mean >= arm.mean for control in _controls(card, arm)):
            return FALL_BACK, "the reference does as well at equal model calls"
        return REPORT_COST, f"a gain at {arm.nfe / reference.nfe:.2f} times the model calls"
    if arm.ready < ENOUGH_READY:
        return FALL_BACK, f"a gain, but the table is sparse: {arm.ready:.0%} of the decisions in ready cells"
    settled = arm.diagnostics.get("settled")
    if settled is not None and settled < ENOUGH_SETTLED:
        return FALL_BACK, f"a gain, but {settled:.0%} of the evidence is for values larger than they can be off"
    shuffled = card.arms.get(ablation_name(name, SHUFFLED))
    if shuffled is None or shuffled.gap is None:
        return FALL_BACK, "a gain without a control of its values: compare with --ablate"
    if _aliased(shuffled):
        return FALL_BACK, "aliased: shuffled values do as well"
    for poorer in (NO_STATES, NO_PHASES):
        gap_high = getattr(card.arms.get(ablation_name(name, poorer)), "gap_high", None)
        if gap_high is not None and gap_high < 0:
            return FALL_BACK, f"a gain, but poorer cells do better: {poorer}"
    return APPLY, "a significant gain at equal model calls"


def _aliased(shuffled: Arm) -> bool:
    """Whether shuffled values are at least as good, or gain too and cannot be told from the policy's."""
    gains = shuffled.delta_low is not None and shuffled.delta_low > 0
    apart = shuffled.gap_low is not None and shuffled.gap_low > 0
    return (shuffled.gap or 0.0) <= 0 or (gains and not apart)


def _controls(card: Card, arm: Arm) -> list[Arm]:
    """Arms of several reference paths at no more calls than this one, but for rounding."""
    return [other for other in card.arms.values() if "control" in other.fit and other.nfe <= EQUAL_CALLS * arm.nfe]


def _evidence(card: Card, name: str, tries: int) -> Iterator[str]:
    arm = card.arms[name]
    interval = f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]"
    yield f"difference to {card.reference}: {interval} on {card.count:,} problems of {card.split}"
    if tries > 1:
        yield f"lower end widened for {tries} policies: {lower_end(arm, tries):+.3f}"
    yield (
        f"decisions: {arm.changed:.1%} are not the host's own; {arm.ready:.0%} in ready cells, mean gate {arm.gate:.2f}"
    )
    if (settled := arm.diagnostics.get("settled")) is not None:
        yield f"{settled:.0%} of the evidence of its table is for values larger than they can be off"
    yield _terminals(card, arm)
    for title, other in card.arms.items():
        if other.ablates == name and other.gap is not None:
            gap = f"{other.gap:+.3f} [{other.gap_low:+.3f}, {other.gap_high:+.3f}]"
            yield f"{title.removeprefix(f'{name}, ')}: difference {other.delta:+.3f}; the policy minus it {gap}"
    looks = card.notes.get("looks", {}).get(name)
    if looks is not None:
        warning = "; a split that is looked at again and again chooses" if looks else ""
        yield f"looks at {card.split} before this one: {looks or 'none'}{warning}"
    yield f"model calls a problem: {arm.nfe:.1f}, {card.reference} {card.arms[card.reference].nfe:.1f}"
    for control in _controls(card, arm):
        yield f"{control.fit['control']}: mean {control.mean:.3f} at {control.nfe:.1f} calls, the policy {arm.mean:.3f}"
    for entry in card.notes.get("seeds", []):
        if name in entry["fits"]:
            yield in_words(entry, card.reference)
    cost = Cost.of_notes(arm.fit)
    if cost != Cost():
        yield f"the fit took {cost}"


def _terminals(card: Card, arm: Arm) -> str:
    if arm.differs is None:
        return "outputs: not compared in this card"
    if arm.differs == 0:
        most = min(1.0, 3 / card.count)
        return f"outputs: all {card.count:,} exactly as under {card.reference} (at most {most:.2%} others)"
    return f"outputs: {arm.differs:.1%} differ from those of {card.reference}"
