"""`dprm probe`: what orders select on the way to known answers: cross-entropy to the truth, coverage of doubt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dprm.cli.arguments import AsJson, Compiled, Device, Difficulty, HostName, Rows, Seed, Weights, Width, writable
from dprm.cli.compare import SIGNALS, named
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say_json, terminal

KIND = "probe"


def probe(
    host: HostName,
    orders: Annotated[str, typer.Option(help="Signals to probe beside the host's own order, with commas.")] = SIGNALS,
    policy: Annotated[
        list[Path] | None, typer.Option(help="A policy of `dprm fit`; several times for several.")
    ] = None,
    split: Annotated[str, typer.Option(help="Where problems come from: fit, select or test.")] = "select",
    limit: Annotated[int, typer.Option(min=2, help="How many problems.")] = 64,
    out: Annotated[Path | None, typer.Option(help="Write everything as one JSON file.")] = None,
    difficulty: Difficulty = None,
    width: Width = None,
    weights: Weights = None,
    seed: Seed = 0,
    rows: Rows = 64,
    device: Device = "cpu",
    compiled: Compiled = False,
    as_json: AsJson = False,
) -> None:
    """Walk **known answers** under several orders, every reveal being the right one, as in teacher-forced training.

    Early: cross-entropy to the truth of what is revealed before half of an answer is visible. Late: the share of the
    reveals after that from low-confidence bins. Relation: correlation of confidence and cross-entropy over the bins.
    These are what the theory assumes of a host, not what an order earns: for that, `dprm compare`.
    """
    import json

    import dprm
    from dprm.cli.arguments import chosen_host
    from dprm.evaluate.card import versions
    from dprm.evaluate.forced import probed
    from dprm.host.identity import model_word

    with clear_errors("probe"):
        writable(out)
        chosen = chosen_host(
            host, device=device, compiled=compiled, weights=weights, difficulty=difficulty, width=width
        )
        problems, answers = chosen.answered(split, limit, seed)
        own = chosen.decoding.signal.name
        arms: dict[str, Any] = {own: None}
        arms |= {name: dprm.Order(signal=name) for name in map(str.strip, orders.split(",")) if name and name != own}
        for name, path in named(policy or [], chosen.name).items():
            if name in arms:
                raise ValueError(f"{path} is called like an order that is probed: rename it")
            arms[name] = dprm.Order.from_policy(dprm.Policy.load(path))
        found = probed(chosen, problems, answers, arms, rows=rows, seed=seed)
        card = {
            "kind": KIND,
            "host": chosen.name,
            "variant": chosen.variant,
            "split": split,
            "count": len(problems),
            "problems": problems.digest,
            "decoding": chosen.decoding.words(),
            "weights": model_word(chosen),
            "seed": seed,
            "reference": own,
            "orders": found,
            "command": " ".join(["dprm", *sys.argv[1:]]),
            "versions": versions(),
        }
        text = json.dumps(card, indent=1, ensure_ascii=False)
        if out is not None:
            out.write_text(text + "\n")
    if as_json:
        say_json(text)
    else:
        _show(card)


def _show(card: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("order")
    for column in ("early CE", "difference", "late, low bins", "difference", "CE against confidence"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, found in card["orders"].items():
        numbers = []
        for what, form in (("early", "{:.3f}"), ("late_low", "{:.1%}")):
            numbers.append(form.format(found[what]["mean"]))
            told = [found[what].get(f"delta{end}") for end in ("", "_low", "_high")]
            signed = form.replace(":", ":+")
            numbers.append("" if told[0] is None else "{} [{}, {}]".format(*(signed.format(value) for value in told)))
        relation = "" if found["relation"] is None else f"{found['relation']:+.2f}"
        table.add_row(name, *numbers, relation)
    console = terminal()
    posed = f" ({card['variant']})" if card["variant"] else ""
    console.print(f"{card['host']}{posed}: {card['count']} problems of {card['split']} with known answers\n")
    console.print(table)
