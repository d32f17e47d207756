"""`dprm compare`: ways to answer the problems of a host in one table, with intervals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprm.cli.arguments import (
    Address,
    AsJson,
    Block,
    Compiled,
    Device,
    Difficulty,
    EngineName,
    HeadWhereAsked,
    HostName,
    Length,
    MaskId,
    PreferenceText,
    Prompts,
    ReuseBlocks,
    Reward,
    Rows,
    Seed,
    Steps,
    Temperature,
    TrustRemoteCode,
    Weights,
    Width,
    Workers,
    chosen_engine,
    chosen_host,
    writable,
)
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say, say_json, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dprm.evaluate.card import Arm, Card
    from dprm.host.host import Host, Problems
    from dprm.order.policy import Policy

# The name of a learned order, on tables, cards and pages.
LEARNED = "dprm"
# The name of the arm with the estimator, the cells and the gate of the paper.
PAPER = "paper"
SIGNALS = "confidence,random,entropy,margin,uncertainty"


def compare(
    host: HostName,
    orders: Annotated[str, typer.Option(help="Signals to compare with the host's own order, with commas.")] = SIGNALS,
    policy: Annotated[
        list[Path] | None,
        typer.Option(help="A learned order to compare too, of `dprm fit`; several times; default the committed one."),
    ] = None,
    no_policy: Annotated[bool, typer.Option("--no-policy", help="Leave the committed learned order out.")] = False,
    rule: Annotated[
        str | None, typer.Option(help="How policies select: top_m, shortlist_top_m, soft_bon; default as fitted.")
    ] = None,
    problems: Annotated[Path | None, typer.Option(help="Your own problems; their form is the host's.")] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Where problems come from: fit, select or test; default select, and all of a file that no policy was "
            "fitted on."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many problems.")] = 64,
    seeds: Annotated[int, typer.Option(min=1, help="Decode seeds, each over all problems.")] = 1,
    ablate: Annotated[bool, typer.Option("--ablate", help="Add the ablations of every policy.")] = False,
    best_of: Annotated[
        int, typer.Option(min=1, help="Add the best of so many paths of the reference: a control for costly orders.")
    ] = 1,
    montecarlo: Annotated[
        int,
        typer.Option(min=0, help="Add values asked of continuations, of so many candidates: they cost model calls."),
    ] = 0,
    search: Annotated[
        int, typer.Option(min=0, help="Answer by search, so many branches wide: pruned to a quarter, which vote.")
    ] = 0,
    verifier: Annotated[
        str | None, typer.Option(help="Of the search, (tokens [n,L], facts) → scores; default the model's likelihood.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the result card here, its outcomes beside it.")] = None,
    answers: Annotated[
        Path | None, typer.Option(help="A folder for what every order made, a file each, of hosts that write files.")
    ] = None,
    work: Annotated[Path, typer.Option(help="Keeps finished batches: an interrupted run goes on.")] = Path("runs"),
    prompts: Prompts = None,
    reward: Reward = None,
    preference: PreferenceText = None,
    difficulty: Difficulty = None,
    width: Width = None,
    temperature: Temperature = None,
    length: Length = None,
    block: Block = None,
    steps: Steps = None,
    mask_id: MaskId = None,
    trust_remote_code: TrustRemoteCode = False,
    head_where_asked: HeadWhereAsked = False,
    reuse_blocks: ReuseBlocks = False,
    weights: Weights = None,
    seed: Seed = 0,
    rows: Rows = 64,
    device: Device = "cpu",
    compiled: Compiled = False,
    engine: EngineName = "serial",
    workers: Workers = 1,
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Compare **orders** on one host: the same problems, budget and random streams; intervals; model calls.

    The first arm, the reference, is the host's own order, under the name of its signal. The committed learned order of
    the host, `dprm`, is beside it, in the setting that it was fitted for unless you say another one. Problems are
    those of `select` unless you ask for `test`; how often a policy was looked at there is written beside it. For
    example `dprm compare dmpo --split test --limit 256 --width 2 --policy runs/dmpo.dprm --ablate --out dmpo.json`.
    """
    from functools import partial

    from dprm.cli.progress import bars
    from dprm.evaluate.arms import arms_of
    from dprm.evaluate.compare import compare as run
    from dprm.evaluate.ledger import look
    from dprm.evaluate.verdict import CHOOSING
    from dprm.fit.purpose import misfits
    from dprm.host.finding import scheme_of
    from dprm.order.checks import check_one_of
    from dprm.order.rules import RULES

    command = " ".join(["dprm", *sys.argv[1:]])
    with clear_errors("compare"):
        writable(out)
        if policy and no_policy:
            raise ValueError("--no-policy leaves learned orders out: do not give --policy as well")
        if verifier is not None and not search:
            raise ValueError("--verifier judges the branches of a search: give --search as well")
        setting: dict[str, Any] = {
            "difficulty": difficulty,
            "width": width,
            "temperature": temperature,
            "preference": preference,
        }
        if policy is None and not no_policy and weights is None and reward is None and scheme_of(host) is None:
            policy, setting = with_committed(host, setting)
        if ablate and not policy:
            raise ValueError("--ablate takes something away from a policy: give --policy as well")
        if rule is not None:
            check_one_of("--rule", rule, RULES)
            if not policy:
                raise ValueError("--rule says how policies select: give --policy as well")
        plain = partial(
            chosen_host,
            host,
            **setting,
            device=device,
            compiled=compiled,
            weights=weights,
            reward=reward,
            prompts=prompts,
            length=length,
            block=block,
            steps=steps,
            mask_id=mask_id,
            trust_remote_code=trust_remote_code,
            head_where_asked=head_where_asked,
            reuse_blocks=reuse_blocks,
        )
        load = partial(searching, plain, search, verifier)
        chosen = load()
        if answers is not None and not chosen.endings:
            raise ValueError(f"--answers is {answers}: host {chosen.name} makes nothing that is written as a file")
        on = chosen_engine(engine, workers, address, device, load)
        files = named(policy or [], chosen.name)
        policies, shuffled = _loaded(files)
        if problems is None:
            source = split or "select"
            posed = chosen.problems(source, limit, seed)
        else:
            chosen, posed, source = from_file(chosen, problems, split, policies)
            posed = posed[:limit]
        arms = arms_of(
            chosen,
            [name.strip() for name in orders.split(",") if name.strip()],
            policies,
            shuffled,
            rule=rule,
            ablate=ablate,
            best_of=best_of,
            candidates=montecarlo,
            seed=seed,
        )
        differing = {name: lines for name, stored in policies.items() if (lines := misfits(stored.notes, chosen))}
        for name, lines in differing.items():
            for line in lines:
                say(f"{files[name]}: {line}", err=True)
        looks = {}
        if source not in CHOOSING:
            looks = {name: look(files[name], policies[name].digest, posed.digest, command) for name in files}
        notes = {name: note for name, note in (("misfits", differing), ("looks", looks)) if note}
        with bars() as on_progress:
            comparison = run(
                chosen,
                posed,
                arms,
                split=source,
                seeds=range(seed, seed + seeds),
                rows=rows,
                folder=work / f"compare-{chosen.name}",
                on=on,
                command=command,
                notes=notes,
                on_batch=lambda arm, done: on_progress(arm, done, seeds * len(posed)),
            )
        if out is not None:
            comparison.save(out)
        if answers is not None:
            written = comparison.write_answers(chosen, posed, answers)
            say(f"{len(written)} files of answers: {answers}", err=True)
    if as_json:
        say_json(comparison.card.to_json())
    else:
        show(comparison.card)


