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
    problems = [
        {order: _unpacked(run, card.replays) for order, run in problem.items()} for problem in card.replays.problems
    ]
    content = {
        "reference": card.reference,
        "other": _worth_seeing(card),
        "columns": card.replays.columns,
        "colours": {order: colours[order] for order in card.arms if order in problems[0]},
        "problems": problems,
    }
    return Section(
        "Replay",
        "The same problem under two orders, step by step. Problems on which orders end differently come first; "
        "they are not a sample.",
        replay=content,
    )


def _worth_seeing(card: Card) -> str:
    """The order beside the reference at first: the learned one that earns most, where there is one."""
    others = [name for name in card.arms if name != card.reference] or [card.reference]
    learned = [name for name in others if card.arms[name].policy is not None and card.arms[name].ablates is None]
    return max(learned, key=lambda name: card.arms[name].mean) if learned else others[0]


def _unpacked(run: Recording, replays: Replays) -> dict[str, Any]:
    return {
        "reward": run.reward,
        "text": [replays.shown[token] for token in run.tokens.split()],
        "steps": [int(step) for step in run.steps.split()],
        "confidence": [None if value == "-" else int(value) / 1000 for value in run.confidence.split()],
    }
