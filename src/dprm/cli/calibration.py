"""The calibration of the verdict: how often it is right where the truth is known."""

from __future__ import annotations

import json
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import numpy
from rich.progress import track
from rich.table import Table

from dprm.cli.terminal import terminal
from dprm.evaluate.calibration import (
    GAIN_LIMIT,
    NULL_LIMIT,
    World,
    chain_world,
    report,
    run,
    simulated_worlds,
)
from dprm.evaluate.card import versions
from dprm.evaluate.population import Population
from dprm.order.files import write_whole
from dprm.theory import Chain, keyed


def calibrated(studies: int, seed: int, out: Path | None) -> dict[str, Any]:
    """Run every world and write the card: `studies` on each chain, ten times as many of simulated rewards."""
    planned = [(world, 10 * studies) for world in simulated_worlds()] + [(world, studies) for world in chain_worlds()]
    watched = track(planned, "calibrating", console=terminal(err=True), transient=True)
    outcomes = [run(world, count, seed) for world, count in watched]
    card = report(outcomes, seed, " ".join(["dprm", *sys.argv[1:]]), versions())
    if out is not None:
        write_whole(out, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())
    return card


def chain_worlds() -> list[World]:
    """Enumerable chains on which the truth is known: order cannot matter, values are noise, a gain of 3 points."""
    # Shuffled values must not do as well by chance: where any other beginning pays, they would.
    chain = keyed(beta=2.0)
    rng = numpy.random.default_rng(0)
    independent = reduce(numpy.multiply.outer, rng.dirichlet(numpy.full(3, 20.0), size=4))
    product = Chain(independent, rng.random(independent.shape), tokens="sampled")
    insensitive = Population(product, sensitive=1.0, luck=0.0, temperature=1.0)
    noise = Population(chain, sensitive=0.0, luck=0.5)
    gain, whole = Population(chain, sensitive=0.03, luck=0.35), Population(chain, sensitive=1.0, luck=0.0)
    worlds = []
    for learner, what in (("onpolicy", "table"), ("head", "head")):
        title = f"chain, {what}"
        worlds += [
            chain_world(
                f"{title}: order cannot matter, straight to test",
                insensitive,
                learner,
                chosen_first=False,
                most=NULL_LIMIT,
            ),
            chain_world(f"{title}: pure noise, straight to test", noise, learner, chosen_first=False, most=NULL_LIMIT),
            chain_world(f"{title}: pure noise, chosen on select", noise, learner, most=NULL_LIMIT),
            chain_world(f"{title}: a gain of 3 points, 20% discordant", gain, learner, fit_on=whole, least=GAIN_LIMIT),
        ]
    return worlds


def show_calibration(card: dict[str, Any]) -> None:
    """The card as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("world")
    for column in ("studies", "apply", "limit", "holds"):
        table.add_column(column, justify="right", no_wrap=True)
    for world in card["worlds"]:
        limit = f"≤ {world['most']:.0%}" if world["most"] is not None else ""
        limit = f"≥ {world['least']:.0%}" if world["least"] is not None else limit
        holds = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: ""}[world["holds"]]
        table.add_row(world["name"], f"{world['studies']:,}", f"{world['apply']:.1%}", limit, holds)
    terminal().print(table)
