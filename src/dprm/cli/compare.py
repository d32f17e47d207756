"""`dprm compare`: every order of a host in one table, with paired intervals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprm.cli.failure import clear_errors

if TYPE_CHECKING:
    import dprm
    from dprm.evaluate.card import Card
    from dprm.fit.montecarlo import MonteCarlo

SIGNALS = "confidence,random,entropy,margin"


def compare(
    host: Annotated[str, typer.Argument(help="A host of `dprm hosts`.")],
    orders: Annotated[str, typer.Option(help="Signals to compare, with commas. The first is the reference.")] = SIGNALS,
    policy: Annotated[
        list[Path] | None, typer.Option(help="A policy of `dprm fit` to compare too; may be given several times.")
    ] = None,
    problems: Annotated[
        Path | None,
        typer.Option(help="Your own problems: JSON lines for dmpo, lines of 81 characters for puma."),
    ] = None,
    split: Annotated[str, typer.Option(help="Where problems come from: fit, select or test.")] = "test",
    limit: Annotated[int, typer.Option(min=1, help="How many problems.")] = 64,
    difficulty: Annotated[
        str | None, typer.Option(help="How hard: dmpo numbers (3-6), puma clues (22-25), puma_words steps (4).")
    ] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Positions revealed a step; default the host's own.")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Add the ablations of every policy.")] = False,
    best_of: Annotated[
        int, typer.Option(min=1, help="Add the best of so many paths of the reference: a control for costly orders.")
    ] = 1,
    montecarlo: Annotated[
        int,
        typer.Option(min=0, help="Add values asked of continuations, of so many candidates: they cost model calls."),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of problems, orders and intervals.")] = 0,
    rows: Annotated[int, typer.Option(min=1, help="Problems decoded together; changes the time, not the result.")] = 64,
    device: Annotated[str, typer.Option(help="Where the model runs: cpu, cuda.")] = "cpu",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the model: three times as fast on a GPU, after half a minute.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write the result card here.")] = None,
    work: Annotated[Path, typer.Option(help="Keeps finished batches: an interrupted run goes on.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the card instead of the table.")] = False,
) -> None:
    """Compare **orders** on one host: the same problems, budget and random streams; paired intervals; model calls.

    For example `dprm compare dmpo --limit 256 --width 2 --policy runs/dmpo.dprm --out results/dmpo.json`, or your own
    problems: `dprm compare dmpo --problems mine.jsonl` with lines `{"numbers": [30, 100, 93], "target": 23}`.
    """
    from rich.console import Console
    from rich.progress import Progress

    from dprm.evaluate.ablations import with_ablations
    from dprm.evaluate.compare import compare as run
    from dprm.fit.montecarlo import MONTE_CARLO, MonteCarlo
    from dprm.hosts import load

    with clear_errors("compare"):
        chosen = load(host, device, compiled)
        if difficulty is not None:
            chosen = chosen.at(difficulty)
        arms, local, fits = _orders(orders, policy or [], host, width, seed)
        if montecarlo:
            local[MONTE_CARLO] = MonteCarlo(candidates=montecarlo, width=width, seed=seed)
        reference = next(iter(arms))
        arms, ablates = with_ablations(arms, [name for name in fits if name in arms] if ablate else [], seed)
        if problems is None:
            posed, name = chosen.problems(split, limit, seed), split
        else:
            posed, left_out = chosen.read_problems(problems)
            posed, name = posed[:limit], problems.name
            for line in left_out:
                typer.echo(f"left out: {problems}, {line}", err=True)
        with Progress(console=Console(stderr=True), transient=True) as bar:
            tasks = {arm: bar.add_task(arm, total=len(posed)) for arm in (*arms, *local)}

            def on_batch(arm: str, done: int) -> None:
                if arm not in tasks:
                    tasks[arm] = bar.add_task(arm, total=len(posed))
                bar.update(tasks[arm], completed=done)

            card, _ = run(
                chosen,
                posed,
                arms,
                reference=reference,
                split=name,
                budget=width,
                seed=seed,
                rows=rows,
                folder=work / f"compare-{host}",
                command=" ".join(["dprm", *sys.argv[1:]]),
                fits=fits,
                ablates=ablates,
                best_of=best_of,
                local=local,
                on_batch=on_batch,
            )
        if difficulty is not None:
            card.notes["difficulty"] = difficulty
        if out is not None:
            card.save(out)
    if as_json:
        typer.echo(card.to_json())
    else:
        show(card)


def _orders(
    names: str, policies: list[Path], host: str, width: int | None, seed: int
) -> tuple[dict[str, dprm.Order], dict[str, MonteCarlo], dict[str, dict[str, str]]]:
    """The orders by name, those whose values are asked prompt by prompt, and what policies say of their fit."""
    import dprm
    from dprm.fit.montecarlo import MonteCarlo, is_local

    fits, local = {}, {}
    arms = {name.strip(): dprm.Order(signal=name.strip()) for name in names.split(",")}
    for path in policies:
        stored = dprm.Policy.load(path)
        fitted_for = stored.notes.get("host", host)
        if fitted_for != host:
            raise ValueError(f"{path} was fitted for host {fitted_for}, not {host}: fit one with `dprm fit {host}`")
        name = "dprm" if path.stem == host else path.stem
        if is_local(stored) and stored.guidance > 0:
            local[name] = MonteCarlo.of_policy(stored, width=width, seed=seed)
        else:
            arms[name] = dprm.Order.from_policy(stored, rule="top_m")
        fits[name] = stored.notes
    return arms, local, fits


def show(card: Card) -> None:
    """The card as a table."""
    from rich.console import Console
    from rich.table import Table

    from dprm.evaluate.seeds import told

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("order", overflow="fold")
    for column in ("solved", "reward", "difference", "95 % of it", "calls", "changed", "ms"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, arm in card.arms.items():
        delta = interval = style = ""
        if arm.delta is not None and arm.delta_low is not None and arm.delta_high is not None:
            delta, interval = f"{arm.delta:+.3f}", f"{arm.delta_low:+.3f} … {arm.delta_high:+.3f}"
            style = "green" if arm.delta_low > 0 else "red" if arm.delta_high < 0 else ""
        calls, changed, ms = f"{arm.nfe:.1f}", f"{arm.changed:.0%}", f"{1000 * arm.seconds:.0f}"
        table.add_row(name, f"{arm.solved:.1%}", f"{arm.mean:.3f}", delta, interval, calls, changed, ms, style=style)
    console = Console()
    console.print(f"{card.host}: {card.count} problems of {card.split}, budget {card.budget}, seed {card.seed}")
    console.print(f"Differences are paired, to {card.reference}; ms a problem.\n")
    console.print(table)
    for entry in card.notes.get("seeds", []):
        console.print(f"\n{told(entry, card.reference)}", markup=False, highlight=False)
    if card.verdict is not None and card.verdict["arm"] is not None:
        console.print(f"\n{card.verdict['arm']}: {card.verdict['verdict']} ({card.verdict['reason']})", markup=False)
