"""`dprm study`: what a training does to an order, as one card."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprm.cli.arguments import (
    Address,
    AsJson,
    Compiled,
    Device,
    Difficulty,
    EngineName,
    Seed,
    Workers,
    chosen_engine,
    writable,
)
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say, say_json, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from dprm.evaluate.study import Study


def study(
    host: Annotated[str, typer.Argument(help="puma, puma_words, dmpo or sdpo.")],
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Weights of `dprm train`: random=FILE, confidence=FILE, dprm=FILE for puma and puma_words; start=FILE "
            "for dmpo and sdpo, default the committed ones. May be given several times.",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Of every training that has no file; for dmpo updates, default 400.")
    ] = None,
    settings: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="NAME=NUMBER,…",
            help="Numbers of the host's own trainings, such as rows=256 for puma or rate=1e-5,negative=0.7 for dmpo.",
        ),
    ] = "",
    split: Annotated[str, typer.Option(help="Where problems come from: select or test.")] = "select",
    limit: Annotated[int, typer.Option(min=1, help="How many problems.")] = 512,
    difficulty: Difficulty = None,
    orders: Annotated[
        str | None,
        typer.Option(
            help="What to decode by, with commas: signals, `learned RULE` (what a training learned), `empty RULE` (the "
            "same draws without values); default the host's own list."
        ),
    ] = None,
    widths: Annotated[str | None, typer.Option(help="Positions revealed a step, with commas.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Answers to every problem, for pass@K.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Of the tokens; default the study's own.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Decode seeds, on the same problems; of sdpo, fine-tunings.")] = 1,
    seed: Seed = 0,
    rows: Annotated[
        int, typer.Option(min=1, help="Canvases decoded together; changes the time, not the result.")
    ] = 512,
    device: Device = "cpu",
    compiled: Compiled = False,
    out: Annotated[Path | None, typer.Option(help="The card; default runs/study-HOST.json.")] = None,
    work: Annotated[Path | None, typer.Option(help="Keeps what is done; default runs/study-HOST.")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="A rehearsal: small models, few steps, few problems.")] = False,
    engine: EngineName = "serial",
    workers: Workers = 1,
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Compare **trainings** of one host on the same problems, and write a card with its outcomes beside it.

    puma, puma_words: three mask laws (random, confidence-progressive, DPRM-progressive) at equal steps and rows, each
    decoded under several orders and widths, with the order audit. dmpo: four post-training arms from one start at
    equal updates, and pass@K. An interrupted study goes on where it was.
    sdpo: five fine-tuning arms from one start at equal updates, each decoded as it was trained, as a comparison with
    native; `--seeds 3` averages three fine-tunings. Under `torchrun` the processes share every step of a
    training, with the losses of one process; the first decodes.

    For example `dprm study puma --weights random=a.safetensors --weights confidence=b.safetensors --weights
    dprm=c.safetensors --difficulty 22-25`, or `dprm study dmpo --steps 400 --device cuda`. Problems
    are those of `select` unless you ask for `test`.
    """
    from dataclasses import replace

    import torch

    from dprm.cli.compare import show as show_comparison
    from dprm.cli.progress import bars
    from dprm.evaluate.finetunings import finetunings
    from dprm.evaluate.trainings import study as run
    from dprm.hosts import ENTRIES, task_of, trainings_of
    from dprm.train import parallel
    from dprm.train.finetuning import FineTunings

    name = f"study-{host}{'-tiny' if tiny else ''}"
    path, folder = out or Path("runs") / f"{name}.json", work or Path("runs") / name
    with clear_errors("study"):
        trainings = trainings_of(host)
        writable(path)
        trainings = (trainings.rehearsal() if tiny else trainings).with_settings(settings)
        asked: dict[str, Any] = {"steps": steps, "samples": samples, "temperature": temperature}
        asked["fast"] = compiled or None
        asked |= {"orders": _listed(orders), "widths": _whole(widths)}
        trainings = replace(trainings, **{option: value for option, value in asked.items() if value is not None})
        files = dict(_file(text) for text in weights or [])
        if "start" in trainings.GIVEN and not tiny:
            files.setdefault("start", ENTRIES[host].checked_weights())
        torch.set_float32_matmul_precision("high")
        device = parallel.begin_under_torchrun(device)
        limit = min(limit, 8) if tiny else limit
        shared: dict[str, Any] = {"limit": limit, "split": split, "seed": seed, "seeds": seeds, "rows": rows}
        shared |= {"device": device, "folder": folder, "command": " ".join(["dprm", *sys.argv[1:]])}
        on = chosen_engine(engine, workers, address, device)
        if isinstance(trainings, FineTunings):
            alone = {"--difficulty": difficulty, "--orders": orders, "--samples": samples, "--engine": on}
            if said := [option for option, value in alone.items() if value is not None]:
                raise ValueError(
                    f"{said[0]} is not for {host}: every arm answers once as it was trained, on this machine"
                )
            with bars() as on_progress:
                count = seeds * limit
                compared = finetunings(
                    host,
                    task_of(host),
                    trainings,
                    files,
                    **shared,
                    on_batch=lambda arm, done: on_progress(arm, done, count),
                )
            parallel.end()
            if compared is not None:
                compared.save(path)
                say_json(compared.card.to_json()) if as_json else show_comparison(compared.card)
                say(f"Card: {path}", err=as_json)
            return
        made = run(host, task_of(host), trainings, files, difficulty=difficulty, on=on, **shared)
        parallel.end()
        if made is None:
            return
        card, outcomes = made
        card.save(path, outcomes)
    if as_json:
        say_json(card.to_json())
    else:
        show(card)
        say(f"Card: {path}")


