"""`dprm hosts`: the hosts there are."""

from __future__ import annotations

from typing import Annotated

import typer

from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say_json, terminal


def hosts(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """List the **hosts**: what each is about, what its order decides, whether its weights are here, the verdict.

    The verdict is that of `dprm audit HOST` on the committed result cards.
    """
    import json
    from dataclasses import asdict

    from rich.table import Table

    from dprm.evaluate.cards import cards_in
    from dprm.evaluate.verdict import judge_cards
    from dprm.host.weights import shipped
    from dprm.hosts import ENTRIES

    states = {name: entry.state for name, entry in ENTRIES.items()}
    with clear_errors("hosts"):
        cards = cards_in(shipped("results"))
        of_host = {name: {file: card for file, card in cards.items() if card.host == name} for name in ENTRIES}
        said = {name: judge_cards(own)[0].verdict if own else None for name, own in of_host.items()}
    if as_json:
        listed = [
            {**asdict(entry), "present": states[name] == "here", "state": states[name], "verdict": said[name]}
            for name, entry in ENTRIES.items()
        ]
        say_json(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("host", "domain", "what is ordered", "weights", "verdict"):
        table.add_column(column)
    for name, entry in ENTRIES.items():
        table.add_row(name, entry.domain, entry.ordered, states[name], said[name] or "no card")
    console = terminal()
    console.print(table)
    for name, entry in ENTRIES.items():
        if states[name] != "here":
            does = "get" if states[name] == "elsewhere" else "make"
            console.print(f"\nTo {does} the weights of {entry.name}:\n  {entry.command}", soft_wrap=True)
