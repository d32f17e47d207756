"""`dprm fit`: learn an order from terminal rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.failure import clear_errors


def fit(
    host: Annotated[str, typer.Argument(help="A host of `dprm hosts`.")],
    out: Annotated[Path | None, typer.Option(help="The policy file; default runs/HOST.dprm.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of decode and observe.")] = 16,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts a round.")] = 32,
    samples: Annotated[int, typer.Option(min=1, help="Trajectories of each prompt.")] = 4,
    limit: Annotated[int, typer.Option(min=1, help="Prompts of the fit split in all.")] = 512,
    width: Annotated[int | None, typer.Option(min=1, help="Positions revealed a step; default the host's own.")] = None,
    beta: Annotated[float, typer.Option(help="Inverse temperature of the tilt.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    device: Annotated[str, typer.Option(help="Where the model runs: cpu, cuda.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print the policy's header as JSON.")] = False,
) -> None:
    """Learn a **policy** by Algorithm 1: decode, and credit every revealed position with its trajectory's reward.

    The policy is written after every round; an interrupted fit goes on from there to the same bits. It is learned on
    the fit split only: choose its guidance on `select`, and look at `test` once (`dprm compare`).
    """
    import json

    from rich.console import Console
    from rich.progress import Progress

    from dprm.fit import OnPolicy
    from dprm.hosts import load

    path = out or Path("runs") / f"{host}.dprm"
    with clear_errors("fit"):
        chosen = load(host, device)
        estimator = OnPolicy(rounds=rounds, prompts=prompts, samples=samples, width=width, beta=beta, seed=seed)
        posed = chosen.problems("fit", limit, seed)
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("fit", total=rounds)

            def on_round(done: int, reward: float) -> None:
                bar.update(task, completed=done, description=f"fit, mean reward {reward:.3f}")

            policy = estimator.fit(chosen, posed, path, on_round)
    if as_json:
        typer.echo(json.dumps({**policy.header, "digest": policy.digest}, indent=2, ensure_ascii=False))
    else:
        typer.echo(f"{path}: {estimator.trajectories} trajectories, digest {policy.digest[:16]}")
        typer.echo(f"Look at it with `dprm policy {path}`, try it with `dprm compare {host} --policy {path}`.")
