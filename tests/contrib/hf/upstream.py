"""What the public generation of each family does, written from its meaning and one step after the other.

Where positions are equally sure, the leftmost is taken: `torch.topk`, which public code calls, promises no order there.
The mask is never an answer, where public code would leave a mask standing.
"""

import torch
import torch.nn.functional as F


def surest(confidence, eligible, count):
    """The places of the `count` surest eligible positions of one row."""
    ranked = sorted(eligible.nonzero().flatten().tolist(), key=lambda place: (-confidence[place].item(), place))
    return ranked[:count]


def seen(logits, mask):
    """Tokens and their softmax probabilities in the type of the model."""
    allowed = logits.clone()
    allowed[..., mask] = -torch.inf
    tokens = allowed.argmax(-1)
    return tokens, F.softmax(logits, -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def llada(model, prompt, attention, length, block, steps, mask):
    """Blocks one after the other; an even share of a block a step, the first steps one more."""
    rows, start = prompt.shape
    canvas = torch.cat([prompt, torch.full((rows, length), mask)], 1)
    attended = torch.cat([attention, torch.ones(rows, length, dtype=attention.dtype)], 1)
    share = steps // (length // block)
    for first in range(start, start + length, block):
        counts = [block // share + (step < block % share) for step in range(share)]
        for count in counts:
            tokens, confidence = seen(model(canvas, attention_mask=attended).logits, mask)
            for row in range(rows):
                eligible = canvas[row] == mask
                eligible[first + block :] = False
                for place in surest(confidence[row], eligible, count):
                    canvas[row, place] = tokens[row, place]
    return canvas


@torch.no_grad()
def dream(model, prompt, attention, length, steps, mask, eps=1e-3):
    """⌊n (1 − s/t)⌋ of the masked positions a step, a number that the batch shares; logits move by one."""
    canvas = F.pad(prompt, (0, length), value=mask)
    seen_by, places = "full", None
    if not attention.all():
        attended = F.pad(attention, (0, length), value=1)
        places = (attended.long().cumsum(-1) - 1).masked_fill(attended == 0, 1)
        hidden_keys = attended.bool()[:, None, None, :]
        seen_by = hidden_keys.expand(-1, 1, canvas.shape[1], -1)
    times = torch.linspace(1, eps, steps + 1)
    for step in range(steps):
        logits = model(canvas, seen_by, places).logits
        shifted = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        tokens, confidence = seen(shifted, mask)
        masked = canvas == mask
        mean = masked.sum() / len(canvas)
        count = int(mean * (1 - times[step + 1] / times[step])) if step < steps - 1 else int(mean)
        for row in range(len(canvas)):
            for place in surest(confidence[row], masked[row], count):
                canvas[row, place] = tokens[row, place]
    return canvas


@torch.no_grad()
def llada2(model, prompt, length, block, steps, mask, tau=0.95, eos=None):
    """One text; blocks from position 0; all above the threshold, or else an even share; to the block with an end."""
    start = prompt.shape[1]
    blocks = -(-(start + length) // block)
    seen_by = torch.tril(torch.ones(blocks, blocks)).repeat_interleave(block, 0).repeat_interleave(block, 1)
    seen_by = seen_by[None, None].log()
    canvas = torch.full((1, blocks * block), mask)
    canvas[:, :start] = prompt
    places = torch.arange(blocks * block).unsqueeze(0)
    for number in range(start // block, blocks):
        end = (number + 1) * block
        for step in range(steps):
            eligible = (canvas[0, :end] == mask) & (places[0, :end] >= end - block)
            if not eligible.any():
                break
            logits = model(canvas[:, :end], seen_by[..., :end, :end], places[:, :end]).logits
            tokens, confidence = seen(logits, mask)
            share = block // steps + (step < block % steps)
            sure = int((eligible & (confidence[0] > tau)).sum())
            for place in surest(confidence[0], eligible, sure if sure >= share else share):
                canvas[0, place] = tokens[0, place]
        if eos is not None and (canvas[0, start:end] == eos).any():
            break
    return canvas[:, : start + length]
