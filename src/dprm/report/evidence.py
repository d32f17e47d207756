"""From theory to evidence: what each claim of the paper would have to show on a host, and what committed cards show.

Every cell is read from the card of a comparison with a learned order; what a card does not know is left empty. These
are tests of what the theory assumes and predicts in direction; none of them estimates a constant of a theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dprm.evaluate.ablations import COUNT_ONLY, NO_PHASES, NO_STATES, SHUFFLED, ablation_name
from dprm.evaluate.card import Arm, Card
from dprm.evaluate.verdict import judge
from dprm.report.fits import fitted_arms
from dprm.report.numbers import markdown, with_interval

Reading = Callable[[Card, str], str]


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes:
        name: of it. statement: its endpoint, as `dprm theory` names it. prediction: what a host should show.
        shows: columns of the table: title → what a card says of a learned arm.
    """

    name: str
    statement: str
    prediction: str
    shows: dict[str, Reading]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _ready(card: Card, name: str) -> str:
    arm = card.arms[name]
    # Cards of the first version did not measure it.
    return f"{arm.ready:.0%}, gate {arm.gate:.2f}" if arm.ready or arm.gate else ""


def _stored(card: Card, name: str) -> str:
    stored = card.arms[name].diagnostics.get("stored")
    return "" if stored is None else f"{stored['ready']:.0%} of {stored['cells']:,}"


def _gap(*ablations: str) -> Reading:
    """How much better the policy is than the first of these ablations that the card has."""

    def read(card: Card, name: str) -> str:
        for ablation in ablations:
            arm = card.arms.get(ablation_name(name, ablation))
            if arm is not None and arm.gap is not None:
                return with_interval(arm.gap, arm.gap_low, arm.gap_high)
        return ""

    return read


def _calls(card: Card, name: str) -> str:
    return f"{card.arms[name].nfe / card.arms[card.reference].nfe:.2f}"


def _outputs(card: Card, name: str) -> str:
    arm = card.arms[name]
    return f"{arm.changed:.0%} → {_share(arm.differs) or '?'}"


def _parted(card: Card, name: str) -> str:
    told = card.arms[name].diagnostics.get("divergence", {}).get("reward")
    return "" if told is None else with_interval(told["mean"], told["low"], told["high"])


def _late(card: Card, name: str) -> str:
    own, usual = (card.arms[each].diagnostics.get("late_low") for each in (name, card.reference))
    return "" if own is None or usual is None else f"{usual:.1%} → {own:.1%}"


def _gain(card: Card, name: str) -> str:
    arm: Arm = card.arms[name]
    return with_interval(arm.delta, arm.delta_low, arm.delta_high)


CLAIMS = (
    Claim(
        "tracking of values",
        "online/joint",
        "selected cells have evidence; values matter: shuffled ones and counts alone do worse, poorer cells no better",
        {
            "selected in ready cells": _ready,
            "stored cells that are ready": _stored,
            "minus shuffled values": _gap(SHUFFLED),
            "minus counts alone": _gap(COUNT_ONLY),
            "minus poorer cells": _gap(NO_STATES, NO_PHASES),
        },
    ),
    Claim(
        "ranking of what is offered",
        "softbon/terminal",
        "model calls stay those of the host; decisions that change reach the outputs, from one canvas on",
        {
            "calls": _calls,
            "decisions → outputs changed": _outputs,
            "reward after the first divergence": _parted,
        },
    ),
    Claim(
        "what an order reaches",
        "late/practical",
        "more of the late reveals come from low-confidence bins, and the terminal reward rises",
        {"late reveals in low bins": _late, "difference in reward": _gain},
    ),
)


def evidence_table(cards: dict[str, Card], folder: str) -> str:
    """A table for every claim, one line a card with a learned order that changes something, as Markdown."""
    parts = []
    for claim in CLAIMS:
        columns = ("host", *claim.shows)
        rows = []
        for name, card in cards.items():
            arm = judge(card).arm
            only_fits = 1 < len(fitted_arms(card)) == len(card.arms) - 1
            if arm is None or only_fits or not card.arms[arm].guidance:
                continue
            title = f"[{card.host}{f', {card.variant}' if card.variant else ''}]({folder}/{name})"
            rows.append((title, *(read(card, arm) for read in claim.shows.values())))
        table = markdown(columns, rows)
        lead = f"**{claim.name[0].upper()}{claim.name[1:]}** (`{claim.statement}`): {claim.prediction}."
        parts.append(f"{lead}\n\n{table}")
    return "\n\n".join(parts)
