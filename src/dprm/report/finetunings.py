"""What a card of fine-tunings holds besides a comparison: contrasts on the same weights, and readiness by phases."""

from __future__ import annotations

from dprm.evaluate.card import Card
from dprm.host.metrics import SET
from dprm.report.numbers import markdown, with_interval


def contrast_table(cards: dict[str, Card]) -> str:
    """One line a learned order and what it is set against: the difference in every metric."""
    told = [(card, entry) for card in cards.values() for entry in card.notes.get("contrasts", [])]
    names = list(dict.fromkeys(metric.name for card, _ in told for metric in card.metrics))
    rows = []
    for _, entry in told:
        shown = (with_interval(*(entry["metrics"][name][end] for end in ("estimate", "low", "high"))) for name in names)
        rows.append((entry["treated"], entry["control"].removeprefix(f"{entry['treated']}, "), *shown))
    return markdown(("learned order", "minus", *names), rows)


def phase_table(cards: dict[str, Card]) -> str:
    """One line a learned order: its cells, how many of them are ready and selected, and the metrics of the set."""
    told = [(card, *entry) for card in cards.values() for entry in card.notes.get("phases", {}).items()]
    names = list(dict.fromkeys(metric.name for card, *_ in told for metric in card.metrics if metric.role == SET))
    rows = []
    for card, name, stored in told:
        arm = card.arms[name]
        shown = [
            f"{each.mean:.3f} ({with_interval(each.delta, each.delta_low, each.delta_high)})"
            for each in (arm.metrics[metric] for metric in names)
        ]
        cells = f"{stored['ready']:g} of {stored['cells']:,}"
        rows.append((name, str(stored["phases"]), str(len(card.seeds)), cells, f"{arm.ready:.0%}", *shown))
    return markdown(("learned order", "phases", "seeds", "ready cells", "decisions in ready cells", *names), rows)
