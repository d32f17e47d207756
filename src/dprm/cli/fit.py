"""`dprm fit`: learn an order from terminal rewards, and choose whether it is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.failure import clear_errors


def fit(
    host: Annotated[str, typer.Argument(help="A host of `dprm hosts`.")],
    estimator: Annotated[
        str, typer.Option(help="head, leaning, branched, onpolicy, montecarlo or policy_gradient; several with commas.")
    ] = "head",
    paths: Annotated[
        int, typer.Option(min=64, help="Continuations or rollouts that each estimator may take: the price of the fit.")
    ] = 10_000,
    select: Annotated[int, typer.Option(min=2, help="Problems of the select split that choose the guidance.")] = 1000,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Problems of the fit split at most; default as many as the paths need.")
    ] = None,
    guidance: Annotated[
        str | None, typer.Option(help="Guidances to try, with commas; default those of the estimator.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The policy file; default runs/HOST.dprm.")] = None,
    difficulty: Annotated[
        str | None, typer.Option(help="How hard: dmpo numbers (3-6), puma clues (22-25), puma_words steps (4).")
    ] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Positions revealed a step; default the host's own.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    rows: Annotated[int, typer.Option(min=1, help="Canvases decoded together; changes the time, not the result.")] = 64,
    device: Annotated[str, typer.Option(help="Where the model runs: cpu, cuda.")] = "cpu",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the model: three times as fast on a GPU, after half a minute.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the policy's header and the account as JSON.")] = False,
) -> None:
    """Learn a **policy** on the fit split and choose its guidance on the select split, 0 included.

    `head` and `branched` force alternatives at states that the decoder visits and credit the difference; `leaning` is
    where a `head` starts, the host's order leaning on one feature, such as left to right; `onpolicy` is the paper's
    Algorithm 1; `montecarlo` asks continuations of every prompt and pays for them there, so it is taken only where
    nothing else is; `policy_gradient` is the peer. A setting is taken over the host's own order only if its paired
    interval, corrected for all that was tried, is above 0. An interrupted fit goes on where it was. Beside the policy
    lies the account of the choice (.account.json). Look at `test` once, with `dprm compare`.
    """
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import Progress

    from dprm.evaluate.protocol import settle
    from dprm.fit import estimator as plan_of
    from dprm.fit.cost import Cost
    from dprm.hosts import load

    path = out or Path("runs") / f"{host}.dprm"
    with clear_errors("fit"):
        chosen = load(host, device, compiled)
        if difficulty is not None:
            chosen = chosen.at(difficulty)
        plans = {name.strip(): plan_of(name.strip(), paths, width, seed, rows) for name in estimator.split(",")}
        given = None if guidance is None else tuple(float(number) for number in guidance.split(","))
        policies = {}
        with Progress(console=Console(stderr=True), transient=True) as bar:
            for name, plan in plans.items():
                task = bar.add_task(name, total=plan.rounds)

                def on_round(done: int, number: float, task: int = task, name: str = name) -> None:
                    bar.update(task, completed=done, description=f"{name} {number:+.4f}")  # type: ignore[arg-type]

                fitted = path.with_name(f"{path.stem}.{name}.dprm")
                posed = chosen.problems("fit", min(plan.prompts, limit or plan.prompts), seed)
                policies[name] = plan.estimator.fit(chosen, posed, fitted, on_round)
            chosen_on = chosen.problems("select", select, seed)
            tasks: dict[str, int] = {}

            def on_batch(setting: str, done: int) -> None:
                if setting not in tasks:
                    tasks[setting] = bar.add_task(setting, total=len(chosen_on))
                bar.update(tasks[setting], completed=done)  # type: ignore[arg-type]

            policy, account = settle(
                chosen,
                chosen_on,
                policies,
                {name: given or plan.guidances(policies[name]) for name, plan in plans.items()},
                width=width,
                rows=rows,
                seed=seed,
                folder=path.with_name(f"{path.stem}.select"),
                on_batch=on_batch,
            )
        policy.save(path)
        account.save(path.with_suffix(".account.json"))
    if as_json:
        header = {**policy.header, "digest": policy.digest}
        typer.echo(json.dumps({"policy": header, "account": asdict(account)}, indent=2, ensure_ascii=False))
        return
    for name, fitted_policy in policies.items():
        typer.echo(f"{name} took {Cost.of_notes(fitted_policy.notes)}")
    for line in account.lines():
        typer.echo(line)
    typer.echo(f"{path}: digest {policy.digest[:16]}; try it with `dprm compare {host} --policy {path}`")
