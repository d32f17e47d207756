"""Answers of a checkpoint, step by step in the terminal: what `dprm generate --model` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprm.cli.arguments import writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say, terminal

if TYPE_CHECKING:
    from rich.text import Text

    from dprm.contrib.hf.host import TextHost
    from dprm.decode.loop import Step


def answered(
    model: str,
    prompt: list[str] | None,
    prompts: Path | None,
    *,
    chat: bool,
    policy: Path | None,
    signal: str | None,
    temperature: float,
    top_p: float,
    top_k: int,
    hold_end: bool,
    trace: Path | None,
    quiet: bool,
    rows: int,
    length: int | None,
    block: int | None,
    steps: int | None,
    width: int | None,
    mask_id: int | None,
    trust_remote_code: bool,
    head_where_asked: bool,
    reuse_blocks: bool,
    seed: int,
    device: str,
) -> None:
    """Answer prompts under a learned order or the family's own."""
    import json

    import dprm
    from dprm.contrib.hf.generate import generate as answers
    from dprm.contrib.hf.host import host as opened
    from dprm.decode.counts import Fixed
    from dprm.fit.purpose import misfits

    with clear_errors("generate"):
        writable(trace)
        if (prompts is None) == (not prompt):
            raise ValueError("expected --prompt TEXT, once or several times, or --prompts FILE.jsonl")
        if policy is not None and signal is not None:
            raise ValueError("--policy and --signal are both orders: give one")
        listed: Any = prompts
        if prompt:
            listed = [
                {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text} for text in prompt
            ]
        host = opened(
            model,
            listed,
            length=length,
            block=block,
            steps=steps,
            mask_id=mask_id,
            trust_remote_code=trust_remote_code,
            head_where_asked=head_where_asked,
            reuse_blocks=reuse_blocks,
            hold_end=hold_end,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            device=device,
        )
        if width is not None:
            host = host.with_decoding(count=Fixed(width))
        order, digest = None if signal is None else dprm.Order(signal=signal), None
        if policy is not None:
            stored = dprm.Policy.load(policy)
            for line in misfits(stored.notes, host):
                say(f"{policy}: {line}", err=True)
            order, digest = dprm.Order.from_policy(stored), stored.digest
        with _live(host, quiet) as on_step:
            made = list(answers(host, order, seed=seed, rows=rows, on_step=on_step))
        if trace is not None:
            said = {"model": model, "policy": digest, "signal": signal, "seed": seed, "temperature": temperature}
            lines = [json.dumps({**each.facts(), **said}, ensure_ascii=False) for each in made]
            trace.write_text("".join(f"{line}\n" for line in lines))
    for each in made:
        say(each.answer)
    kept, calls = sum(each.kept for each in made), sum(each.calls for each in made)
    answered = "1 answer" if len(made) == 1 else f"{len(made)} answers"
    say(f"{answered}, {kept:,} tokens in {calls:,} model calls: {kept / calls:.2f} a call", err=True)


@contextmanager
def _live(host: TextHost, quiet: bool) -> Iterator[Callable[[Step], None] | None]:
    """Shows every step of the prompts that are decoded together; nothing where nobody looks."""
    from rich.console import Group
    from rich.live import Live

    console = terminal(err=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        shown: dict[int, Text] = {}

        def show(step: Step) -> None:
            rows, tokens = step.state.row.tolist(), step.state.tokens.tolist()
            new, masked = step.reading.tokens.tolist(), step.choice.mask.tolist()
            given = step.state.given.tolist()
            for place, row in enumerate(rows):
                shown[row] = canvas(host, tokens[place], new[place], masked[place], given[place])
            live.update(Group(*(shown[row] for row in sorted(shown))), refresh=True)

        yield show


def canvas(host: TextHost, tokens: list[int], new: list[int], chosen: list[bool], given: list[bool]) -> Text:
    """One canvas after a step: prompt dim, what is new bold, what is hidden a dot.

    Args:
        tokens: before the step. new: if all were revealed. chosen: what is revealed. given: the prompt.
    """
    from rich.text import Text

    text = Text()
    for before, after, now, prompt in zip(tokens, new, chosen, given):
        style = "dim" if prompt or (before == host.decoding.mask_id and not now) else "bold green" if now else ""
        text.append(host.show(after if now else before), style=style)
    return text
