"""One name for the learned order: `dprm`, also in cards of a time when it had the name of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from dprm.evaluate.card import Card
from dprm.evaluate.verdict import policies

LEARNED = "dprm"
Value = TypeVar("Value")


def with_learned_names(card: Card) -> Card:
    """The card with its one learned order called `dprm`; of several, those that are named after the host."""
    learned = [name for name in policies(card) if card.arms[name].policy is not None]
    if len(learned) == 1:
        new = {learned[0]: LEARNED}
    else:
        new = {name: f"{LEARNED} {name[len(card.host) :].strip('-')}".strip() for name in learned if _of(card, name)}
    new = {old: name for old, name in new.items() if name not in card.arms}
    if not new:
        return card

    def renamed(name: str) -> str:
        policy, mark, ablation = name.partition(", ")
        return f"{new.get(policy, policy)}{mark}{ablation}"

    def under(names: Mapping[str, Value]) -> dict[str, Value]:
        return {renamed(name): value for name, value in names.items()}

    arms = {
        name: replace(arm, ablates=None if arm.ablates is None else renamed(arm.ablates))
        for name, arm in under(card.arms).items()
    }
    replays = card.replays and replace(card.replays, problems=[under(each) for each in card.replays.problems])
    notes = {**card.notes}
    for note in ("examples", "mechanism", "gallery"):
        if isinstance(named := notes.get(note), dict):
            notes[note] = under(named)
    if isinstance(parts := notes.get("parts"), dict):
        notes["parts"] = {part: {**known, "arms": under(known["arms"])} for part, known in parts.items()}
    verdict = card.verdict
    if verdict is not None and verdict.get("arm"):
        verdict = {**verdict, "arm": renamed(verdict["arm"])}
    return replace(card, arms=arms, replays=replays, partings=under(card.partings), notes=notes, verdict=verdict)


def _of(card: Card, name: str) -> bool:
    return name == card.host or name.startswith(f"{card.host}-")
