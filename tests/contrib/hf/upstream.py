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
