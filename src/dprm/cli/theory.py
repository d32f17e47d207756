"""`dprm theory`: run the paper's statements and say which hold, under which condition."""

from typing import TYPE_CHECKING, Annotated

import typer

from dprm.cli.terminal import say, say_json, terminal

if TYPE_CHECKING:
    from dprm.theory.statement import Outcome, Statement


def theory(
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random host and every simulation.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="A few seconds, or more hosts, sizes and trials (under a minute).")
    ] = True,
    only: Annotated[
        str,
        typer.Option(
            metavar="SUBSTRING",
            help="Run only statements whose name contains this, and explain each: claim, condition, numbers. "
            "Topics: doob, softbon, tracking, score, online, alignment, predictor, sampling, early, late, gating, "
            "ordering.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """Check **every statement of the paper** on hosts small enough to compute exactly.

    One line per statement: what was measured, the bound it is compared with, whether it holds, and the condition it
    needs. A star marks a condition that the paper does not name; lines that begin with *shows* are counter-examples
    which hold when the claim fails without that condition. The exit code is 1 if any line does not hold.

    Try `dprm theory --only myopic`, or `dprm theory --full --json > theory.json`.
    """
    import json
    import math
    import time
    from dataclasses import asdict

    from dprm.theory.statement import statements

    chosen = statements(only)
    if not chosen:
        raise typer.BadParameter(f"no statement has {only!r} in its name", param_hint="--only")
    began = time.perf_counter()
    outcomes: list[tuple[Statement, Outcome]] = []
    with terminal(err=True).status("") as status:
        for number, checked in enumerate(chosen, 1):
            status.update(f"{number}/{len(chosen)} {checked.name}")
            outcomes.append((checked, checked.run(seed, quick)))
    seconds = time.perf_counter() - began
    failed = [checked.name for checked, outcome in outcomes if not outcome.holds]

    if as_json:
        rows = [
            {
                "name": checked.name,
                "claim": checked.claim,
                "condition": checked.condition,
                "named_in_paper": checked.named,
                # JSON has no infinity.
                **asdict(outcome),
                "measured": outcome.measured if math.isfinite(outcome.measured) else str(outcome.measured),
            }
            for checked, outcome in outcomes
        ]
        report = {"seed": seed, "mode": "quick" if quick else "full", "seconds": round(seconds, 2), "failed": failed}
        say_json(json.dumps(report | {"statements": rows}, indent=2, ensure_ascii=False))
    else:
        _print_table(outcomes, explain=bool(only))
        held = f"{len(outcomes) - len(failed)} of {len(outcomes)} statements hold"
        say(f"{held} (seed {seed}, {'quick' if quick else 'full'}, {seconds:.1f} s)")
        if failed:
            say("does not hold: " + ", ".join(failed))
    if failed:
        raise typer.Exit(1)


def _print_table(outcomes: "list[tuple[Statement, Outcome]]", explain: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    console = terminal()
    if not console.is_terminal:
        console = terminal(width=100)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("statement", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("bound", no_wrap=True)
    table.add_column("holds", no_wrap=True)
    table.add_column("needs (* not named in the paper)", no_wrap=True)
    topic = ""
    for checked, outcome in outcomes:
        if topic and not checked.name.startswith(f"{topic}/"):
            table.add_row()
        topic = checked.name.split("/")[0]
        verdict = Text("yes", style="green") if outcome.holds else Text("NO", style="bold red")
        bound = f"{outcome.relation} {outcome.bound:.4g}"
        needs = checked.needs + ("" if checked.named else " *")
        table.add_row(checked.name, f"{outcome.measured:.4g}", bound, verdict, needs)
    console.print(table)
    console.print()
    if explain:
        for checked, outcome in outcomes:
            details = Table.grid(padding=(0, 2))
            for label, text in (("claim", checked.claim), ("condition", checked.condition), ("numbers", outcome.note)):
                if text:
                    details.add_row(f"  {label}", Text(text))
            console.print(Text(checked.name, style="bold"), details, sep="\n")
        console.print()
