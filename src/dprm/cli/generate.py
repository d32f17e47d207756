"""`dprm generate`: answers of a host as a file of its field, or of a checkpoint step by step in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.answers import answered
from dprm.cli.arguments import (
    Block,
    Device,
    Difficulty,
    HeadWhereAsked,
    Length,
    MaskId,
    PreferenceText,
    ReuseBlocks,
    Seed,
    Steps,
    TrustRemoteCode,
    Weights,
    Width,
)
from dprm.cli.designs import designs
from dprm.cli.failure import clear_errors


def generate(
    host: Annotated[
        str | None, typer.Argument(help="A host that makes things, such as genmol; or give --model.")
    ] = None,
    text: Annotated[
        str | None, typer.Argument(help="HOST: what to make, where it takes words, such as a caption for omni.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="HOST: the file; its ending says the form, such as mols.sdf.")
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="HOST: how many to draw.")] = 100,
    model: Annotated[
        str | None, typer.Option(help="Instead: a folder of `save_pretrained`, or a model of the local cache.")
    ] = None,
    prompt: Annotated[list[str] | None, typer.Option(help="--model: a prompt; may be given several times.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="--model: a JSONL file of prompts instead.")] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="--model: prompts are messages, for the tokenizer's chat template.")
    ] = False,
    policy: Annotated[
        Path | None, typer.Option(help="A policy of `dprm fit`; default that which comes with HOST, or the own order.")
    ] = None,
    signal: Annotated[str | None, typer.Option(help="--model: an order by a signal instead, such as random.")] = None,
    preference: PreferenceText = None,
    difficulty: Difficulty = None,
    weights: Weights = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="--model: of the tokens; 0: the most probable.")] = 0.0,
    top_p: Annotated[
        float, typer.Option("--top-p", help="--model: draw from the smallest set that has this probability.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="--model: draw from at most so many; 0: all.")] = 0,
    hold_end: Annotated[
        bool, typer.Option("--hold-end", help="--model: reveal the end of the text when nothing else is left.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(help="--model: write a JSON line an answer: tokens, step map, calls.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="--model: do not show the steps.")] = False,
    length: Length = None,
    block: Block = None,
    steps: Steps = None,
    width: Width = None,
    mask_id: MaskId = None,
    trust_remote_code: TrustRemoteCode = False,
    head_where_asked: HeadWhereAsked = False,
    reuse_blocks: ReuseBlocks = False,
    seed: Seed = 0,
    rows: Annotated[int, typer.Option(min=1, help="Decoded together; changes the time, not the result.")] = 8,
    device: Device = "cpu",
) -> None:
    """**Generate** under a learned order: things of a host, such as molecules, or answers of a Hugging Face checkpoint.

    Of a host what is not valid or comes twice is left out, and said; the best by your preference come first:
    `dprm generate genmol --preference qed=0.55,sa=0.45 -n 100 --out mols.sdf`; some take words,
    `dprm generate omni "three red circles left of a blue square" --out picture.png`. Of a checkpoint answers are shown
    while they are revealed: `dprm generate --model words --policy words.dprm --prompt "..." --length 48`.
    """
    with clear_errors("generate"):
        if (host is None) == (model is None):
            raise ValueError("expected a HOST, such as genmol, or --model PATH")
        if host is not None and out is None:
            raise ValueError(f"HOST is {host}: give --out as well, the file to write, such as mols.sdf")
    if host is not None and out is not None:
        designs(
            host,
            out,
            text=text,
            count=count,
            policy=policy,
            preference=preference,
            difficulty=difficulty,
            weights=weights,
            seed=seed,
            rows=rows,
            device=device,
        )
    elif model is not None:
        answered(
            model,
            prompt,
            prompts,
            chat=chat,
            policy=policy,
            signal=signal,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            hold_end=hold_end,
            trace=trace,
            quiet=quiet,
            rows=rows,
            length=length,
            block=block,
            steps=steps,
            width=width,
            mask_id=mask_id,
            trust_remote_code=trust_remote_code,
            head_where_asked=head_where_asked,
            reuse_blocks=reuse_blocks,
            seed=seed,
            device=device,
        )
