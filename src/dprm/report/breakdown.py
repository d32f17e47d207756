"""Part by part: how every order does in each part of the problems, and how a learned one comes to other answers."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup, escape

from dprm.evaluate.card import Card
from dprm.hosts import picture_of
from dprm.report.numbers import NOTHING, with_interval
from dprm.report.parts import Figure, Section, Table


def breakdown(card: Card, colours: dict[str, str]) -> Section | None:
    """Tables of the parts and of the mechanism; None where a card has none."""
    parts = card.notes.get("parts")
    if not isinstance(parts, dict) or not parts:
        return None
    rows = [
        [part, f"{known['count']:,}", name, *_of_arm(arm)]
        for part, known in parts.items()
        for name, arm in known["arms"].items()
    ]
    columns = [
        "part",
        "problems",
        "order",
        "mean reward",
        f"difference to {card.reference}",
        "only this",
        "only the other",
    ]
    tables = [Table("Every order in every part", columns, rows, colours)]
    for name, mechanism in card.notes.get("mechanism", {}).items():
        tables.append(
            Table(
                f"{name}: where it parts from {card.reference}",
                _MECHANISM,
                _mechanism(mechanism),
                colours,
                folded=False,
            )
        )
    lead = "A problem counts in several parts. Intervals are 95 %."
    return Section("Part by part", lead, [], tables)


def gallery(card: Card, colours: dict[str, str]) -> Section | None:
    """Every problem that only one of two orders solves; drawn for the order that the verdict is on, as pictures take
    room, and as text for all. None where a card has none."""
    listed, draw = card.notes.get("gallery"), picture_of(card.host)
    if not isinstance(listed, dict) or not listed or draw is None:
        return None
    figures, tables = [], []
    subject = (card.verdict or {}).get("arm")
    for name, cases in listed.items():
        for which, lines in cases.items():
            words = f"only {name} solves" if which == "won" else f"only {card.reference} solves"
            caption = f"{len(lines)} problems that {words}."
            if name == subject or subject not in listed:
                svg = draw(list(map(str, lines)))
                named = Markup('<svg role="img" aria-label="{}" ').format(escape(caption))
                figures.append(Figure(Markup(svg[svg.index("<svg") :].replace("<svg ", named, 1)), caption))
            tables.append(Table(f"As text: {caption}", ["problem"], [[str(line)] for line in lines]))
    lead = "All wins and losses, not a choice of the best. The small number at a word is the step of its reveal."
    if subject in listed and len(listed) > 1:
        lead += f" Drawn for {subject}; those of the other orders are below, as text."
    return Section("Wins and losses", lead, figures, tables)


_MECHANISM = [
    "part",
    "problems",
    "orders changed",
    "wins, losses",
    "words before the number in wins",
    "first number, 0 to 1",
    "Δ confidence at first parting",
    "Δ value",
    "Δ score",
    "reversals",
]


def _of_arm(arm: dict[str, Any]) -> list[str]:
    mean = with_interval(arm["mean"], arm["low"], arm["high"], ".3f")
    if "delta" not in arm:
        return [mean, NOTHING, NOTHING, NOTHING]
    won, lost = (str(arm[name]) if name in arm else NOTHING for name in ("won", "lost"))
    return [mean, with_interval(arm["delta"], arm["delta_low"], arm["delta_high"]), won, lost]


def _mechanism(mechanism: dict[str, Any]) -> list[list[str]]:
    rows = []
    for part, known in mechanism.items():
        wins, losses, timing = known.get("wins"), known.get("losses"), known.get("first number")
        parted = known["first parting"]
        gaps = [
            with_interval(*parted[name]) if name in parted else NOTHING for name in ("confidence", "value", "score")
        ]
        rows.append(
            [
                part,
                f"{known['problems']:,}",
                f"{known['permutations changed'] / max(1, known['problems']):.0%}",
                NOTHING if wins is None else f"{wins['problems']}, {losses['problems']}",
                NOTHING if wins is None else _words(wins),
                NOTHING if timing is None else f"{timing['learned']:.2f} instead of {timing['host']:.2f}",
                *gaps,
                f"{parted['reversal'][0]:.0%}" if "reversal" in parted else NOTHING,
            ]
        )
    return rows


def _words(wins: dict[str, Any]) -> str:
    before = wins["words before the number"]
    return f"{before['learned']} instead of {before['host']}"
