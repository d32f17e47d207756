"""`dprm impute`: the hidden genes of a person's own cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import Device, Rows, Weights, chosen_host, shipped_policy, writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def impute(
    cells: Annotated[Path, typer.Argument(help="An .h5ad file of raw counts.")],
    out: Annotated[Path, typer.Option(help="The .h5ad file with the imputed layers.")],
    layer: Annotated[str | None, typer.Option(help="Where the raw counts are; default X.")] = None,
    mask: Annotated[str | None, typer.Option(help="A layer that is not 0 where a count is to be imputed.")] = None,
    zeros: Annotated[bool, typer.Option("--zeros", help="Treat zeros as missing, too.")] = False,
    preference: Annotated[
        str | None, typer.Option(help="In the order learned for R, M, B or Z; default the model's own order.")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="The order, from a file.")] = None,
    weights: Weights = None,
    rows: Rows = 64,
    device: Device = "cpu",
) -> None:
    """**Impute** genes of single cells with the host dcm: those that your file has not, and those you mask.

    The result opens in scanpy: layers with the bin of every gene, the step at which it was decided, and how sure the
    model was. For example `dprm impute panel.h5ad --out imputed.h5ad`.
    """
    import dprm
    from dprm.cli.progress import bars
    from dprm.fit.purpose import misfits
    from dprm.host.decoded import decoded
    from dprm.host.rollout import Decode
    from dprm.hosts.dcm import imputing
    from dprm.hosts.dcm.host import SingleCells

    with clear_errors("impute"):
        writable(out)
        host = chosen_host("dcm", device=device, weights=weights, preference=preference)
        assert isinstance(host, SingleCells)
        learned = None if policy is None else dprm.Policy.load(policy)
        if policy is None and preference is not None and (learned := shipped_policy(host)) is None:
            raise ValueError(f"--preference is {preference}: no policy for it comes with the host; give --policy")
        for line in misfits(learned.notes, host) if learned is not None else ():
            say(f"{policy}: {line}", err=True)
        asked = imputing.asked(host, cells, layer, mask, zeros)
        way = Decode(None if learned is None else dprm.Order.from_policy(learned))
        count = len(asked.problems)
        with bars() as on_progress:
            answers = decoded(
                host, asked.problems, {"cells": way}, rows=rows, on_batch=lambda _, n: on_progress("cells", n, count)
            )
        notes = {"order": "host" if learned is None else learned.digest, "file": cells.name}
        lines = imputing.written(host, asked, answers["cells"], out, notes)
    for line in [*lines, str(out)]:
        say(line)
