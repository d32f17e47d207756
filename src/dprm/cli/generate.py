"""`dprm generate`: answers of a host as a file that people of its field open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import (
    Device,
    Difficulty,
    HostName,
    PreferenceText,
    Rows,
    Seed,
    Weights,
    chosen_host,
    shipped_policy,
    writable,
)
from dprm.cli.failure import clear_errors


def generate(
    host: HostName,
    out: Annotated[Path, typer.Option(help="The file; its ending says the form, such as mols.sdf.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many to draw.")] = 100,
    policy: Annotated[
        Path | None, typer.Option(help="The order; default the one that comes with the host for this preference.")
    ] = None,
    preference: PreferenceText = None,
    difficulty: Difficulty = None,
    weights: Weights = None,
    seed: Seed = 0,
    rows: Rows = 64,
    device: Device = "cpu",
) -> None:
    """**Generate** with a host that makes things, such as molecules, under an order learned for your preference.

    For example `dprm generate genmol --preference qed=0.55,sa=0.45 -n 100 --out mols.sdf`. What is not valid or comes
    twice is left out, and said; the best by your preference come first.
    """
    import dprm
    from dprm.cli.progress import bars
    from dprm.fit.purpose import misfits
    from dprm.host.decoded import decoded
    from dprm.host.rollout import Decode

    with clear_errors("generate"):
        writable(out)
        chosen = chosen_host(host, device=device, weights=weights, difficulty=difficulty, preference=preference)
        learned = shipped_policy(chosen) if policy is None else dprm.Policy.load(policy)
        for line in misfits(learned.notes, chosen) if learned is not None else ():
            typer.echo(f"{policy}: {line}", err=True)
        if learned is None:
            typer.echo("no policy for this preference comes with the host: the host's own order decides", err=True)
        if not chosen.endings:
            raise ValueError(f"host {chosen.name} makes nothing that is written as a file")
        if out.suffix not in chosen.endings:
            raise ValueError(f"--out is {out}: expected a file that ends in {', '.join(chosen.endings)}")
        problems = chosen.problems("test", count, seed)
        way = Decode(None if learned is None else dprm.Order.from_policy(learned))
        with bars() as on_progress:
            answers = decoded(
                chosen,
                problems,
                {"answers": way},
                seed=seed,
                rows=rows,
                on_batch=lambda _, n: on_progress("made", n, count),
            )
        lines = chosen.write(out, problems, answers["answers"])
    for line in [*lines, str(out)]:
        typer.echo(line)
