"""`dprm policy`: what a policy file says, for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprm.cli.terminal import say, say_json, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from dprm.order import Policy
    from dprm.order.head import Head


def policy(
    path: Annotated[Path, typer.Argument(help="A policy written by `Policy.save`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print header and digest as one JSON object.")] = False,
) -> None:
    """Show what a **policy file** holds: its setting, its evidence and its values by phase and confidence.

    The digest names the policy in result cards and logs. A file that is damaged, edited or of a newer schema is refused
    with exit code 2.
    """
    import json

    from dprm.order import Policy

    try:
        stored = Policy.load(path)
    except (OSError, ValueError) as error:
        say(f"dprm policy: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        say_json(json.dumps({**stored.header, "digest": stored.digest}, indent=2, ensure_ascii=False))
        return
    _print(stored)


def _print(stored: Policy) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dprm.fit.montecarlo import is_local
    from dprm.fit.seen import FITTED, SELECTED

    console = terminal()
    facts = Table.grid(padding=(0, 2))
    notes = {name: text for name, text in stored.notes.items() if name not in (FITTED, SELECTED)}
    for name, value in {**stored.header, "notes": notes, "digest": stored.digest}.items():
        if value not in ({}, None):
            facts.add_row(name, escape(str(value)))
    console.print(facts)
    if stored.head is not None:
        _print_head(console, stored.head)
        return
    if is_local(stored):
        console.print("\nIt has no values of its own: they are asked of continuations of every prompt, and cost calls.")
        return
    support = stored.table.support.view(stored.cells.shape)
    ready = float((support >= stored.gate.ready).double().mean())
    console.print(f"\n{int((support > 0).sum())} of {stored.cells.count} cells have evidence, {ready:.0%} are ready.\n")
    mass = support.sum(-1)
    value = (stored.table.value.view(stored.cells.shape) * support).sum(-1) / mass.clamp(min=1e-300)
    console.print("100 × value by phase (down) and confidence bin (across), averaged over aux:")
    grid = Table(box=None, pad_edge=False)
    grid.add_column("")
    for index in range(stored.cells.bins):
        grid.add_column(str(index), justify="right", no_wrap=True)
    for phase in range(stored.cells.phases):
        columns = zip(value[phase].tolist(), mass[phase].tolist(), strict=True)
        grid.add_row(str(phase), *(_cell(*column) for column in columns))
    console.print(grid)


def _print_head(console: Console, head: Head, count: int = 16) -> None:
    from rich.table import Table

    console.print(f"\nA head taught by {head.support:,} comparisons. What weighs most, 100 × value a unit:")
    weights = Table(box=None, pad_edge=False, show_header=False)
    weights.add_column("", justify="right")
    for name, weight in head.strongest(count):
        weights.add_row(_cell(weight, 1.0), name)
    console.print(weights)


def _cell(value: float, support: float) -> str:
    """A value in colour: green is promoted, red held back, a dot has no evidence."""
    if support <= 0:
        return "[dim]·[/]"
    return f"[{'green' if value > 0 else 'red' if value < 0 else 'default'}]{100 * value:+.0f}[/]"
