"""`dprm report`: result cards and policies as one page to look at, to print and to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def report(
    runs: Annotated[list[Path] | None, typer.Argument(help="Result cards, study cards and policy files.")] = None,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Instead: all hosts side by side, from the committed cards.")
    ] = False,
) -> None:
    """Write one **self-contained page**: comparisons with intervals, replays, maps, curves; it needs no network.

    Give it cards (`dprm compare --out`, `dprm study --out`) and policies (`dprm fit`), for example
    `dprm report results/*.json weights/*.dprm`. Files of other kinds, such as accounts, are left out and named. `dprm
    report --all` makes one page of all hosts: configuration, cost, protocol, support, preferences, verdicts.
    """
    with clear_errors("report"):
        writable(out)
        try:
            from dprm.report.page import page, page_across
        except ImportError as error:
            raise ValueError(f'{error}: install what charts need with `pip install "dprm[report]"`') from None
        from dprm.evaluate.cards import cards_in
        from dprm.host.weights import shipped
        from dprm.order.files import write_whole
        from dprm.report.runs import read_runs
        from dprm.report.visible import visible

        if bool(runs) == everything:
            raise ValueError("expected either files to show, or --all")
        if everything:
            cards = cards_in(shipped("results"))
            html, count = page_across(cards, visible(title or "Across hosts")).encode(), len(cards)
        else:
            shown, left_out = read_runs(runs or [])
            for line in left_out:
                say(f"left out: {line}", err=True)
            html, count = page(shown, visible(title or "Which position next?")).encode(), len(shown)
        write_whole(out, html)
    say(f"{out}: {len(html):,} bytes, {count} {'run' if count == 1 else 'runs'}")
