"""The data of a replay: the recordings of a card, unpacked for the script of the page."""

from __future__ import annotations

from typing import Any

from dprm.evaluate.card import Card
from dprm.evaluate.replays import Recording, Replays
from dprm.report.parts import Section


def replay(card: Card, colours: dict[str, str]) -> Section | None:
    """The section, or None for a card without recordings."""
    if card.replays is None or not card.replays.problems:
        return None
    # A card may have recorded fewer orders than it compares.
    recorded = [order for order in card.replays.problems[0] if order in card.arms]
    if not recorded:
        return None
    beside = card.reference if card.reference in recorded else recorded[0]
    content = {
        "reference": beside,
        "other": _worth_seeing(card, [order for order in recorded if order != beside] or [beside]),
        "columns": card.replays.columns,
        "colours": {order: colours[order] for order in recorded},
        "problems": [
            {order: _unpacked(problem[order], card.replays) for order in recorded} for problem in card.replays.problems
        ],
    }
    return Section(
        "Replay",
        "The same problem under two orders, step by step. Problems on which orders end differently come first; "
        "they are not a sample.",
        replay=content,
    )


def _worth_seeing(card: Card, others: list[str]) -> str:
    """Of some orders, the one to see first: the learned one that earns most, where there is one."""
    learned = [name for name in others if card.arms[name].policy is not None and card.arms[name].ablates is None]
    return max(learned, key=lambda name: card.arms[name].mean) if learned else others[0]


def _unpacked(run: Recording, replays: Replays) -> dict[str, Any]:
    return {
        "reward": run.reward,
        "text": [replays.shown[token] for token in run.tokens.split()],
        "steps": [int(step) for step in run.steps.split()],
        "confidence": [None if value == "-" else int(value) / 1000 for value in run.confidence.split()],
    }
