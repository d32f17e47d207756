"""A decoding step by step in the terminal: the same canvas under two orders, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from dprm.host.host import Host
    from dprm.host.rollout import Rollout


def replay(host: Host, row: int, runs: dict[str, Rollout], first: int, last: int, every: int = 1) -> Table:
    """A table of canvases, one line for every `every`-th step, one column a run.

    Args:
        row: which problem. first, last: the positions to show.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step", justify="right")
    for name in runs:
        table.add_column(name)
    steps = max(int(run.step_map[row].max()) for run in runs.values())
    for step in [*range(0, steps, every), steps]:
        canvases = (_canvas(host, run, row, step, every, first, last) for run in runs.values())
        table.add_row(str(step), *canvases)
    return table


def _canvas(host: Host, run: Rollout, row: int, step: int, every: int, first: int, last: int) -> Text:
    """The canvas after `step`; what came since the line before stands out."""
    text = Text()
    tokens, when = run.tokens[row, first:last].tolist(), run.step_map[row, first:last].tolist()
    for token, revealed in zip(tokens, when, strict=True):
        if revealed > step:
            text.append("·", style="dim")
        else:
            text.append(host.show(token), style="bold green" if step - every < revealed else "")
    return text
