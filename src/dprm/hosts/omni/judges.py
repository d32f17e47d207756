"""Two models that judge pictures, of different architecture, trained on different scenes.

    reward       a dual encoder, as CLIP is: the cosine of a picture and a caption, at least 0. It is what is rewarded
    evaluator    a convolutional captioner: the geometric mean of the probabilities of the words, each given the words
                 before it and the picture. It is held out

Both learn captions beside false ones that differ in one thing: another count, colour, shape, size or relation.
The reward model has seen scenes whose key is even, the evaluator those whose key is odd. `judges.safetensors` beside
this file holds both, with their scores on scenes and captions of the select split in the header; it is written by

    python -m dprm.hosts.omni.judges
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprm.data.draws import Draws, row_hash
from dprm.data.scenes import CELLS, COLOURS, SHAPES, SIZES, drawn
from dprm.host.weights import sha256
from dprm.hosts.omni import canvas
from dprm.hosts.omni.captions import COUNTS, RELATIONS, Caption, Phrase
from dprm.hosts.omni.data import pairs
from dprm.order.files import read_tensors, write_tensors
from dprm.train.transformer import Config, Layer, rotary

SHIPPED = Path(__file__).with_name("judges.safetensors")
COMMAND = "python -m dprm.hosts.omni.judges"
_KIND = "dprm.omni.judges"
_WORDS = canvas.BLANK + 1


class DualEncoder(nn.Module):
    """Pictures [N,16,16] and captions [N,16] → unit vectors [N,D] each."""

    def __init__(self, width: int = 64):
        super().__init__()
        config = Config(_WORDS, width, depth=2, heads=2)
        self.codes, self.words = nn.Embedding(canvas.CODES, 8), nn.Embedding(_WORDS, width)
        self.patch, self.place = nn.Linear(25 * 8, width), nn.Embedding(CELLS**2, width)
        self.looking = nn.ModuleList(Layer(config) for _ in range(2))
        self.reading = nn.ModuleList(Layer(config) for _ in range(2))
        self.of_picture, self.of_caption = nn.Linear(width, width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.tensor(2.5))

    def picture(self, codes: Tensor) -> Tensor:
        cells = codes[:, 1:, 1:].unfold(1, 5, 5).unfold(2, 5, 5).reshape(len(codes), CELLS**2, 25)
        h = self.patch(self.codes(cells).flatten(2)) + self.place.weight
        for layer in self.looking:
            h = layer(h, None, None)
        return F.normalize(self.of_picture(h.mean(1)), dim=1)

    def caption(self, words: Tensor) -> Tensor:
        h = self.words(words)
        rotation = rotary(h.shape[1], h.shape[2] // 2, h.device)
        for layer in self.reading:
            h = layer(h, rotation, None)
        return F.normalize(self.of_caption(h.mean(1)), dim=1)

    def forward(self, codes: Tensor, words: Tensor) -> Tensor:
        """[N] cosines."""
        return (self.picture(codes) * self.caption(words)).sum(1)

    def loss(self, codes: Tensor, words: Tensor, wrong: Tensor) -> Tensor:
        """Which caption of the batch, or false one, is that of the picture; and which picture is that of it."""
        logits = self.picture(codes) @ self.caption(torch.cat([words, wrong])).T * self.scale.exp()
        target = torch.arange(len(codes))
        return F.cross_entropy(logits, target) + F.cross_entropy(logits[:, : len(codes)].T, target)


class Captioner(nn.Module):
    """Pictures [N,16,16] and captions [N,16] → [N] the mean log probability of their words, one after the other."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.codes, self.words = nn.Embedding(canvas.CODES, 14), nn.Embedding(_WORDS, width)
        self.first = nn.Conv2d(16, 32, 3, padding=1)
        self.second = nn.Conv2d(32, width, 5, padding=2, stride=2)
        self.third = nn.Conv2d(width, width, 3, padding=1)
        self.speaking = nn.GRU(width, width, batch_first=True)
        self.ask, self.offer = nn.Linear(width, width), nn.Linear(width, width)
        self.hidden, self.out = nn.Linear(4 * width, 2 * width), nn.Linear(2 * width, _WORDS)

    def forward(self, codes: Tensor, words: Tensor) -> Tensor:
        said = words != canvas.BLANK
        loss = F.cross_entropy(self._logits(codes, words).flatten(0, 1), words.flatten(), reduction="none")
        mean: Tensor = (loss.view(words.shape) * said).sum(1) / said.sum(1)
        return -mean

    def _logits(self, codes: Tensor, words: Tensor) -> Tensor:
        """[N,16,W] of every word, from the words before it and from where it looks in the picture."""
        line = torch.linspace(-1, 1, codes.shape[1]).expand(len(codes), 1, codes.shape[1], -1)
        h = torch.cat([self.codes(codes).permute(0, 3, 1, 2), line, line.transpose(2, 3)], 1)
        h = self.third(self.second(self.first(h).relu()).relu()).relu()
        places = h.flatten(2).transpose(1, 2)
        before = F.pad(self.words(words)[:, :-1], (0, 0, 1, 0))
        told, _ = self.speaking(before)
        look = (self.ask(told) @ self.offer(places).transpose(1, 2) / h.shape[1] ** 0.5).softmax(-1) @ places
        whole = torch.cat([h.mean((2, 3)), h.amax((2, 3))], 1).unsqueeze(1).expand(-1, words.shape[1], -1)
        logits: Tensor = self.out(self.hidden(torch.cat([told, look, whole], 2)).relu())
        return logits

    def loss(self, codes: Tensor, words: Tensor, wrong: Tensor) -> Tensor:
        """The caption is likely, and likelier than the false one."""
        true = self(codes, words)
        loss: Tensor = -true.mean() + F.softplus(8.0 * (self(codes, wrong) - true)).mean()
        return loss


