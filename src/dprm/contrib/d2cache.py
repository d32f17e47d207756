"""d2Cache: its `unmasking_fn`, which gives positions for every active sequence. Shapes: B active rows, L positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch

Unmasking = Callable[..., tuple[tuple[Tensor, ...], dict[str, Any]]]


def ordered(unmasking_fn: Unmasking, selector: Selector, watch: Watch | None = None) -> Unmasking:
    """The same function, giving as many positions as it would, chosen by a policy."""
    watch = watch or Watch()

    def choose(*, scores: Tensor, probs: Tensor, transfer_index_mask: Tensor, block_mask: Tensor, **named: Any) -> Any:
        own, extra = unmasking_fn(
            scores=scores, probs=probs, transfer_index_mask=transfer_index_mask, block_mask=block_mask, **named
        )
        if selector.idle:
            return own, extra
        selector.expect_vocabulary(probs)
        candidates = transfer_index_mask & block_mask
        mask = torch.zeros_like(candidates)
        for row, index in enumerate(own):
            mask[row, index.long()] = True
        requests = watch.mixed(candidates, block_mask.sum(1), named.get("active_seq_idx"))
        if selector.looks_at_logits:
            chosen = selector.select(mask, None, candidates, requests, logits=probs.float().clamp(min=1e-30).log())
        else:
            chosen = selector.select(mask, scores, candidates, requests)
        # The engine has the numbers of positions on the host: with them nothing has to be looked at.
        places = chosen.int().sort(dim=1, descending=True, stable=True).indices
        same = (chosen == mask).all(1)
        picked = []
        for row, index in enumerate(own):
            picked.append(torch.where(same[row], index.long(), places[row, : len(index)]))
        return tuple(picked), extra

    return choose


@contextmanager
def attached(module: Any, selector: Selector) -> Iterator[Watch]:
    """Have the generation of a module, such as `src.generation.vanilla`, choose by a policy."""
    watch, generate_step = Watch(), module.generate_step

    def step(*args: Any, unmasking_fn: Unmasking, **named: Any) -> Any:
        return generate_step(*args, unmasking_fn=ordered(unmasking_fn, selector, watch), **named)

    with replaced(module, "generate_step", step):
        yield watch
