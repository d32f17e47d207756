"""The data of a replay: the recordings of a card, unpacked for the script of the page."""

from __future__ import annotations

from typing import Any

from dprm.evaluate.card import Card
from dprm.evaluate.replays import Recording, Replays
from dprm.hosts import class_of
from dprm.report.parts import Section
from dprm.report.visible import visible

# How the end of a text is drawn.
END = "∎"


def replay(card: Card, colours: dict[str, str]) -> Section | None:
    """The section, or None for a card without recordings."""
    if card.replays is None or not card.replays.problems:
        return None
    # A card may have recorded fewer orders than it compares.
    recorded = [order for order in card.replays.problems[0] if order in card.arms]
    if not recorded:
        return None
    beside = card.reference if card.reference in recorded else recorded[0]
    end = _end(card)
    content = {
        "asked": [_asked(card, problem[beside]) for problem in card.replays.problems],
        "end": END,
        "reference": beside,
        "other": _worth_seeing(card, [order for order in recorded if order != beside] or [beside]),
        "columns": card.replays.columns,
        "colours": {order: colours[order] for order in recorded},
        "problems": [
            {order: _unpacked(problem[order], card.replays, end) for order in recorded}
            for problem in card.replays.problems
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


def _end(card: Card) -> str | None:
    """The token after the end of a text; of older cards, as the host says it today."""
    host = class_of(card.host)
    told = None if host is None or not host.audit else host.audit.get("eot")
    return (card.replays and card.replays.end) or (None if told is None else str(told))


def _asked(card: Card, run: Recording) -> str:
    """What the problem asks, in words."""
    host = class_of(card.host)
    if host is None:
        return ""
    given = zip(run.tokens.split(), run.steps.split(), strict=True)
    return visible(host.question([int(token) if step == "0" and token.isdecimal() else None for token, step in given]))


def _unpacked(run: Recording, replays: Replays, end: str | None) -> dict[str, Any]:
    return {
        "reward": run.reward,
        "text": [END if token == end else replays.shown[token] for token in run.tokens.split()],
        "steps": [int(step) for step in run.steps.split()],
        "confidence": [None if value == "-" else int(value) / 1000 for value in run.confidence.split()],
    }