@cache
def shipped() -> tuple[DualEncoder, Captioner]:
    """The committed models."""
    if not SHIPPED.is_file():
        raise ValueError(f"there are no judges {SHIPPED}; make them with: {COMMAND}")
    tensors, _ = read_tensors(SHIPPED, _KIND)
    models = DualEncoder(), Captioner()
    for name, model in zip(("reward", "evaluator"), models):
        own = {key.removeprefix(f"{name}."): value.float() for key, value in tensors.items() if key.startswith(name)}
        model.load_state_dict(own)
        model.requires_grad_(False).eval()
    return models


def digest() -> str:
    """Names the committed models; empty where there are none."""
    return sha256(SHIPPED)[:16] if SHIPPED.is_file() else ""


@torch.no_grad()
def scores(captions: Sequence[Caption], pictures: Tensor, rows: int = 512) -> Tensor:
    """[N,2] of pictures [N,16,16]: similarity and what the evaluator says, both in [0, 1]."""
    reward, evaluator = shipped()
    words = canvas.words(captions)
    parts = []
    for start in range(0, len(words), rows):
        part = slice(start, start + rows)
        similarity = reward(pictures[part], words[part]).clamp(0, 1)
        parts.append(torch.stack([similarity, evaluator(pictures[part], words[part]).exp()], 1))
    return torch.cat(parts) if parts else torch.zeros(0, 2)


# ---- their training --------------------------------------------------------------------------------------------------


def falsified(caption: Caption, grid: Sequence[int], draw: random.Random) -> Caption:
    """A caption that differs in one thing and is not true of the grid."""
    while True:
        part = draw.choice(["first", "second", "relation"] if caption.second is not None else ["first"])
        if part == "relation":
            if caption.relation not in RELATIONS:
                continue
            changed = replace(caption, relation=draw.choice(RELATIONS))
        else:
            changes: dict[str, Any] = {part: _other(getattr(caption, part), draw)}
            changed = replace(caption, **changes)
        if not changed.holds(grid):
            return changed


