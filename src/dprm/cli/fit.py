"""`dprm fit`: learn an order from terminal rewards, and choose whether it is taken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

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
from dprm.cli.terminal import say, say_json


def fit(
    host: Annotated[
        str | None,
        typer.Argument(help="A host of `dprm hosts`, or your own: package.module:attribute or path.py:attribute."),
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="head, leaning, branched, sets, onpolicy, montecarlo, several with commas; or paper.")
    ] = "head",
    calls: Annotated[
        int, typer.Option(min=64, help="Model calls that each estimator may take: the price of the fit.")
    ] = 50_000,
    select: Annotated[int, typer.Option(min=2, help="Problems of the select split that choose the guidance.")] = 1000,
    guidance: Annotated[
        str | None, typer.Option(help="Guidances to try, with commas; default those of the estimator.")
    ] = None,
    phases: Annotated[int | None, typer.Option(min=1, help="Tables: phases of the decoding.")] = None,
    bins: Annotated[int | None, typer.Option(min=1, help="Tables: bins of confidence.")] = None,
    beta: Annotated[float | None, typer.Option(help="Tables: inverse temperature β.")] = None,
    gate: Annotated[str | None, typer.Option(help="Tables: T_warm,T_switch,N_ready.")] = None,
    baseline: Annotated[str | None, typer.Option(help="onpolicy: none, global, prompt or auto.")] = None,
    credit: Annotated[str | None, typer.Option(help="sets: difference, or terminal as in the paper.")] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Keeps what is done; fits of several preferences may share it. Default beside the policy."),
    ] = None,
    rule: Annotated[str | None, typer.Option(help="How the policy selects: top_m, shortlist_top_m, soft_bon.")] = None,
    out: Annotated[Path | None, typer.Option(help="The policy file; default runs/HOST.dprm.")] = None,
    problems: Annotated[
        Path | None, typer.Option(help="Your own problems: half of the file fits, a quarter selects, one is for test.")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Instead of a host: a folder of traces that an engine has written.")
    ] = None,
    rewards: Annotated[
        Path | None, typer.Option(help="With --traces: lines of JSON, request, reward and, if known, prompt.")
    ] = None,
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
    """Learn a **policy** on the fit split and choose its guidance on the select split, 0 included.

    `head` and `branched` force alternatives at states that the decoder visits and credit the difference; `leaning` is
    where a `head` starts, the host's order leaning on one feature, such as left to right; `sets` forces whole sets of
    positions and keeps every benefit, so that one calibration (`--work`) serves every preference; `onpolicy` is the
    paper's Algorithm 1; `paper` is that with the cells, gate, β and rule that the paper has on this host, without a
    baseline and at its own guidance whatever select says, for a row to compare with; `montecarlo` asks continuations
    of every prompt and pays for them there, so it is taken only where nothing else is. A setting is taken over the
    host's own order only if its interval, corrected for all that was tried, is above 0. An interrupted fit goes on
    where it was. Beside the policy lie the account of the choice (.account.json) and, of a head, its control
    (.shuffled.dprm). Look at `test` once, with `dprm compare`. A policy
    that is written into the folder of the committed weights is entered into its manifest.

    With `--traces` and `--rewards` an order is learned from what a served model has chosen, without a model call: a
    head where contrasts were written, a table otherwise.
    """
    import json
    from dataclasses import asdict
    from functools import partial

    from dprm.cli.progress import bars
    from dprm.evaluate.learn import fit_and_settle
    from dprm.evaluate.verdict import REGARDLESS
    from dprm.fit.cost import Cost
    from dprm.host import weights as committed
    from dprm.host.variants import with_problems
    from dprm.order.checks import check_one_of
    from dprm.order.rules import RULES

    asked: dict[str, Any] = {"difficulty": difficulty, "width": width, "temperature": temperature}
    asked |= {"preference": preference, "reward": reward, "weights": weights, "prompts": prompts, "length": length}
    asked |= {"block": block, "steps": steps, "mask_id": mask_id, "trust_remote_code": trust_remote_code or None}
    asked |= {"head_where_asked": head_where_asked or None, "reuse_blocks": reuse_blocks or None}
    with clear_errors("fit"):
        writable(out)
        if rule is not None:
            check_one_of("--rule", rule, RULES)
        if (traces is None) != (rewards is None) or (traces is None) == (host is None):
            raise ValueError("expected either a host, or --traces with --rewards")
        if traces is not None and rewards is not None:
            from_traffic(traces, rewards, out, guidance, beta, gate, baseline, rule, as_json)
            return
        assert host is not None
        load = partial(chosen_host, host, device=device, compiled=compiled, **asked)
        chosen = load()
        on = chosen_engine(engine, workers, address, device, load)
        path = out or Path("runs") / f"{chosen.name}.dprm"
        path.parent.mkdir(parents=True, exist_ok=True)
        if problems is not None:
            chosen, left_out = with_problems(chosen, problems)
            for line in left_out:
                say(f"left out: {problems}, {line}", err=True)
        settings: dict[str, Any] = {"phases": phases, "bins": bins, "beta": beta, "baseline": baseline}
        settings["credit"] = credit
        settings["gate"] = None if gate is None else _numbers("gate", gate, 3)
        with bars() as on_progress:
            fits, settled = fit_and_settle(
                chosen,
                [name.strip() for name in estimator.split(",")],
                calls,
                select=select,
                seed=seed,
                rows=rows,
                folder=work or path.with_name(f"{path.stem}.fit"),
                on=on,
                guidances=None if guidance is None else _numbers("guidance", guidance),
                rule=rule,
                on_progress=on_progress,
                settings={name: value for name, value in settings.items() if value is not None},
            )
        policy, account = settled.policy, settled.account
        policy.save(path)
        if settled.shuffled is not None:
            settled.shuffled.save(path.with_suffix(".shuffled.dprm"))
        account.save(path.with_suffix(".account.json"))
        if path.resolve().parent == committed.folder().resolve():
            taken = account.taken
            chosen_by = {} if taken is None else {"select_gain": taken.delta, "select_low": taken.low}
            spent = {"calls": Cost.of_notes(policy.notes).calls, "guidance": policy.guidance}
            committed.record(path, " ".join(["dprm", *sys.argv[1:]]), {**spent, **chosen_by})
    if as_json:
        header = {**policy.header, "digest": policy.digest}
        say_json(json.dumps({"policy": header, "account": asdict(account)}, indent=2, ensure_ascii=False))
        return
    for name, fitted in fits.items():
        say(f"{name} took {Cost.of_notes(fitted.policy.notes)}")
    for line in account.lines():
        say(line)
    if REGARDLESS in policy.notes:
        say(f"Deployed at guidance {policy.guidance:g} to be shown, not to be used: {policy.notes[REGARDLESS]}")
    say(f"{path}: digest {policy.digest[:16]}; try it with `{_compare(host, path, {**asked, 'problems': problems})}`")


def _compare(host: str, policy: Path, asked: dict[str, Any]) -> str:
    """The command that looks at the policy where it was fitted."""
    said = {name.replace("_", "-"): value for name, value in asked.items() if value is not None}
    options = [f"--{name}" if value is True else f"--{name} {value}" for name, value in said.items()]
    return " ".join(["dprm compare", host, *options, f"--policy {policy}"])


def from_traffic(
    traces: Path,
    rewards: Path,
    out: Path | None,
    guidance: str | None,
    beta: float | None,
    gate: str | None,
    baseline: str | None,
    rule: str | None,
    as_json: bool,
) -> None:
    """Learn from traces and rewards, and write policy and account."""
    import json
    from dataclasses import asdict

    from dprm.fit.traffic import learn

    named = {"beta": beta, "baseline": baseline, "rule": rule}
    settings: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if gate is not None:
        settings |= dict(zip(("warm", "switch", "ready"), _numbers("gate", gate, 3), strict=True))
    if guidance is not None:
        settings["guidance"] = _numbers("guidance", guidance, 1)[0]
    policy, account = learn(traces, rewards, **settings)
    path = out or Path("runs") / "traffic.dprm"
    path.parent.mkdir(parents=True, exist_ok=True)
    policy.save(path)
    account.save(path.with_suffix(".account.json"))
    if as_json:
        header = {**policy.header, "digest": policy.digest}
        say_json(json.dumps({"policy": header, "account": asdict(account)}, indent=2, ensure_ascii=False))
        return
    for line in account.lines():
        say(line)
    say(f"{path}: digest {policy.digest[:16]}")


def _numbers(name: str, text: str, count: int | None = None) -> tuple[float, ...]:
    """Numbers with commas."""
    from dprm.order.checks import check_number

    try:
        numbers = tuple(check_number(f"--{name}", float(part), 0) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--{name} is {text!r}: expected numbers from 0 with commas") from None
    if count is not None and len(numbers) != count:
        raise ValueError(f"--{name} is {text!r}: expected {count} numbers with commas")
    return numbers
