"""A gate that is declared beforehand: may the confirmation set be opened for a learned order?

    open ⇔ the lower end of the difference in the balanced metric is above 0,
           and none of its parts falls by more than .02

What is shown is the decision with its numbers, open or closed; nothing is opened by it.

    python -m dprm.evaluate.gate CARD.json
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from dprm.evaluate.card import Card

MOST_LOST = 0.02
# Of the cards of proteins.
BALANCED, PARTS = "balanced", ("structure", "sequence")


@dataclass(frozen=True)
class Gate:
    """Whether it is open, and why."""

    open: bool
    reason: str


def gate(card: Card, arm: str, balanced: str, parts: tuple[str, ...], most_lost: float = MOST_LOST) -> Gate:
    """The gate of one arm of a comparison.

    Args:
        balanced: the metric that has to rise. parts: those that must not fall by more than `most_lost`.
    """
    if arm not in card.arms or arm == card.reference:
        raise ValueError(f"arm is {arm!r}: expected one of {', '.join(card.arms)}, other than {card.reference}")
    metrics = card.arms[arm].metrics
    for name in (balanced, *parts):
        if name not in metrics:
            raise ValueError(f"metric {name!r} is not in the card: it has {', '.join(metrics)}")
    low = metrics[balanced].delta_low
    falls = {name: -(metrics[name].delta or 0.0) for name in parts}
    reasons = [f"{name} falls by {fall:.3f}" for name, fall in falls.items() if fall > most_lost]
    if low is None or low <= 0:
        reasons.insert(0, f"the lower end of {balanced} is {low if low is None else round(low, 4)}")
    passed = f"the lower end of {balanced} is above 0, and no part falls by more than {most_lost:g}"
    return Gate(not reasons, "; ".join(reasons) or passed)


def main(path: Path) -> int:
    """Say of every learned arm of a card of proteins whether its gate is open."""
    card = Card.load(path)
    for name, arm in card.arms.items():
        if arm.policy is not None and arm.ablates is None:
            decision = gate(card, name, BALANCED, PARTS)
            print(f"{name}: {'open' if decision.open else 'closed'} ({decision.reason})")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