def _other(phrase: Phrase, draw: random.Random) -> Phrase:
    """The phrase with another count, colour, shape or size."""
    what = draw.choice(["count", "count", "colour", "shape", "size"])
    if what == "count":
        return replace(phrase, count=min(len(COUNTS), max(1, phrase.count + draw.choice([-1, 1]))))
    if what == "size" and phrase.size < 0:
        what = "colour"
    return replace(
        phrase, **{what: draw.randrange({"colour": len(COLOURS), "shape": len(SHAPES)}.get(what, len(SIZES)))}
    )


def examples(split: str, count: int, seed: int, odd: bool) -> tuple[list[Caption], Tensor]:
    """Captions and grids of a split, of scenes whose key is odd or even."""
    captions, grids = pairs(split, 2 * count + 64, seed)
    rows = ((row_hash(grids) >> 4) % 2 == int(odd)).nonzero().flatten()[:count]
    return [captions[row] for row in rows.tolist()], grids[rows]


def trained(make: Callable[[], Any], odd: bool, count: int, epochs: int, seed: int, rows: int = 128) -> Any:
    """A judge of `count` pairs; a few codes of every picture are replaced, so that it gets used to slips."""
    captions, grids = examples("train", count, seed, odd)
    words, pictures, listed = canvas.words(captions), drawn(grids, canvas.SIDE), grids.tolist()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
    steps = epochs * (len(words) // rows)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    for epoch in range(epochs):
        order = Draws("judges", seed, epoch).permutations(len(words))
        for start in range(0, len(order) - rows + 1, rows):
            batch = order[start : start + rows]
            draw = random.Random(f"judges {seed} {epoch} {start}")
            wrong = canvas.words([falsified(captions[row], listed[row], draw) for row in batch.tolist()])
            loss = model.loss(_slipped(pictures[batch], Draws("slips", seed, epoch, start)), words[batch], wrong)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
        print(f"{type(model).__name__}, epoch {epoch + 1}: loss {loss.item():.3f}", flush=True)
    return model.requires_grad_(False).eval()


def _slipped(pictures: Tensor, draws: Draws) -> Tensor:
    """Pictures in which up to 2 % of the codes are others."""
    often = 0.02 * draws.uniform(len(pictures), 1, 1)
    other = draws.below(canvas.CODES, *pictures.shape)
    return torch.where(draws.uniform(*pictures.shape) < often, other, pictures)


@torch.no_grad()
def told(model: Any, count: int = 1000, seed: int = 0) -> float:
    """How often a true caption of the select split scores above a false one of the same picture."""
    captions, grids = pairs("select", count, seed)
    draw = random.Random(f"told {seed}")
    wrong = [falsified(caption, grid, draw) for caption, grid in zip(captions, grids.tolist())]
    pictures = drawn(grids, canvas.SIDE)
    return float((model(pictures, canvas.words(captions)) > model(pictures, canvas.words(wrong))).float().mean())


# Which class, whether it learns from odd scenes, pairs, epochs, seed.
RECIPES: dict[str, tuple[Callable[[], Any], bool, int, int, int]] = {
    "reward": (DualEncoder, False, 10_000, 8, 1),
    "evaluator": (Captioner, True, 8_000, 8, 2),
}


def main() -> None:
    """Train those that are named, or both, and write them."""
    tensors, header = read_tensors(SHIPPED, _KIND) if SHIPPED.is_file() else ({}, {})
    scores = dict(header.get("told", {}))
    for name in sys.argv[1:] or RECIPES:
        model = trained(*RECIPES[name])
        scores[name] = told(model)
        tensors = {key: value for key, value in tensors.items() if not key.startswith(f"{name}.")}
        tensors |= {f"{name}.{key}": value.half() for key, value in model.state_dict().items()}
        write_tensors(SHIPPED, tensors, {"kind": _KIND, "command": COMMAND, "told": scores})
        print(f"{name} tells a true caption from a false one: {scores[name]:.3f}", flush=True)


if __name__ == "__main__":
    main()
