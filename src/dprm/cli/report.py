"""`dprm report`: result cards and policies as one page to look at, to print and to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Result cards, study cards and policy files.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Which position next?",
) -> None:
    """Write one **self-contained page**: comparisons with intervals, replays, maps, curves; it needs no network.

    Give it cards (`dprm compare --out`, `dprm study --out`) and policies (`dprm fit`), for example
    `dprm report results/*.json weights/*.dprm`. Files of other kinds, such as accounts, are left out and named.
    """
    with clear_errors("report"):
        writable(out)
        try:
            from dprm.report.page import page
        except ImportError as error:
            raise ValueError(f'{error}: install what charts need with `pip install "dprm[report]"`') from None
        from dprm.order.files import write_whole
        from dprm.report.runs import read_runs
        from dprm.report.visible import visible

        shown, left_out = read_runs(runs)
        for line in left_out:
            say(f"left out: {line}", err=True)
        html = page(shown, visible(title)).encode()
        write_whole(out, html)
    say(f"{out}: {len(html):,} bytes, {len(shown)} {'run' if len(shown) == 1 else 'runs'}")
