"""`dprm train`: the small model of a host, from data to weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import Compiled
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say, say_json


def train(
    host: Annotated[str, typer.Argument(help="A host of `dprm hosts`.")],
    law: Annotated[str, typer.Option(help="Which positions are masked: random, confidence, dprm.")] = "random",
    steps: Annotated[int | None, typer.Option(min=1, help="Number of steps; equal for arms that are compared.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Time limit instead; the learning rate ends with it.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="Sequences a step.")] = 1024,
    rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 1e-3,
    width: Annotated[int | None, typer.Option(min=32, help="Width of the model; default the host's own.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Layers of the model; default the host's own.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, data and masks.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="Held-out problems of an evaluation.")] = 256,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    compiled: Compiled = False,
    prepared: Annotated[
        str | None, typer.Option("--data", help="Prepared data by name, such as that of your own file.")
    ] = None,
    start: Annotated[Path | None, typer.Option(help="Weights to begin with, such as the host's own.")] = None,
    out: Annotated[Path | None, typer.Option(help="The weights file; default runs/HOST-LAW.safetensors.")] = None,
    work: Annotated[Path, typer.Option(help="Checkpoints, log and prepared data.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train a host's **small model**; an interrupted training goes on from its checkpoint, on a CPU to the same bits.

    Laws: `random` masks uniformly; `confidence` masks along the order a confidence decoder takes (PUMA); `dprm` along
    an order that learns from the terminal rewards of periodic decodes, and writes that order beside the weights, ready
    for `dprm compare --policy`. Weights that are written into the folder of the
    committed weights are entered into its manifest. Under `torchrun` the processes share every step: `--rows` is of all
    together, and the losses are those of one process.
    """
    import json

    from dprm.cli.progress import lines
    from dprm.data.underway import listening
    from dprm.host import weights
    from dprm.hosts import task_of
    from dprm.train import parallel
    from dprm.train.recipe import Recipe
    from dprm.train.train import train as run

    path = out or Path("runs") / f"{host}-{law}.safetensors"
    with clear_errors("train"):
        if steps is None and minutes is None:
            steps = 10_000
        device = parallel.begin_under_torchrun(device)
        fast = compiled or device.startswith("cuda")
        recipe = Recipe(rows=rows, steps=steps, minutes=minutes, rate=rate, seed=seed, compiled=fast, half=compiled)
        with listening(lines()):
            scores = run(
                task_of(host, prepared),
                law,
                recipe,
                out=path,
                work=work,
                device=device,
                width=width,
                depth=depth,
                problems=limit,
                start=start,
            )
        shared = parallel.processes()
        parallel.end()
        if not shared.first:
            return
        if path.resolve().parent == weights.folder().resolve():
            weights.record(path, " ".join(["dprm", *sys.argv[1:]]), scores)
    if as_json:
        say_json(json.dumps({"weights": str(path), **scores}, indent=2))
    else:
        say(f"{path}: " + ", ".join(f"{name} {score:.1%}" for name, score in scores.items()))
