"""Keys and values of blocks that are done, kept from call to call where that is exact: in block-causal models.

A block there sees itself and what stands before it. Once it is revealed, its keys and values never change; and what
stands behind the block at work changes nothing. So a call computes from the first block that is not kept to the block
at work:

    first call    prompt and first block;    a new block    the one that was finished, and the new one;    else    one

What is kept is found again by its tokens, row by row, so rows may leave, be forked, or begin anew. To see how much is
kept, a call waits for an accelerator once. Shapes: B rows, L positions, Q of them computed, P of them kept, H heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

# (tokens [B,Q], bias [B,1,Q,P+Q], positions [B,Q], cache) → [B,Q,…]
Call = Callable[[Tensor, Tensor, Tensor, Any], Tensor]


class Layers(DynamicCache):
    """A cache as the layers of a model take it: what is kept [B,H,P,D] comes first, what is new is noted."""

    def __init__(self, kept: list[tuple[Tensor, Tensor]], length: int):
        super().__init__()
        self.kept, self.length = kept, length
        self.fresh: list[tuple[Tensor, Tensor]] = []

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *others: Any, **named: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values [B,H,P+Q,D] that a layer attends to; layers come one after the other."""
        self.fresh.append((key_states, value_states))
        if not self.length:
            return key_states, value_states
        keys, values = self.kept[layer_idx]
        return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)

    def get_seq_length(self, *others: Any, **named: Any) -> int:
        return self.length


class KeptBlocks:
    """Keys and values of the rows of the last call.

    Args:
        mask_id: what hides a position; the block at work has the first of a row. size: positions of a block.
    """

    def __init__(self, mask_id: int, size: int):
        self.mask_id, self.size = mask_id, size
        # Of the last call: tokens and attention [B,L], positions whose keys are final [B,L], buffers [B,H,L,D] a layer.
        self._tokens: Tensor | None = None
        self._attention: Tensor
        self._done: Tensor
        self._layers: list[tuple[Tensor, Tensor]] = []

    def __call__(self, call: Call, tokens: Tensor, attention: Tensor, place: Tensor, dtype: torch.dtype) -> Tensor:
        """What the model gives at the block at work [B,L,…]; zeros elsewhere, but for what was computed on the way.

        Args:
            attention: [B,L] bool, False at padding. place: [B,L] of every token in its text. dtype: of the bias.
        """
        rows, width = tokens.shape
        block = place // self.size
        masked = (tokens == self.mask_id) & attention
        current = torch.where(masked, block, block.amax(1, keepdim=True)).amin(1, keepdim=True)
        start = attention.int().argmax(1)
        first = torch.where(attention & (block == current), torch.arange(width, device=tokens.device), width).amin(1)
        row, known = self._found(tokens, attention)
        known = torch.minimum(start + (known - start).clamp(min=0) // self.size * self.size, first)
        end = (first + self.size).clamp(max=width)
        span = int((end - known).max())
        begin = (end - span).clamp(min=0)
        index = begin.unsqueeze(1) + torch.arange(span, device=tokens.device)
        length = int(begin.max()) if self._layers else 0
        seen = self._seen(attention, block, begin, index, row, length)
        bias = torch.zeros(seen.shape, dtype=dtype, device=tokens.device).masked_fill_(~seen, -torch.inf)
        self._take(row)
        cache = Layers([(k[:, :, :length], v[:, :, :length]) for k, v in self._layers], length)
        output = call(tokens.gather(1, index), bias.unsqueeze(1), place.gather(1, index), cache)
        self._keep(cache.fresh, index, width)
        self._tokens, self._attention, self._done = tokens.clone(), attention, attention & (block < current)
        everywhere = index.unsqueeze(2).expand(-1, -1, output.shape[-1])
        return output.new_zeros(rows, width, output.shape[-1]).scatter_(1, everywhere, output)

    def _found(self, tokens: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
        """For each row [B] the row of the last call with the longest beginning in common, and where that ends [B]."""
        nothing = torch.zeros(len(tokens), dtype=torch.int64, device=tokens.device)
        if self._tokens is None or self._tokens.shape[1] != tokens.shape[1]:
            self._tokens, self._layers = None, []
            return nothing, nothing
        row, known = nothing, nothing.clone()
        for number in range(len(tokens)):
            same = (self._tokens == tokens[number]) & self._done | ~attention[number]
            same = same & (self._attention == attention[number]).all(1, keepdim=True)
            longest = same.long().cumprod(1).sum(1)
            best = longest.argmax()
            row[number], known[number] = best, longest[best]
        return row, known

    def _seen(self, attention: Tensor, block: Tensor, begin: Tensor, index: Tensor, row: Tensor, length: int) -> Tensor:
        """[B,Q,P+Q] bool, what each position that is computed attends to."""
        span = index.shape[1]
        own, here = block.gather(1, index), attention.gather(1, index)
        new = (own.unsqueeze(2) >= own.unsqueeze(1)) & here.unsqueeze(1)
        # Padding sees itself, or it would see nothing.
        new = new | torch.eye(span, dtype=torch.bool, device=index.device)
        if not length:
            return new
        before = torch.arange(length, device=index.device) < begin.unsqueeze(1)
        kept = self._done[row][:, :length] & attention[:, :length] & before
        return torch.cat([kept.unsqueeze(1).expand(-1, span, -1), new], 2)

    def _take(self, row: Tensor) -> None:
        """Bring what is kept into the order of the rows of this call."""
        if self._layers and not torch.equal(row, torch.arange(len(self._layers[0][0]), device=row.device)):
            self._layers = [(keys[row], values[row]) for keys, values in self._layers]

    def _keep(self, fresh: list[tuple[Tensor, Tensor]], index: Tensor, width: int) -> None:
        """Write what was computed to its places."""
        if not self._layers:
            self._layers = [tuple(part.new_zeros(*part.shape[:2], width, part.shape[3]) for part in p) for p in fresh]  # type: ignore[misc]
        for kept, new in zip(self._layers, fresh, strict=True):
            for buffer, part in zip(kept, new, strict=True):
                buffer.scatter_(2, index[:, None, :, None].expand_as(part), part)
