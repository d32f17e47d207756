"""dllm, and every sampler that picks its positions with `torch.topk(confidence, k)`, −inf where nothing is masked.

Samplers of this kind have no hook; the order is a call in the middle of a long function. What is replaced is the name
`torch` in their module: a view of torch whose `topk` asks the policy. Only confidence is seen there, so a policy has to
be a table over confidence. Calls for the smallest, and over a vocabulary, as in truncated sampling, pass through.

The hierarchical search of Prism (`HTSSampler`) is reached in the same way: it gives the confidence of what is masked
alone, and keeps its threshold, its pruning and its own order of remasking.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector


class _View:
    """torch, but for `topk`."""

    def __init__(self, selector: Selector, block: int):
        self._selector = selector
        self._block = block
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def topk(self, input: Tensor, k: int | Tensor, *args: Any, **named: Any) -> Any:
        """As `torch.topk`; along the last dimension of one row [L] or of rows [B,L] of confidence."""
        own = torch.topk(input, k, *args, **named)  # type: ignore[arg-type]
        of_vocabulary = input.dim() > 2 or input.shape[-1] == self._selector.vocabulary
        if self._selector.idle or of_vocabulary or named.get("largest") is False:
            return own
        rows = input if input.dim() == 2 else input.unsqueeze(0)
        index = own.indices if input.dim() == 2 else own.indices.unsqueeze(0)
        candidates = rows > -torch.inf
        left = candidates.sum(1)
        names = tuple(str(row) for row in range(len(rows)))
        turn = torch.full_like(left, self._calls)
        self._calls += 1
        requests = Requests(names, torch.zeros_like(left), torch.full_like(left, self._block), turn)
        mine = torch.zeros_like(candidates).scatter(1, index, True)
        chosen = self._selector.select(mine, rows, candidates, requests)
        # As many as before in every row: those that were chosen first, and then what the row had no candidates for.
        rank = chosen.int() * 2 + (mine & ~candidates)
        places = rank.sort(dim=1, descending=True, stable=True).indices[:, : index.shape[1]]
        places = torch.where((chosen == (mine & candidates)).all(1, keepdim=True), index, places)
        places = places if input.dim() == 2 else places[0]
        return torch.return_types.topk((input.gather(-1, places), places))


@contextmanager
def attached(module: Any, selector: Selector, block: int) -> Iterator[None]:
    """Have a module's sampler choose by a policy.

    Args:
        module: where the sampler is written. block: length of a block, of which the phase of a cell is a share.
    """
    if selector.vocabulary is None:
        raise ValueError("selector has no vocabulary: here it tells confidence from logits")
    if selector.order.head is not None:
        raise ValueError("this sampler shows only confidence: a head needs logits; use a policy with a table")
    with replaced(module, "torch", _View(selector, block)):
        yield
