"""`dprm repair`: fill what is masked in a person's own file, and write it in the form of the host's field."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import Device, HostName, PreferenceText, Rows, Seed, Temperature, Width, chosen_host, writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def repair(
    host: HostName,
    file: Annotated[Path, typer.Argument(help="Your own problems; for antiberty FASTA with X or _ where to fill.")],
    out: Annotated[Path, typer.Option(help="Write the finished answers here, with their scores.")],
    order: Annotated[
        str | None, typer.Option(help="The order: a signal, such as random; default the host's own.")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="A policy of `dprm fit` as the order.")] = None,
    preference: PreferenceText = None,
    width: Width = None,
    temperature: Temperature = None,
    seed: Seed = 0,
    rows: Rows = 64,
    device: Device = "cpu",
) -> None:
    """**Fill** the masked positions of your own file under an order, and write it back with its scores.

    For example `dprm repair antiberty chains.fa --policy runs/antiberty.dprm --out repaired.fa`. What does not fit is
    named and left out.
    """
    import dprm
    from dprm.fit.montecarlo import MonteCarlo, is_local
    from dprm.fit.purpose import misfits
    from dprm.host.decoded import decoded
    from dprm.host.rollout import Decode, Way

    with clear_errors("repair"):
        writable(out)
        if order is not None and policy is not None:
            raise ValueError("--order and --policy are both given: expected one of them")
        chosen = chosen_host(host, device=device, width=width, temperature=temperature, preference=preference)
        problems, left_out = chosen.read_problems(file)
        for line in left_out:
            say(f"left out: {file}, {line}", err=True)
        way: Way = Decode(None if order is None else dprm.Order(signal=order))
        if policy is not None:
            stored = dprm.Policy.load(policy)
            for line in misfits(stored.notes, chosen):
                say(f"{policy}: {line}", err=True)
            local = is_local(stored) and stored.guidance > 0
            way = MonteCarlo.of_policy(stored) if local else Decode(dprm.Order.from_policy(stored))
        rollout = decoded(chosen, problems, {"repair": way}, seed=seed, rows=rows)["repair"]
        chosen.write(out, problems, rollout)
    reward = float(chosen.reward(rollout.scores).mean())
    say(f"{out}: {len(problems)} filled, {len(left_out)} left out; mean reward {reward:.3f}")
