"""One changed decision from a shared canvas, as in the paper: five continuations, judged at their ends.

After 96 steps of the native decoding five positions are tried in turn: the native choice i0, and those at the quantiles
.70, .85, .90, .95 of the rank of −H among all masked positions, ascending, so that .95 is nearly the surest. The canvas
is forked, each is revealed with its most probable token as step 97, and all five are finished by the same decoder:
96 + 1 + 5·163 = 912 forwards, as the first 96 steps and the look at the canvas after them are shared. Then

    g_i = c_i + γ (R(X^i) − R(X^{i0})) / .03        c_i = −H_i at the forked canvas, R the reward

and the path with the largest g is the answer. γ is chosen on the select split, see `gamma`.
Shapes: B problems, P = 5 paths, L positions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.decode.loop import Model, Step, advance, begin, commit
from dprm.decode.state import State
from dprm.host.host import Host, Problems
from dprm.host.identity import word
from dprm.host.rollout import CALLS, Rollout, best
from dprm.order.checks import check_one_of
from dprm.order.files import read_tensors, write_tensors
from dprm.order.noise import mix, mix_rows

STEP, QUANTILES, SCALE = 96, (0.70, 0.85, 0.90, 0.95), 0.03
PATHS = 1 + len(QUANTILES)
GAMMA, PAPER = Path(__file__).with_name("gamma.json"), 8.0
# Where `gamma` and `records` keep paths.
KEPT = Path("runs/omni-paths")
SCORE, REWARD, UNIFORM = "score", "reward", "uniform"
_KIND = "dprm.omni.paths"
# Batches whose paths are remembered: arms that choose among the same paths do not decode them again.
_REMEMBERED: dict[str, Paths] = {}
_MOST = 64


@dataclass(frozen=True)
class Paths:
    """Five continuations of every problem, the native one first.

    Attributes:
        canvas: [B,L] after 96 steps, shared. look: [B,L] float32, −H of its masked positions.
        position, token: [B,P] what each path reveals next. native: [B,P] float32, c_i.
        tokens, step_map, confidence: [B,P,L] of every path at its end.
        calls: [B] forwards of all of it. seconds: [B].
    """

    canvas: Tensor
    look: Tensor
    position: Tensor
    token: Tensor
    native: Tensor
    tokens: Tensor
    step_map: Tensor
    confidence: Tensor
    calls: Tensor
    seconds: Tensor

    def __len__(self) -> int:
        return len(self.canvas)

    def tensors(self) -> dict[str, Tensor]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def joined(cls, parts: Sequence[Paths]) -> Paths:
        """Several batches, one after the other."""
        return cls(**{f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def scores(self, host: Host, problems: Problems) -> Tensor:
        """[B,P,J] what all paths earn."""
        rows = torch.arange(len(self)).repeat_interleave(PATHS)
        return host.scores(problems[rows], self.tokens.flatten(0, 1)).view(len(self), PATHS, -1)

    def rollout(self, scores: Tensor, index: Tensor, calls: Tensor) -> Rollout:
        """The path [B] of every problem, with scores [B,P,J], at a price [B]; one decision a problem."""
        row, one = torch.arange(len(self)), torch.ones(len(self), dtype=torch.int64)
        return Rollout(
            tokens=self.tokens[row, index],
            step_map=self.step_map[row, index],
            confidence=self.confidence[row, index],
            scores=scores[row, index],
            calls={CALLS: calls},
            decisions=one,
            changed=(index != 0).long(),
            picks=one,
            ready=one,
            gate=one.float(),
            seconds=self.seconds,
        )

    def state(self, host: Host, problems: Problems, seed: int) -> State:
        """The shared canvases, ready to be continued."""
        start = begin(problems.canvas, host.decoding, mix_rows(problems.key, mix(seed)), problems.context)
        step_map = self.step_map[:, 0]
        return replace(
            start,
            tokens=self.canvas.to(start.tokens.device),
            step_map=torch.where(step_map <= STEP, step_map, 0).to(start.tokens.device),
            step=torch.full_like(start.step, STEP),
        )


@torch.no_grad()
def paths(host: Host, problems: Problems, seed: int, model: Model, folder: Path | None = None) -> Paths:
    """Five continuations of every problem of a batch.

    Args:
        folder: where they are kept, for other commands. None: those that are in KEPT are taken, and none is kept.
    """
    name = word(host.weights or str(id(model)), problems.key, seed, STEP, list(QUANTILES))
    file = (folder or KEPT) / f"{name}.safetensors"
    if name not in _REMEMBERED and file.is_file():
        _REMEMBERED[name] = Paths(**read_tensors(file, _KIND)[0])
    if name not in _REMEMBERED:
        if len(_REMEMBERED) >= _MOST:
            _REMEMBERED.clear()
        _REMEMBERED[name] = _continued(host, problems, seed, model)
    if folder is not None and not file.is_file():
        write_tensors(file, _REMEMBERED[name].tensors(), {"kind": _KIND})
    return _REMEMBERED[name]


def _continued(host: Host, problems: Problems, seed: int, model: Model) -> Paths:
    began = time.perf_counter()
    decoding, order = host.decoding, host.decoding.order()
    start = begin(problems.canvas, decoding, mix_rows(problems.key, mix(seed)), problems.context)
    before = advance(model, start, order, decoding, until=STEP)
    state = before.state
    looked: list[Step] = []
    advance(model, state, order, decoding, until=STEP + 1, on_step=looked.append)
    reading, score = looked[0].reading, looked[0].choice.score
    position = candidates(torch.where(looked[0].eligible, score, -torch.inf))
    count = len(problems)
    rows = torch.arange(count, device=position.device).repeat_interleave(PATHS)
    column = position.flatten().unsqueeze(1)
    chosen = torch.zeros_like(state.given[rows]).scatter(1, column, True)
    forked = state.fork(PATHS)
    active = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    after = commit(forked, reading.tokens[rows], chosen, looked[0].eligible[rows], active, decoding)
    ended = advance(model, after, order, decoding)
    # What was revealed before the paths part keeps the confidence that it had then.
    sure = torch.where(chosen, reading.confidence[rows], ended.trace.confidence)
    sure = torch.where(sure.isnan(), before.trace.confidence[rows], sure)
    return Paths(
        canvas=state.tokens.cpu(),
        look=torch.where(looked[0].eligible, score, 0.0).float().cpu(),
        position=position.cpu(),
        token=reading.tokens.gather(1, position).cpu(),
        native=score.gather(1, position).float().cpu(),
        tokens=ended.tokens.view(count, PATHS, -1).cpu(),
        step_map=ended.step_map.view(count, PATHS, -1).cpu(),
        confidence=sure.view(count, PATHS, -1).cpu(),
        calls=(state.step + 1 + ended.row_nfe.view(count, PATHS).sum(1)).cpu(),
        seconds=torch.full((count,), (time.perf_counter() - began) / max(1, count)),
    )


def candidates(score: Tensor) -> Tensor:
    """[B,P] positions: the first one with the largest score, and those at the quantiles of its rank, ascending.

    Args:
        score: [B,L], −inf where a position is not to be had.
    """
    ranked = score.argsort(dim=1, descending=True, stable=True)
    last = torch.isfinite(score).sum(1, keepdim=True) - 1
    share = torch.tensor([1.0, *QUANTILES], device=score.device)
    return ranked.gather(1, (last * (1.0 - share)).round().long())


def chosen(native: Tensor, reward: Tensor, gamma: float) -> Tensor:
    """[B] the path with the largest c_i + γ (R_i − R_i0)/.03, the first of equals; γ = ∞: with the largest reward."""
    gain = (reward - reward[:, :1]).double() / SCALE
    score = gain if gamma == float("inf") else native.double() + gamma * gain
    return score.argmax(1)


def chosen_gamma() -> float:
    """The γ that was chosen on the select split; that of the paper, where none was chosen yet."""
    return float(json.loads(GAMMA.read_text())["gamma"]) if GAMMA.is_file() else PAPER


@dataclass(frozen=True)
class Intervention:
    """A way of answering: one of the five paths.

    Attributes:
        by: "score", the g of the paper; "reward" alone; or "uniform", drawn without a look at them.
        gamma: of the score; None: the one chosen on the select split.
    """

    by: str = SCORE
    gamma: float | None = None

    def __post_init__(self) -> None:
        check_one_of("by", self.by, (SCORE, REWARD, UNIFORM))

    def spec(self) -> Any:
        gamma = self._gamma() if self.by == SCORE else None
        return ["omni intervention", self.by, gamma, STEP, list(QUANTILES), SCALE]

    def _gamma(self) -> float:
        if self.by == REWARD:
            return float("inf")
        return chosen_gamma() if self.gamma is None else self.gamma

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """The chosen path of every problem, at the price of all five; one decision a problem."""
        five = paths(host, problems, seed, model)
        scores = five.scores(host, problems)
        if self.by == UNIFORM:
            index = mix_rows(problems.key.cpu(), mix(seed, 31)) % PATHS
        else:
            rewards = host.reward(scores.flatten(0, 1)).view(len(five), PATHS)
            index = chosen(five.native, rewards, self._gamma())
        return five.rollout(scores, index, five.calls)


@dataclass(frozen=True)
class BestOfSeeds:
    """The control at the same price: five continuations of the same canvas whose tokens are drawn, the native one among
    them; the highest reward is taken."""

    temperature: float = 1.0

    def spec(self) -> Any:
        return ["omni best of seeds", PATHS, STEP, self.temperature]

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """96 steps once, and five times the rest: 916 forwards."""
        five = paths(host, problems, seed, model)
        began = time.perf_counter()
        hot = host.with_decoding(temperature=self.temperature)
        state = five.state(host, problems, seed)
        whole = (problems.canvas == host.decoding.mask_id).sum(1).cpu()
        first = five.rollout(five.scores(host, problems)[:, 0].unsqueeze(1), torch.zeros_like(whole), whole)
        drawn = [first]
        for path in range(1, PATHS):
            other = replace(state, seeds=mix_rows(problems.key, mix(seed, path)))
            ended = advance(model, other, hot.decoding.order(), hot.decoding)
            part = Rollout.of(ended, host.scores(problems, ended.tokens.cpu()), 0.0)
            seen = torch.where(part.confidence.isnan(), first.confidence, part.confidence)
            plain = {name: getattr(first, name) for name in ("decisions", "picks", "ready", "gate")}
            drawn.append(replace(part, confidence=seen, changed=torch.ones_like(whole), **plain))
        seconds = (time.perf_counter() - began + float(five.seconds.sum()) / PATHS) / max(1, len(five))
        return replace(best(host, drawn), seconds=torch.full((len(five),), seconds))
