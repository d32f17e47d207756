"""Engines of a few lines with the signatures of real ones: they choose by confidence, each in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy
import torch

from tests.contrib.engines import MASK


def transfer_index(logits, temperature, remasking, mask_index, x, num_transfer_tokens, threshold=None):
    """The one of NeMo AutoModel and Fast-dLLM: drawn tokens, and which are committed."""
    tokens = torch.where(mask_index, logits.argmax(-1), x)
    sure = logits.softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    confidence = torch.where(mask_index, sure, -torch.inf)
    taken = torch.zeros_like(mask_index)
    for row, count in enumerate(num_transfer_tokens):
        taken[row, confidence[row].topk(int(count)).indices] = True
    return tokens, taken & mask_index if threshold is None else taken & (confidence > threshold)


def batched_remask(logits, input_draft, mask_token_id, threshold, temperature=0.0, use_float64=False, out=None):
    """The one of vLLM's dllm-plugin: all above a threshold that adapts, so that one is."""
    sure, tokens = logits.float().softmax(-1).max(-1)
    masked = (input_draft == mask_token_id) & (tokens != mask_token_id)
    confidence = torch.where(masked, sure, -torch.inf)
    edge = (confidence.amax(-1, keepdim=True) - 1e-5).clamp(max=threshold)
    taken = masked & (confidence >= edge)
    draft = torch.where(taken, tokens, input_draft)
    draft = draft if out is None else out.copy_(draft)
    return draft, (draft != mask_token_id).all(-1), taken.sum(-1)


@dataclass(frozen=True)
class StepResult:
    """What a `RemaskingPolicy` gives."""

    committed_token_ids: tuple[int, ...]
    next_input_block: tuple[int, ...]


class SurestTwo:
    """A `RemaskingPolicy`: the two surest, ties to the left."""

    def apply(self, *, input_draft, logits=None, remasking_config=None):
        draft = torch.tensor(list(input_draft))
        sure, tokens = torch.as_tensor(logits).softmax(-1).max(-1)
        masked = draft == MASK
        order = sorted(masked.nonzero().flatten().tolist(), key=lambda place: (-float(sure[place]), place))
        draft[order[:2]] = tokens[order[:2]]
        after = tuple(draft.tolist())
        return StepResult(after, (MASK,) * len(after)) if MASK not in after else StepResult((), after)


class Unmasking:
    """The processor of LMDeploy: flat tensors, and a mask of three values."""

    def __init__(self, block: int):
        self.dllm_config = SimpleNamespace(dllm_block_length=block)

    def __call__(self, logits, input_ids, token_ids, dllm_mask):
        tokens = torch.where(dllm_mask == 0, token_ids, input_ids)
        block = self.dllm_config.dllm_block_length
        score = logits.softmax(-1).gather(-1, tokens.unsqueeze(-1)).view(-1, block)
        masked = (dllm_mask == 0).view(-1, block)
        index = torch.where(masked, score, 0.0).topk(2).indices
        taken = torch.zeros_like(masked).scatter(1, index, True) & masked
        return torch.where(taken.flatten(), 1, dllm_mask), tokens


class Decoder:
    """A `ParallelDecoder` of dInfer: writes into the text."""

    temperature, mask_id = 0.0, MASK

    def __init__(self, threshold=0.7):
        self.threshold, self.blocks = threshold, 0

    def block_init(self, block_x, block_id):
        self.blocks += 1

    def decode(self, logits, block_start, block_end, x):
        block = x[:, block_start:block_end]
        x[:, block_start:block_end] = batched_remask(logits, block, self.mask_id, self.threshold)[0]


def unmasking_fn(*, active_seq_idx, scores, probs, transfer_index_mask, block_mask, num_transfer_tokens):
    """The one of d2Cache: positions of every active sequence, in the order of their scores."""
    candidates = transfer_index_mask & block_mask
    confidence = torch.where(candidates, scores, -torch.inf)
    count = candidates.sum(1).clamp(max=num_transfer_tokens).tolist()
    return tuple(confidence[row].topk(many).indices for row, many in enumerate(count)), {"kept": 1}


def mlx_transfer_mask(confidence, unrevealed_mask, threshold, *, force_all=False):
    """The one of mlx-vlm, on arrays of numpy."""
    if force_all:
        return unrevealed_mask
    taken = unrevealed_mask & (confidence >= threshold)
    best = numpy.where(unrevealed_mask, confidence, -numpy.inf).argmax(-1)
    alone = unrevealed_mask.any(-1) & ~taken.any(-1)
    taken[alone, best[alone]] = True
    return taken
