"""`dprm study`: what a training does to an order, as one card."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprm.cli.failure import clear_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rich.table import Table

    from dprm.evaluate.study import Study
    from dprm.hosts.dmpo.study import Setting
    from dprm.train.transformer import Transformer

HOSTS = ("puma", "puma_words", "dmpo")


def study(
    host: Annotated[str, typer.Argument(help="puma, puma_words or dmpo.")],
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Weights of `dprm train`: random=FILE, confidence=FILE, dprm=FILE for puma; start=FILE for dmpo, "
            "default its committed ones. May be given several times.",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="puma: steps of the laws without a file. dmpo: updates of every arm.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="dmpo: time limit of the first arm instead.")] = None,
    train_rows: Annotated[int, typer.Option(min=8, help="puma: sequences a step of a training.")] = 1024,
    split: Annotated[str, typer.Option(help="Where problems come from: select or test.")] = "test",
    limit: Annotated[int, typer.Option(min=1, help="How many problems; for dmpo of each size.")] = 512,
    difficulty: Annotated[
        str | None,
        typer.Option(help="puma: clues, such as 22-25. puma_words: steps, such as 4. dmpo: numbers, such as 3-6."),
    ] = None,
    orders: Annotated[str, typer.Option(help="puma: signals to decode with.")] = "random,confidence,entropy",
    widths: Annotated[
        str | None, typer.Option(help="Positions revealed a step; default 1,2,3, and 2 for dmpo, which takes one.")
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="dmpo: samples of each problem.")] = 32,
    rate: Annotated[float, typer.Option(help="dmpo: peak learning rate.")] = 1e-5,
    negative: Annotated[float, typer.Option(min=0.0, help="dmpo: weight of the unwanted rollouts; 0 for none.")] = 0.7,
    sync: Annotated[
        int, typer.Option(min=0, help="dmpo: refreshes after which the present weights become the reference; 0: never.")
    ] = 8,
    seed: Annotated[int, typer.Option(help="Seed of trainings, problems, orders and intervals.")] = 0,
    rows: Annotated[int, typer.Option(min=1, help="Problems or samples decoded together.")] = 2048,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="The card; default runs/study-HOST.json.")] = None,
    work: Annotated[Path | None, typer.Option(help="Keeps what is done; default runs/study-HOST.")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="A rehearsal: small models, few steps, few problems.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card instead of the table.")] = False,
) -> None:
    """Compare **trainings** of one host on the same problems, and write a card.

    puma, puma_words: three mask laws (random, confidence-progressive, DPRM-progressive) at equal steps and rows, each
    decoded under three orders at three widths, with the order audit. dmpo: three post-training arms from one start at
    equal updates, pass@K, all and hard. An interrupted study goes on where it was.

    For example `dprm study puma --weights random=a.safetensors --weights confidence=b.safetensors --weights
    dprm=c.safetensors --difficulty 22-25`, or `dprm study dmpo --steps 400 --device cuda`.
    """
    from contextlib import redirect_stdout
    from dataclasses import replace

    import torch

    from dprm.hosts.dmpo.study import study as post_training
    from dprm.hosts.puma.study import study as training

    folder = work or Path("runs") / f"study-{host}"
    command = " ".join(["dprm", *sys.argv[1:]])
    # What trainings say about their progress is not part of the output.
    with clear_errors("study"), redirect_stdout(sys.stderr):
        if host not in HOSTS:
            raise ValueError(f"host is {host!r}: expected one of {', '.join(HOSTS)}")
        torch.set_float32_matmul_precision("high")
        files = dict(_file(text) for text in weights or [])
        if host == "dmpo":
            (width,) = _whole(widths or "2", most=1)
            setting = replace(
                _setting(steps, minutes, difficulty, width, limit, samples, split, seed),
                rate=rate,
                negative=negative,
                sync=sync,
            )
            card = post_training(
                _start(files, tiny),
                setting.rehearsal() if tiny else setting,
                folder=folder,
                device=device,
                rows=rows,
                command=command,
            )
        else:
            if tiny:
                steps, train_rows, limit = steps or 10, 16, min(limit, 8)
            card = training(
                host,
                _arms(host, files, steps, train_rows, limit, seed, device, folder, tiny),
                limit=limit,
                split=split,
                difficulty=difficulty,
                orders=[order.strip() for order in orders.split(",")],
                widths=_whole(widths or "1,2,3"),
                seed=seed,
                rows=rows,
                device=device,
                folder=folder,
                command=command,
            )
        card.save(out or Path("runs") / f"study-{host}.json")
    if as_json:
        typer.echo(card.to_json())
    else:
        show(card)


def _arms(
    host: str,
    files: dict[str, Path],
    steps: int | None,
    rows: int,
    limit: int,
    seed: int,
    device: str,
    folder: Path,
    tiny: bool,
) -> dict[str, Path]:
    """Weights of the three mask laws, trained where no file was given."""
    from dprm.hosts.puma.arms import train_missing
    from dprm.train.recipe import Recipe

    recipe = None
    if steps is not None:
        recipe = Recipe(rows=rows, steps=steps, seed=seed, compiled=device == "cuda" and not tiny)
    width, depth = (32, 1) if tiny else (None, None)
    return train_missing(host, files, recipe, folder, device, width, depth, min(limit, 256))


def _setting(
    steps: int | None,
    minutes: float | None,
    difficulty: str | None,
    width: int,
    limit: int,
    samples: int,
    split: str,
    seed: int,
) -> Setting:
    """The setting of a post-training study."""
    from dprm.hosts.dmpo.host import SIZES, sizes_of
    from dprm.hosts.dmpo.study import Setting

    if steps is None and minutes is None:
        steps = 400
    sizes = SIZES if difficulty is None else sizes_of(difficulty)
    return Setting(
        updates=steps, minutes=minutes, width=width, sizes=sizes, limit=limit, samples=samples, split=split, seed=seed
    )


def _start(files: dict[str, Path], tiny: bool) -> Path | Transformer:
    """The weights to post-train: given or committed ones; for a rehearsal also a model that knows nothing."""
    from dprm.host import weights as committed
    from dprm.hosts import ENTRIES
    from dprm.train.task import task_of
    from dprm.train.transformer import Transformer

    for name in files:
        if name != "start":
            raise ValueError(f"weights has {name!r}: expected start=FILE")
    if files:
        return files["start"]
    if tiny:
        return Transformer(task_of("dmpo").shaped(32, 1))
    return committed.checked(ENTRIES["dmpo"].weights, ENTRIES["dmpo"].command)


def _file(text: str) -> tuple[str, Path]:
    """NAME=FILE."""
    name, mark, path = text.partition("=")
    if not (name and mark and path):
        raise ValueError(f"weights is {text!r}: expected NAME=FILE")
    return name, Path(path)


def _whole(text: str, most: int = 8) -> list[int]:
    """The widths of a text with commas."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > most or not all(part.isdecimal() and int(part) > 0 for part in parts):
        wanted = "one positive number" if most == 1 else "positive numbers with commas"
        raise ValueError(f"widths is {text!r}: expected {wanted}")
    return [int(part) for part in parts]


