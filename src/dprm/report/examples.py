"""What came of every order, as people of the field look at it: drawn where the host can draw, else as text."""

from __future__ import annotations

from markupsafe import Markup, escape

from dprm.evaluate.card import Card
from dprm.hosts import picture_of
from dprm.order.signals import SIGNALS
from dprm.report.parts import Figure, Section, Table

# Orders that are drawn, and answers of each.
ORDERS, ANSWERS = 3, 6


def examples(card: Card, colours: dict[str, str]) -> Section | None:
    """The first answers of every order; None where the host shows none."""
    listed = card.notes.get("examples")
    if not isinstance(listed, dict) or not listed:
        return None
    answers = {name: list(map(str, listed[name]))[:ANSWERS] for name in card.arms if listed.get(name)}
    # Orders by other signals than the host's own and a random one are the last that a person looks for.
    ranked = sorted(answers, key=lambda name: (name != card.reference, name != "random", name in SIGNALS))
    drawn = [figure for name in ranked[:ORDERS] if (figure := _drawn(card.host, name, answers[name]))]
    rows = [[name, answer] for name, lines in answers.items() for answer in lines]
    lead = "The first answers of each order as they came, not a choice of the best."
    return Section("Examples", lead, drawn, [Table("As text", ["order", "answer"], rows, colours)])


def _drawn(host: str, order: str, answers: list[str]) -> Figure | None:
    draw = picture_of(host)
    if draw is None:
        return None
    caption = f"{len(answers)} answers in the order {order}."
    svg = draw(answers)
    named = Markup('<svg role="img" aria-label="{}" ').format(escape(caption))
    return Figure(Markup(svg[svg.index("<svg") :].replace("<svg ", named, 1)), caption)