def from_file(host: Host, path: Path, split: str | None, policies: Mapping[str, Policy]) -> tuple[Host, Problems, str]:
    """The host of a file of problems, those to compare on, and what they are called.

    A file that no policy was fitted on is taken whole, under its name. Otherwise the file is split as it was for the
    fit.
    """
    from dprm.fit.seen import FITTED, SELECTED, first_seen
    from dprm.host.variants import own_problems, with_problems

    problems, left_out = own_problems(host, path)
    for line in left_out:
        say(f"left out: {path}, {line}", err=True)
    for name, policy in policies.items():
        seen = (first_seen(policy.notes.get(note, ""), problems.groups) for note in (FITTED, SELECTED))
        if split is None and (policy.notes.get("variant") == path.name or any(row is not None for row in seen)):
            say(f"{name} was fitted on {path}: its select part is compared; the rest is --split test", err=True)
            split = "select"
    if split is None:
        return host, problems, path.name
    host, _ = with_problems(host, path)
    return host, host.problems(split, len(problems)), split


def searching(load: Callable[[], Host], width: int, verifier: str | None) -> Host:
    """The host, with a search around it where one is asked for."""
    from dprm.host.finding import attribute
    from dprm.search import ByFunction, Schedule, searched

    if not width:
        return load()
    verifies = None if verifier is None else ByFunction(attribute(verifier))
    return searched(load(), Schedule(width, max(1, width // 4)), verifies)


def with_committed(host: str, said: dict[str, Any]) -> tuple[list[Path] | None, dict[str, Any]]:
    """The committed learned order of a host, if there is one for what was said, and the setting it was fitted for."""
    from dprm.cli.committed import committed_policy

    found = committed_policy(chosen_host(host), said)
    if found is None:
        return None, said
    path, rest = found
    options = "".join(f" --{key} {value}" for key, value in rest.items())
    if options:
        say(f"the setting of the committed learned order {path.name}:{options}", err=True)
    return [path], {**said, **rest}


def named(paths: list[Path], host: str) -> dict[str, Path]:
    """Policy files by the names of their arms: `dprm`, and of several what their files are called behind it; HOST-paper
    is `paper`."""
    stems = [path.stem.removeprefix(host).strip("-") for path in paths]
    if len(paths) == 1 and stems != [PAPER]:
        return {LEARNED: paths[0]}
    short = [PAPER if stem == PAPER else f"{LEARNED} {stem}".strip() for stem in stems]
    long = [f"{LEARNED} {path.parent.name}/{path.stem}" for path in paths]
    names = [name if short.count(name) == 1 else other for name, other in zip(short, long)]
    if len(set(names)) < len(names):
        raise ValueError(f"two policies are called {next(n for n in names if names.count(n) > 1)!r}: rename one")
    return dict(zip(names, paths, strict=True))


def _loaded(files: dict[str, Path]) -> tuple[dict[str, Policy], dict[str, Policy]]:
    """The policies, and the fitted controls that lie beside them."""
    import dprm

    policies = {name: dprm.Policy.load(path) for name, path in files.items()}
    controls = {name: path.with_suffix(".shuffled.dprm") for name, path in files.items()}
    return policies, {name: dprm.Policy.load(path) for name, path in controls.items() if path.is_file()}


def show(card: Card) -> None:
    """The card as a table."""
    from rich.markup import escape
    from rich.table import Table

    from dprm.evaluate.seeds import in_words

    extra = [metric.name for metric in card.metrics if metric.name != "reward"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("order", overflow="fold", min_width=12)
    for column in ("reward", "difference", "95 % of it", *map(escape, extra), "calls", "changed", "ms"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, arm in card.arms.items():
        bold = "bold " if arm.policy is not None and arm.ablates is None else ""
        table.add_row(escape(name), *_numbers(arm, extra), style=(bold + _style(arm)).strip())
    console = terminal()
    seeds = f"seed {card.seeds[0]}" if len(card.seeds) == 1 else f"{len(card.seeds)} decode seeds from {card.seeds[0]}"
    about = f" ({card.variant})" if card.variant else ""
    console.print(
        f"{card.host}{about}: {card.count} problems of {card.split}, budget {card.budget}, {seeds}", markup=False
    )
    kind = "paired" if card.paired else "of independent samples"
    console.print(f"Differences are {kind}, to {card.reference}; ms a problem.\n", markup=False)
    console.print(table)
    for entry in card.notes.get("seeds", []):
        console.print(f"\n{in_words(entry, card.reference)}", markup=False, highlight=False)
    if card.verdict is not None and card.verdict["arm"] is not None:
        console.print(f"\n{card.verdict['arm']}: {card.verdict['verdict']} ({card.verdict['reason']})", markup=False)


def _numbers(arm: Arm, metrics: list[str]) -> list[str]:
    delta = interval = ""
    if arm.delta is not None and arm.delta_low is not None and arm.delta_high is not None:
        delta, interval = f"{arm.delta:+.3f}", f"{arm.delta_low:+.3f} … {arm.delta_high:+.3f}"
    measured = (f"{arm.metrics[name].mean:.3f}" if name in arm.metrics else "" for name in metrics)
    costs = f"{arm.nfe:.1f}", f"{arm.changed:.0%}", f"{1000 * arm.seconds:.0f}"
    return [f"{arm.mean:.3f}", delta, interval, *measured, *costs]


def _style(arm: Arm) -> str:
    if arm.delta_low is None or arm.delta_high is None:
        return ""
    return "green" if arm.delta_low > 0 else "red" if arm.delta_high < 0 else ""