def show(card: Study) -> None:
    """The card as a table of results and one of differences between trainings."""
    from rich.console import Console

    console = Console()
    steps = {arm: facts.get("steps", facts.get("updates")) for arm, facts in card.arms.items()}
    console.print(f"{card.host}: {card.count} problems of {card.split}, seed {card.seed}")
    console.print("Steps: " + ", ".join(f"{arm} {count}" for arm, count in steps.items()) + "\n")
    for table in _passk_tables(card) if card.passk else _order_tables(card):
        console.print(table)
        console.print()


def _order_tables(card: Study) -> Iterator[Table]:
    from rich.table import Table

    results = Table(box=None, pad_edge=False, header_style="bold", title="share solved", title_justify="left")
    conditions = list(dict.fromkeys((entry["order"], entry["width"]) for entry in card.results))
    share = {(entry["arm"], entry["order"], entry["width"]): entry["solved"] for entry in card.results}
    for column in ("order", "width", *card.arms):
        results.add_column(column, justify="left" if column == "order" else "right")
    for order, width in conditions:
        results.add_row(order, str(width), *(f"{share[arm, order, width]:.1%}" for arm in card.arms))
    yield results
    yield _differences(card, ("order", "width"), [entry for entry in card.differences if entry["over"] == "training"])
    yield _audit(card)


def _audit(card: Study) -> Table:
    from rich.table import Table

    statistics = ("adjacency", "span", "nonlocal_rate", "backfill", "returns", "first_number", "final_number")
    shown = [name for name in statistics if any(name in entry for entry in card.audit)]
    table = Table(box=None, pad_edge=False, header_style="bold", title="order audit", title_justify="left")
    for column in ("training", "order", "width", *shown):
        table.add_column(column, justify="left" if column in ("training", "order") else "right")
    for entry in card.audit:
        means = (f"{entry[name]['mean']:.3f}" if name in entry else "" for name in shown)
        table.add_row(entry["arm"], entry["order"], str(entry["width"]), *means)
    return table


def _passk_tables(card: Study) -> Iterator[Table]:
    from rich.table import Table

    results = Table(box=None, pad_edge=False, header_style="bold", title="mean pass@K, unbiased", title_justify="left")
    parts = list(next(iter(card.passk.values())))
    for column in ("arm", *parts):
        results.add_column(column, justify="left" if column == "arm" else "right")
    for arm, table in card.passk.items():
        results.add_row(arm, *(f"{table[part]['unbiased']['mean']:.3f}" for part in parts))
    yield results
    chosen = [{**entry, **entry["unbiased"]} for entry in card.differences if entry["part"] in ("all", "hard")]
    yield _differences(card, ("part",), chosen)


def _differences(card: Study, keys: tuple[str, ...], entries: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    title = f"paired differences between trainings, {card.notes['difference']}"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    for column in ("treated", "control", *keys):
        table.add_column(column)
    for column in ("difference", "95 % of it"):
        table.add_column(column, justify="right", no_wrap=True)
    for entry in entries:
        style = "green" if entry["low"] > 0 else "red" if entry["high"] < 0 else ""
        names = (entry["treated"], entry["control"], *(str(entry[key]) for key in keys))
        table.add_row(*names, f"{entry['estimate']:+.3f}", f"{entry['low']:+.3f} … {entry['high']:+.3f}", style=style)
    return table
