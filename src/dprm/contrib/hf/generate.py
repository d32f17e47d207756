"""Generation: the prompts of a host answered under an order, step by step, and what is kept of it.

for each in generate(host, dprm.Order.from_policy(policy)):
    print(each.answer, each.step_map)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.hf.checkpoint import Checkpoint, checked, family_of
from dprm.contrib.hf.denoiser import ATTENTION, Length
from dprm.contrib.hf.host import TextHost
from dprm.decode.decoding import Decoding
from dprm.decode.loop import OnStep, advance, begin
from dprm.order.noise import mix, mix_rows
from dprm.order.order import Order


@dataclass(frozen=True)
class Generated:
    """One answer.

    Attributes:
        line: of the prompt, from 1. prompt, answer: texts.
        tokens: of the answer, to the end of its room; the mask where nothing was revealed behind the end of the text.
        step_map: the 1-based step of each; 0: it was given, or not revealed.
        kept: tokens up to the end of the text, which is not counted. calls: of the model.
    """

    line: int
    prompt: str
    answer: str
    tokens: list[int]
    step_map: list[int]
    kept: int
    calls: int

    def facts(self) -> dict[str, Any]:
        """As a line of a trace file."""
        return asdict(self)


def generate(
    host: TextHost, order: Order | None = None, *, seed: int = 0, rows: int = 8, on_step: OnStep | None = None
) -> Iterator[Generated]:
    """Answer all prompts of a host, in their order.

    Args:
        order: None: the family's own. rows: prompts decoded together; changes the time, not the result.
        on_step: called with every `Step`.
    """
    for start in range(0, len(host.asked), rows):
        problems = host.asked[start : start + rows]
        state = begin(problems.canvas, host.decoding, mix_rows(problems.key, mix(seed)), problems.context)
        result = advance(host.model(), state, order or host.decoding.order(), host.decoding, on_step=on_step)
        listed = zip(problems.facts, result.tokens.tolist(), result.step_map.tolist(), result.row_nfe.tolist())
        for asked, tokens, steps, calls in listed:
            answer = tokens[asked.first : asked.last]
            ends = [answer.index(end) for end in host.checkpoint.ends if end in answer]
            yield Generated(
                line=asked.line,
                prompt=asked.text,
                answer=host.text(tokens, asked),
                tokens=answer,
                step_map=steps[asked.first : asked.last],
                kept=min(ends, default=len(answer)),
                calls=calls,
            )


def custom_generate(
    tokenizer: Any,
    order: Order | None = None,
    *,
    family: str | None = None,
    length: int | None = None,
    block: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    **decoding: Any,
) -> Callable[..., Tensor]:
    """A function for `model.generate(..., custom_generate=…)`, of models that have `generate` of transformers.

    It takes input_ids [B,P], padded on the left with an attention_mask, and returns sequences [B,P+length].
    """
    wrapped: dict[int, Checkpoint] = {}

    # What is named here transformers would hand over twice.
    def run(model: Any, input_ids: Tensor, **others: Any) -> Tensor:
        attention_mask = others.get("attention_mask")

        if id(model) not in wrapped:
            kind = family_of(model.config, family)
            wrapped[id(model)] = checked("model", kind(model), tokenizer)
        checkpoint = wrapped[id(model)]
        denoiser = checkpoint.denoiser
        asked = denoiser.length_of(Length(length, block, steps))
        denoiser.settle(asked)
        attended = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        prompts = sorted(set(attended.sum(1).tolist()))
        room, *others_too = {denoiser.masks(prompt, asked.length or 0) for prompt in prompts}
        if others_too:
            raise ValueError(
                f"input_ids has prompts of {prompts} tokens, whose last blocks differ: generate them apart"
            )
        tail = input_ids.new_full((len(input_ids), room), checkpoint.mask_id)
        canvas = torch.cat([input_ids, tail], 1)
        attention = torch.cat([attended.bool(), torch.ones_like(tail).bool()], 1)
        context = None if bool(attention.all()) else {ATTENTION: attention}
        own = Decoding(
            mask_id=checkpoint.mask_id,
            **{**denoiser.decoding(asked, checkpoint.forbid, 1.0, 0, checkpoint.ends), **decoding},
        )
        result = advance(denoiser, begin(canvas, own, seed, context), order or own.order(), own)
        sequences = result.tokens[:, : input_ids.shape[1] + (asked.length or 0)]
        # Behind the end of a text nothing was revealed.
        return sequences.masked_fill(sequences == checkpoint.mask_id, checkpoint.pad_id)

    return run
