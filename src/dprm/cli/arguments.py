"""Arguments that several commands share, and the host that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dprm.host.engine import Engine, Load
    from dprm.host.host import Host
    from dprm.order.policy import Policy

HostName = Annotated[
    str,
    typer.Argument(help="A host of `dprm hosts`, or your own: hf:PATH, package.module:attribute or path.py:attribute."),
]
Difficulty = Annotated[
    str | None, typer.Option(help="How hard: dmpo numbers (3-6), puma clues (22-25), puma_words steps (4).")
]
Width = Annotated[int | None, typer.Option(min=1, help="Positions revealed a step; default the host's own.")]
Temperature = Annotated[float | None, typer.Option(min=0.0, help="Of the tokens; default the host's own.")]
PreferenceText = Annotated[
    str | None,
    typer.Option("--preference", help="Weights of benefits, such as qed=0.55,sa=0.45, or their name, such as B."),
]
Reward = Annotated[
    str | None,
    typer.Option(
        help="Your own reward of (tokens, facts): package.module:function or path.py:function; of hf:PATH also exact, "
        "number, tests, or a function of (text, line)."
    ),
]
Weights = Annotated[Path | None, typer.Option(help="A checkpoint of `dprm train` instead of the committed weights.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of problems, orders and intervals.")]
Rows = Annotated[int, typer.Option(min=1, help="Canvases decoded together; changes the time, not the result.")]
Device = Annotated[str, typer.Option(help="Where the model runs: cpu, cuda.")]
Compiled = Annotated[
    bool,
    typer.Option("--compile", help="Compile the model, in bfloat16: three times as fast, after up to half a minute."),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="Where work is done: serial, in this process, or ray, by workers.")
]
Workers = Annotated[int, typer.Option(min=1, help="With --engine ray: workers, each with a model of its own.")]
Address = Annotated[
    str | None, typer.Option(help="With --engine ray: of a running cluster, or auto; default one of its own here.")
]
Prompts = Annotated[Path | None, typer.Option(help="hf:PATH: a JSONL file of prompts; half fits, a quarter selects.")]
Length = Annotated[
    int | None, typer.Option(min=0, help="hf:PATH: masked positions behind a prompt; 0: it has its own.")
]
Block = Annotated[int | None, typer.Option(min=1, help="hf:PATH: positions of a block; default the family's own.")]
Steps = Annotated[int | None, typer.Option(min=1, help="hf:PATH: steps of an answer; default the family's own.")]
MaskId = Annotated[int | None, typer.Option(min=0, help="hf:PATH: the mask; default that of the checkpoint.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="hf:PATH: run the code that comes with the checkpoint.")
]
HeadWhereAsked = Annotated[
    bool,
    typer.Option(
        "--head-where-asked", help="hf:PATH: compute the output head only where something may be revealed: less memory."
    ),
]
ReuseBlocks = Annotated[
    bool,
    typer.Option("--reuse-blocks", help="hf:PATH: keep keys and values of blocks that are done; LLaDA-2.x, exact."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def writable(out: Path | None) -> None:
    """Say now, not after the work, that a result could not be written there."""
    import os

    if out is None:
        return
    if out.is_dir():
        raise ValueError(f"--out is {out}: a folder, expected a file")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out is {out}: it cannot be written there ({error.strerror})") from None
    if not os.access(out.parent, os.W_OK) or (out.exists() and not os.access(out, os.W_OK)):
        raise ValueError(f"--out is {out}: it cannot be written there")


def chosen_engine(name: str, workers: int, address: str | None, device: str, load: Load | None = None) -> Engine | None:
    """The engine that a command was asked for, None for this process; a worker of Ray asks for one GPU where the model
    runs on one.

    Args:
        load: makes the host, where that is not the business of the command's library call.
    """
    if name not in ("serial", "ray"):
        raise ValueError(f"--engine is {name!r}: expected serial or ray")
    if name == "serial":
        if workers > 1 or address is not None:
            raise ValueError(f"--{'address' if address else 'workers'} is for --engine ray")
        return None
    from functools import partial

    from dprm.cli.terminal import say

    try:
        from dprm.contrib.ray import Ray
    except ImportError as error:
        raise ValueError(f'{error}: install it with `pip install "dprm[ray]"`') from None
    gpus = 1.0 if device.startswith("cuda") else 0.0
    engine = Ray(workers, address, gpus=gpus, on_wait=partial(say, err=True))
    return engine if load is None else engine.of(load)


def chosen_host(
    name: str,
    *,
    device: str = "cpu",
    compiled: bool = False,
    weights: Path | None = None,
    difficulty: str | None = None,
    width: int | None = None,
    temperature: float | None = None,
    preference: str | None = None,
    reward: str | None = None,
    **settings: Any,
) -> Host:
    """The host that a command was asked for.

    Args:
        settings: of a checkpoint, `hf:PATH`; None and False: not said.
    """
    from dprm.decode.counts import Fixed
    from dprm.host.device import checked_device
    from dprm.host.finding import scheme_of
    from dprm.host.metrics import Preference
    from dprm.host.variants import with_reward
    from dprm.hosts import load

    checked_device(device)
    said = {setting: value for setting, value in settings.items() if value is not None and value is not False}
    if scheme_of(name) is not None:
        # It judges texts, not tokens, and reads its reward itself.
        said, reward = {"prompts": None, **said, "reward": reward}, None
    host = load(name, device, compiled, weights, **said)
    if difficulty is not None:
        host = host.at(difficulty)
    if reward is not None:
        host = with_reward(host, reward)
    if width is not None:
        host = host.with_decoding(count=Fixed(width))
    if temperature is not None:
        host = host.with_decoding(temperature=temperature)
    if preference is None:
        return host
    return host.with_preference(host.preferences.get(preference) or Preference.read(preference))


def shipped_policy(host: Host) -> Policy | None:
    """The policy among the committed weights that was fitted for this preference and variant, if there is one."""
    from dprm.host import weights
    from dprm.host.metrics import Preference
    from dprm.order.policy import Policy

    asked = dict(host.preference.weights)
    for path in sorted(weights.folder().glob(f"{host.name}*.dprm")):
        policy = Policy.load(path)
        stored, variant = policy.notes.get("preference", ""), policy.notes.get("variant", "")
        fits = "=" in stored and variant == host.variant and dict(Preference.read(stored).weights) == asked
        if fits and policy.guidance > 0:
            return policy
    return None
