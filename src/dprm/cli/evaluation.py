"""`dprm eval`: a checkpoint under several orders in lm-evaluation-harness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.arguments import (
    AsJson,
    Block,
    Device,
    HeadWhereAsked,
    Length,
    MaskId,
    ReuseBlocks,
    Rows,
    Seed,
    Steps,
    TrustRemoteCode,
    writable,
)
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def evaluation(
    model: Annotated[str, typer.Option(help="A folder of `save_pretrained`, or a model of the local cache.")],
    tasks: Annotated[str, typer.Option(help="Tasks of the harness that generate, with commas, such as gsm8k.")],
    orders: Annotated[str, typer.Option(help="Signals, with commas; `host` is the family's own order.")] = "host",
    policy: Annotated[
        list[Path] | None, typer.Option(help="A policy of `dprm fit`; several times for several.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Documents of every task; default all.")] = None,
    shots: Annotated[int | None, typer.Option(min=0, help="Examples before each; default those of the task.")] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Prompts through the tokenizer's chat template.")] = False,
    folder: Annotated[Path | None, typer.Option(help="A folder with tasks of your own.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write everything as one JSON file.")] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="Of the tokens; 0: the most probable ones.")] = 0.0,
    hold_end: Annotated[bool, typer.Option("--hold-end", help="Hold the end of the text back.")] = False,
    length: Length = None,
    block: Block = None,
    steps: Steps = None,
    mask_id: MaskId = None,
    trust_remote_code: TrustRemoteCode = False,
    head_where_asked: HeadWhereAsked = False,
    reuse_blocks: ReuseBlocks = False,
    seed: Seed = 0,
    rows: Rows = 8,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Evaluate a **Hugging Face checkpoint** with lm-evaluation-harness: several orders from one load.

    With every order stand the digests of its policy and of the documents, and output tokens per model call; tokens
    behind the end of an answer are not counted. Needs `pip install "dprm[eval]"`.
    """
    import json

    import dprm
    from dprm.contrib.hf.checkpoint import load

    with clear_errors("eval"):
        writable(out)
        from dprm.contrib.hf.harness import evaluate

        names = [name.strip() for name in orders.split(",") if name.strip()]
        chosen = {name: None if name == "host" else dprm.Order(signal=name) for name in names}
        for path in policy or []:
            if path.stem in chosen:
                raise ValueError(f"two orders are called {path.stem!r}: rename the policy {path}")
            chosen[path.stem] = dprm.Order.from_policy(dprm.Policy.load(path))
        checkpoint = load(model, mask_id=mask_id, trust_remote_code=trust_remote_code, device=device)
        said = evaluate(
            checkpoint,
            chosen,
            [name.strip() for name in tasks.split(",")],
            limit=limit,
            shots=shots,
            chat=chat,
            folder=folder,
            seed=seed,
            rows=rows,
            length=length,
            block=block,
            steps=steps,
            temperature=temperature,
            hold_end=hold_end,
            head_where_asked=head_where_asked,
            reuse_blocks=reuse_blocks,
        )
        text = json.dumps(said, indent=2, ensure_ascii=False, default=str)
        if out is not None:
            out.write_text(text + "\n")
    if as_json:
        say(text)
        return
    for name, told in said["orders"].items():
        for task, numbers in told["results"].items():
            plain = ", ".join(f"{metric} {value:.3f}" for metric, value in numbers.items() if isinstance(value, float))
            count = told["documents"][task]["count"]
            say(f"{name}, {task}: {plain}; {count} documents, {told['tokens per call']:.2f} tokens a call")
