"""Fixed features of every position of a decision, for values that are linear in them.

    neighbours   what stands at i − r … i + r: its numbers and its aux state
    by state     confidence, −log(1 − confidence), entropy, log ratio, progress and the canvas means, each by aux state
    slopes       the numbers, each times progress and times the canvas means
    steps        whether the confidence reaches .2, .4, … .9999
    turns        whose turn it is (see below), by itself, times progress and times the canvas means
    place        the share of candidates to the left, and its square

Confidence order reveals all that is sure first and then many unsure positions together, each likely by itself and
unlikely with the others. At the same price an order may take a few unsure ones at a time and fill up with sure ones:

    turn = the ⌈U/T⌉ surest of the U candidates below a level, T steps being left;  first = the ⌈U/2T⌉ surest

A few thousand comparisons determine a linear value of some hundred such features, where a network of the same sight
would still learn them by heart. Shapes: B rows, L positions, A aux states, F features.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LEVELS = (0.9, 0.99, 0.999, 0.9999)
# What `paced` gives, by name.
TURNS = tuple(f"{turn} below {level:g}" for level in LEVELS for turn in ("turn", "first"))
# The numbers of a `Sight`: confidence, −log(1 − confidence), margin, entropy, log ratio to the surest candidate,
# candidate and the host's choice are those of a position by itself; progress, m and the turns follow.
OWN = 7
NUMBERS = OWN + 2 + len(TURNS)
_CONFIDENCE, _SURENESS, _ENTROPY, _RATIO, _PROGRESS, _TURN = 0, 1, 3, 4, 7, 9
STEPS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 0.995, 0.999, 0.9999)
_SLOPED = 5
LEFT = "share of candidates to the left"
_CHOICE = "host's choice"


def names(aux: int, reach: int) -> list[str]:
    """What every feature is, in their order; there are F of them."""
    own = ("confidence", "sureness", "margin", "entropy", "log ratio", "hidden", _CHOICE)
    states = [f"state {state}" for state in range(aux)]
    shifts = ["" if shift == 0 else f" {shift:+d}" for shift in range(-reach, reach + 1)]
    canvas = ("progress", "mean confidence", "mean entropy")
    return [
        *(f"{name}{shift}" for name in (*own, *states) for shift in shifts),
        *(f"{state} × {name}" for state in states for name in (own[0], own[1], own[3], own[4], *canvas)),
        *(f"{name} × {whole}" for name in own[:_SLOPED] for whole in canvas),
        *(f"confidence ≥ {step:g}" for step in STEPS),
        *TURNS,
        *(f"{turn} × {whole}" for turn in TURNS for whole in canvas),
        LEFT,
        "its square",
    ]


def echoes(aux: int, reach: int, width: int) -> list[bool]:
    """[F]: whether a feature only echoes what the host would take, `width` positions being revealed a step.

    Turns do where one position is: it is always the turn of the surest below a level, which the host takes next.
    """
    echoing = (*TURNS, _CHOICE) if width == 1 else (_CHOICE,)
    return [name.split(" × ")[0] in echoing for name in names(aux, reach)]


def basis(numbers: Tensor, state: Tensor, candidates: Tensor, aux: int, reach: int) -> Tensor:
    """[B,L,F] float32.

    Args:
        numbers: [B,L,17], as `Sight.numbers` gives them. state: [B,L] int64, the aux state of every position.
        candidates: [B,L] bool. aux: A. reach: r.
    """
    own, progress = numbers[..., :OWN], numbers[..., _PROGRESS : _PROGRESS + 1]
    confidence, sureness, entropy, ratio = (numbers[..., k] for k in (_CONFIDENCE, _SURENESS, _ENTROPY, _RATIO))
    member = (state.unsqueeze(2) == torch.arange(aux, device=state.device)).to(numbers.dtype)
    seen = torch.cat([own, member], dim=2).transpose(1, 2)
    neighbours = F.pad(seen, (reach, reach)).unfold(2, 2 * reach + 1, 1).permute(0, 2, 1, 3).flatten(2)
    open_ = candidates.to(numbers.dtype)
    among = open_.sum(1, keepdim=True).clamp(min=1.0)
    means = (torch.stack([confidence, entropy], dim=2) * open_.unsqueeze(2)).sum(1) / among
    whole = torch.cat([progress, means.unsqueeze(1).expand(-1, numbers.shape[1], -1)], dim=2)
    told = torch.cat([torch.stack([confidence, sureness, entropy, ratio], dim=2), whole], dim=2)
    by_state = (member.unsqueeze(3) * told.unsqueeze(2)).flatten(2)
    slopes = (own[..., :_SLOPED].unsqueeze(3) * whole.unsqueeze(2)).flatten(2)
    steps = torch.stack([confidence >= edge for edge in STEPS], dim=2).to(numbers.dtype)
    turn = numbers[..., _TURN:]
    turning = (turn.unsqueeze(3) * whole.unsqueeze(2)).flatten(2)
    left = open_.cumsum(1) / among
    place = torch.stack([left, left.square()], dim=2)
    return torch.cat([neighbours, by_state, slopes, steps, turn, turning, place], dim=2)


def paced(confidence: Tensor, candidates: Tensor, budget: Tensor) -> Tensor:
    """[B,L,8] bool: turn and first for every level, in turn.

    Args:
        confidence: [B,L]. candidates: [B,L] bool. budget: [B] int64, positions a step.
    """
    psi = torch.where(candidates, confidence, -1.0)
    ordered = psi.sort(dim=1, descending=True).values
    many = candidates.sum(1, keepdim=True)
    steps = -(-many // budget.clamp(min=1).unsqueeze(1)).clamp(max=-1)
    sure = torch.stack([(psi >= level).sum(1) for level in LEVELS], dim=1)
    unsure = many - sure
    share = torch.stack([-(-unsure // steps), -(-unsure // (2 * steps))], dim=2)
    edge = ordered.gather(1, (sure.unsqueeze(2) + share - 1).clamp(min=0).flatten(1))
    below = torch.stack([psi < level for level in LEVELS for _ in range(2)], dim=2)
    return below & (psi.unsqueeze(2) >= edge.unsqueeze(1)) & candidates.unsqueeze(2)
