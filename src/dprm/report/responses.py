"""Whether every preference moves what it weighs, in every replication: a table for the page of a host."""

from __future__ import annotations

from pathlib import Path

from dprm.evaluate.card import Card
from dprm.evaluate.cards import cards_in
from dprm.evaluate.outcomes import Outcomes, beside
from dprm.evaluate.responses import Response, responses
from dprm.report.names import with_learned_names
from dprm.report.numbers import with_interval


def response_tables(results: Path, host: str, folder: str) -> str:
    """Of every card of a host that has outcomes beside it and orders for several preferences."""
    parts = []
    for name, card in cards_in(results).items():
        path = results / name
        if card.host != host or not beside(path).is_file():
            continue
        found = responses(card, Outcomes.load(beside(path)))
        if len({response.arm for response in found}) > 1:
            parts.append(_table(card, found, f"{folder}/{name}"))
    return "\n\n".join(parts)


def _table(card: Card, found: list[Response], link: str) -> str:
    shown = dict(zip(card.arms, with_learned_names(card).arms))
    times = max(len(response.each) for response in found)
    what = "decode seed" if len(card.seeds) > 1 else "sample"
    columns = ["order", "its own metric", "against", *(f"{what} {n + 1}" for n in range(times)), "together", "always"]
    rows = [
        [
            shown[each.arm],
            each.own,
            f"{shown[each.control]}{' (opposite)' if each.opposite else ''}",
            *(with_interval(*interval) for interval in each.each),
            with_interval(*each.together),
            "yes" if each.always else "no",
        ]
        for each in found
    ]
    title = f"[{card.host}{f', {card.variant}' if card.variant else ''}]({link}): {card.count:,} of {card.split}."
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join([title, "", *(f"| {' | '.join(line)} |" for line in lines)])