def _file(text: str) -> tuple[str, Path]:
    """NAME=FILE."""
    name, mark, path = text.partition("=")
    if not (name and mark and path):
        raise ValueError(f"weights is {text!r}: expected NAME=FILE")
    return name, Path(path)


def _listed(text: str | None) -> tuple[str, ...] | None:
    """The names of a text with commas, each once."""
    return None if text is None else tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _whole(text: str | None) -> tuple[int, ...] | None:
    """The widths of a text with commas."""
    parts = _listed(text)
    if parts is not None and not (parts and all(part.isdecimal() and int(part) > 0 for part in parts)):
        raise ValueError(f"widths is {text!r}: expected positive numbers with commas")
    return None if parts is None else tuple(int(part) for part in parts)


def show(card: Study) -> None:
    """The card as tables: results, differences between trainings, the order audit."""
    console = terminal()
    posed = f" ({card.variant})" if card.variant else ""
    console.print(f"{card.host}{posed}: {card.count} problems of {card.split}, seed {card.seed}")
    console.print("Steps: " + ", ".join(f"{arm} {facts.get('steps', '–')}" for arm, facts in card.arms.items()) + "\n")
    for table in (*_results(card), _differences(card), *_audit(card)):
        console.print(table)
        console.print()
    for told in card.notes.get("headline", []):
        for line in headline_lines(told):
            console.print(line, markup=False, highlight=False)


def headline_lines(told: dict[str, Any]) -> Iterator[str]:
    """The pair that the paper shows, in sentences."""
    treated, control = (f"{told[side]['arm']} by {told[side]['order']}" for side in ("treated", "control"))
    change = f"{told['delta']:+.1%} [{told['low']:+.1%}, {told['high']:+.1%}]"
    yield f"Trained and decoded: {treated} against {control}, {told['treated']['width']} a step: {change} solved."
    yield f"  only the first solves {told['treated_only']}, only the second {told['control_only']}"
    for name, each in told.get("categories", {}).items():
        yield f"  {name} ({each['problems']}): {each['delta']:+.1%} [{each['low']:+.1%}, {each['high']:+.1%}]"
    for each in told["same_checkpoint"]:
        gain = f"{each['delta']:+.1%} [{each['low']:+.1%}, {each['high']:+.1%}]"
        yield f"  on one checkpoint {each['order']} gives the same answer to {each['same']:.1%}, {gain} solved"
    yield f"  seconds {told['seconds']['ratio']:.2f} times"


def _table(title: str, names: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _results(card: Study) -> Iterator[Table]:
    """A table for every part of the problems, with a column for every training."""
    passing = card.samples > 1
    what = "mean pass@K, unbiased" if passing else "share solved"
    share = {
        (entry["part"], entry["order"], entry["width"], entry["arm"]): (
            f"{entry['unbiased']['estimate']:.3f}" if passing else f"{entry['solved']:.1%}"
        )
        for entry in card.results
    }
    for part in card.parts:
        table = _table(f"{what}, {part} problems", ("order",), ("width", *card.arms))
        for order, width in dict.fromkeys(key[1:3] for key in share):
            table.add_row(order, str(width), *(share.get((part, order, width, arm), "") for arm in card.arms))
        yield table


def _differences(card: Study) -> Table:
    """Trainings under the host's own order, and what decodes by what it learned against that; the card has all."""
    table = _table(
        f"paired differences, {card.notes['difference']}",
        ("treated", "control"),
        ("width", "part", "difference", "95 % of it"),
    )
    usual = card.notes["usual"]
    for entry in card.differences:
        told = entry["over"], entry.get("order"), entry["control"].endswith(f" by {usual}")
        if entry["part"] in ("all", "hard") and told in (("training", usual, False), ("both", None, True)):
            style = "green" if entry["low"] > 0 else "red" if entry["high"] < 0 else ""
            interval = f"{entry['estimate']:+.3f}", f"{entry['low']:+.3f} … {entry['high']:+.3f}"
            table.add_row(
                *(str(entry[name]) for name in ("treated", "control", "width", "part")), *interval, style=style
            )
    return table


def _audit(card: Study) -> Iterator[Table]:
    statistics = ("adjacency", "span", "nonlocal_rate", "backfill", "returns", "first_number", "final_number")
    shown = tuple(name for name in statistics if any(name in entry for entry in card.audit))
    if shown:
        narrow = min(entry["width"] for entry in card.audit)
        table = _table(f"order audit, {narrow} a step", ("training", "order"), shown)
        for entry in card.audit:
            if entry["width"] == narrow:
                means = (f"{entry[name]['mean']:.3f}" if name in entry else "" for name in shown)
                table.add_row(entry["arm"], entry["order"], *means)
        yield table
