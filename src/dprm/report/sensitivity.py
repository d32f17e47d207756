"""Do decisions that change reach the outputs? A line for every order of every card of a host, and its gate."""

from __future__ import annotations

from dprm.evaluate.card import Card
from dprm.evaluate.gate import BALANCED, PARTS, gate
from dprm.report.numbers import NOTHING, markdown, with_interval


def sensitivity_table(cards: dict[str, Card], folder: str) -> str:
    """Task and steps, how tokens are chosen, order: decisions and outputs that changed, the balanced metric, the gate.

    Cards without that metric are left out.
    """
    rows = []
    for name, card in sorted(cards.items(), key=lambda each: each[1].variant):
        if any(metric not in {each.name for each in card.metrics} for metric in (BALANCED, *PARTS)):
            continue
        hot = card.decoding.get("temperature")
        tokens = "argmax" if hot is None else f"drawn at {float(hot):g}"
        shared = f"[{card.variant or card.host}]({folder}/{name})", f"{card.count:,} {card.split}", tokens
        for order, arm in card.arms.items():
            metric = arm.metrics[BALANCED]
            told = [f"{arm.nfe:.0f}", order, f"{metric.mean:.3f}"]
            if order == card.reference:
                rows.append((*shared, *told, *[NOTHING] * 4))
                continue
            decided = gate(card, order, BALANCED, PARTS)
            difference = with_interval(metric.delta, metric.delta_low, metric.delta_high)
            outputs = NOTHING if arm.differs is None else f"{arm.differs:.1%}"
            passed = "open" if decided.open else f"closed: {decided.reason}"
            rows.append((*shared, *told, f"{arm.changed:.1%}", outputs, difference, passed))
    columns = ("task and steps", "problems", "tokens", "calls", "order", BALANCED)
    return markdown((*columns, "decisions changed", "outputs that differ", "difference", "gate"), rows)
