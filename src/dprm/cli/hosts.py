"""`dprm hosts`: the hosts there are."""

from __future__ import annotations

from typing import Annotated

import typer


def hosts(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """List the **hosts**: what each is about, what its order decides, and whether its weights are here."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from dprm.hosts import ENTRIES

    if as_json:
        listed = [{**asdict(entry), "present": entry.present} for entry in ENTRIES.values()]
        typer.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("host", "domain", "what is ordered", "weights"):
        table.add_column(column)
    for entry in ENTRIES.values():
        table.add_row(entry.name, entry.domain, entry.ordered, "here" if entry.present else "missing")
    console = Console()
    console.print(table)
    for entry in ENTRIES.values():
        if not entry.present:
            console.print(f"\nTo make the weights of {entry.name}:\n  {entry.command}", soft_wrap=True)
