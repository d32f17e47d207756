"""DPLM, DPLM-2 and DPLM-2 Bit: `_reparam_decoding` in the order of a policy; visible positions compete at each step.

    visible(t) = the positions of each modality with the largest scores, as many as the schedule leaves visible

A position that stays visible keeps its token; one that becomes visible takes the new one. Scores are log-probabilities;
those of a structure token are sums over its bits, so that its confidence is their geometric mean. Shapes: B rows, L
positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch


@contextmanager
def attached(model: Any, selector: Selector, bits: int = 13) -> Iterator[Watch]:
    """Have a model decode in the order of a policy.

    Args:
        bits: over how many the score of a structure token is a sum; 1 for models without a bit head.
    """
    own_decoding, watch = model._reparam_decoding, Watch()
    signature = inspect.signature(own_decoding)

    def decoding(*args: Any, **named: Any) -> tuple[Tensor, Tensor, Tensor]:
        given = signature.bind(*args, **named).arguments
        before = given["output_tokens"].clone(), given["output_scores"].clone()
        masked = given["xt_neq_x0"].clone()
        result: tuple[Tensor, Tensor, Tensor] = own_decoding(*args, **named)
        if selector.idle:
            return result
        if not selector.silent and "deterministic" not in given["decoding_strategy"]:
            remedy = "its noise is not shown, and an order without it would be another comparison; use deterministic"
            raise ValueError(f"decoding_strategy is {given['decoding_strategy']!r}: {remedy}")
        hidden, tokens, scores = result
        progress = torch.full((len(hidden),), given["t"] / given["max_step"], device=hidden.device)
        for positions, mask_id, size in _modalities(model, given, bits):
            probability = (given["cur_scores"] / size).exp()
            visible = selector.select(
                positions & ~hidden,
                probability,
                positions,
                watch.mixed(positions),
                score=given["cur_scores"],
                progress=progress,
            )
            appears = visible & masked
            stays = visible & ~masked
            for now, fresh, earlier, off in (
                (tokens, given["cur_tokens"], before[0], mask_id),
                (scores, given["cur_scores"], before[1], -torch.inf),
            ):
                shown = torch.where(appears, fresh, torch.where(stays, earlier, now.new_full((), off)))
                now.copy_(torch.where(positions, shown, now))
            hidden = torch.where(positions, ~visible, hidden)
        return hidden, tokens, scores

    with replaced(model, "_reparam_decoding", decoding):
        yield watch


def _modalities(model: Any, given: dict[str, Any], bits: int) -> list[tuple[Tensor, Any, int]]:
    """For each kind of token: where it is, its mask, and over how many numbers its score is a sum."""
    positions = given["non_special_sym_mask"]
    if "type_ids" not in given:
        return [(positions, given["noise"], 1)]
    kind = given["type_ids"]
    return [
        (positions & (kind == model.aa_type), model.aa_mask_id, 1),
        (positions & (kind == model.struct_type), model.struct_mask_id, bits),
    ]
