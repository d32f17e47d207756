"""A ready-made host around any model: what a stranger writes is the model, the problems and a reward."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.decode.counts import CountRule, resolve_count
from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model
from dprm.decode.rows import Rows
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.metrics import Metric, Preference

# A reward is called with (tokens [L], facts) for one answer, or with (tokens [N,L], list of facts) if it says so.
Reward = Callable[..., Any]
ProblemSet = Problems | Tensor | Sequence[Any] | tuple[Any, ...] | Mapping[str, Any]


class MadeHost(Host):
    """What `make_host` gives."""

    def __init__(self, name: str, model: Model, stock: dict[str, Problems], judged: Reward, batched: bool):
        self.name = name
        self._model, self._stock, self.judged_by, self._batched = model, stock, judged, batched
        self._decode_text: Callable[[int], str] | None = None

    def model(self) -> Model:
        return self._model

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """As many as there are, in an order drawn from the seed; groups stay together."""
        if split not in self._stock:
            raise ValueError(f"split is {split!r}: host {self.name} has problems of {', '.join(self._stock)}")
        stock = self._stock[split]
        order = Draws("problems", seed).bits(len(stock)).argsort() if seed else torch.arange(len(stock))
        return stock[order[:count]]

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        if self._batched:
            return torch.as_tensor(self.judged_by(tokens, list(problems.facts)))
        answers = [torch.as_tensor(self.judged_by(row, facts)) for row, facts in zip(tokens, problems.facts)]
        return torch.stack([answer.double().cpu() for answer in answers])

    def show(self, token: int) -> str:
        return super().show(token) if self._decode_text is None else self._decode_text(token)

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        return read_json_lines(path, self.decoding.mask_id)


def make_host(
    name: str,
    model: Model,
    mask_id: int,
    problems: Mapping[str, ProblemSet],
    reward: Reward,
    *,
    metrics: Sequence[Metric | str] = ("reward",),
    preference: Preference | Mapping[str, float] | None = None,
    group: Mapping[str, Sequence[int] | Tensor] | None = None,
    forbid: Sequence[int] = (),
    pad: int | None = None,
    budget: int | CountRule = 1,
    batched: bool = False,
    show: Callable[[int], str] | None = None,
    device: torch.device | str | None = None,
    **decoding: Any,
) -> Host:
    """A host from a model, problems and a reward.

    Args:
        model: tokens [B,L] → logits [B,L,V], an output with `.logits`, or a tuple; called with (tokens, context) where
            problems have a context.
        problems: by split ("fit", "select", "test", and "train" if there is one): canvases [N,L] with `mask_id` where
            to reveal, a list of token lists or of (tokens, facts) pairs, a mapping of canvas, facts and context, or
            `Problems`. Shorter rows are padded.
        reward: (tokens [L], facts) → a number, or one for every metric; with `batched`, (tokens [N,L], facts) → [N,J].
        metrics: names or `Metric`s of what the reward gives, in [0, 1] unless they say otherwise.
        group: by split, which problems belong together.
        forbid: tokens that are never revealed. pad: what shorter rows end with; given, and forbidden.
        budget: positions a step, or a count rule. decoding: other fields of `Decoding`, such as temperature or guard.
        show: a token as people read it.

    Raises:
        ValueError: splits that share a problem, rows without a mask, and whatever else does not fit, by name and row.
    """
    host_device = torch.device(device) if device is not None else _device_of(model)
    stock: dict[str, Problems] = {}
    for split, listed in problems.items():
        if split not in SPLITS:
            raise ValueError(f"problems has a split {split!r}: expected some of {', '.join(SPLITS)}")
        posed = as_problems(listed, mask_id, pad, f"problems[{split!r}]")
        if group is not None and split in group:
            members = torch.as_tensor(group[split], dtype=torch.int64)
            if members.shape != posed.key.shape:
                raise ValueError(f"group[{split!r}] has {len(members)} entries for {len(posed)} problems")
            posed = replace(posed, group=members)
        stock[split] = replace(posed, canvas=posed.canvas.to(host_device), key=posed.key.to(host_device))
    _check_disjoint(stock)
    host = MadeHost(name, model, stock, reward, batched)
    host.metrics = tuple(Metric(each) if isinstance(each, str) else each for each in metrics)
    hidden = (*forbid, *(() if pad is None else (pad,)))
    host.decoding = Decoding(mask_id=mask_id, forbid=hidden, count=resolve_count(budget), **decoding)
    host._decode_text = show
    return host if preference is None else host.with_preference(preference)


def as_problems(listed: ProblemSet, mask_id: int, pad: int | None, what: str) -> Problems:
    """Problems from what a person has; keys are hashes of the canvas and of what is printed of the facts."""
    context: Rows | None = None
    if isinstance(listed, Problems):
        return listed
    if isinstance(listed, Mapping):
        unknown = set(listed) - {"canvas", "facts", "context"}
        if unknown or "canvas" not in listed:
            raise ValueError(f"{what} has {', '.join(map(repr, listed))}: expected canvas, and perhaps facts, context")
        canvas, facts, context = listed["canvas"], listed.get("facts"), listed.get("context")
    elif isinstance(listed, Tensor):
        canvas, facts = listed, None
    else:
        pairs = [entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None) for entry in listed]
        canvas, facts = [tokens for tokens, _ in pairs], [told for _, told in pairs]
    canvas = _canvas(canvas, pad, what)
    facts = [None] * len(canvas) if facts is None else list(facts)
    if len(facts) != len(canvas):
        raise ValueError(f"{what} has {len(facts)} facts for {len(canvas)} canvases")
    unmasked = ~(canvas == mask_id).any(1)
    if bool(unmasked.any()):
        raise ValueError(
            f"{what}[row {int(unmasked.nonzero()[0])}] holds no mask {mask_id}: there is nothing to reveal"
        )
    told = torch.tensor([_hash(fact) for fact in facts], dtype=torch.int64).unsqueeze(1)
    return Problems(canvas, row_hash(torch.cat([canvas, told], dim=1)), facts, context)


def _canvas(rows: Any, pad: int | None, what: str) -> Tensor:
    """[N,L] int64 of rows of tokens."""
    if isinstance(rows, Tensor):
        if rows.dim() != 2 or rows.dtype.is_floating_point or rows.dtype == torch.bool:
            raise ValueError(
                f"{what} is {rows.dtype} {tuple(rows.shape)}: expected integer tokens [problems, positions]"
            )
        return rows.long()
    listed = [torch.as_tensor(row).long().flatten() for row in rows]
    if not listed:
        raise ValueError(f"{what} is empty: expected at least one problem")
    longest = max(map(len, listed))
    short = [index for index, row in enumerate(listed) if len(row) < longest]
    if short and pad is None:
        raise ValueError(f"{what}[row {short[0]}] has {len(listed[short[0]])} tokens and others {longest}: give pad")
    canvas = torch.full((len(listed), longest), 0 if pad is None else pad)
    for index, row in enumerate(listed):
        canvas[index, : len(row)] = row
    return canvas


def _check_disjoint(stock: dict[str, Problems]) -> None:
    """No problem twice, and no group in two splits."""
    problems: dict[int, tuple[str, int]] = {}
    groups: dict[int, tuple[str, int]] = {}
    for split, posed in stock.items():
        for row, (key, group) in enumerate(zip(posed.key.tolist(), posed.groups.tolist())):
            other, where = problems.setdefault(key, (split, row))
            if (other, where) != (split, row):
                raise ValueError(f"problems[{split!r}][row {row}] is problems[{other!r}][row {where}] again")
            other, where = groups.setdefault(group, (split, row))
            if other != split:
                raise ValueError(f"group {group} is in {other!r} (row {where}) and in {split!r} (row {row})")


def _hash(fact: Any) -> int:
    text = repr(fact.tolist() if isinstance(fact, Tensor) else fact)
    # Only to tell two problems of one canvas apart.
    return int.from_bytes(text.encode()[:4096], "big") % (2**61 - 1)


def _device_of(model: Model) -> torch.device:
    parameters = getattr(model, "parameters", None)
    first = next(iter(parameters()), None) if callable(parameters) else None
    return first.device if isinstance(first, Tensor) else torch.device("cpu")


def read_json_lines(path: Path, mask_id: int) -> tuple[Problems, list[str]]:
    """Problems from lines such as `{"tokens": [5, 7, 103], "facts": …}`, and one line for each that is left out."""
    listed, left_out = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            tokens = entry["tokens"]
            if not tokens or not all(type(token) is int and token >= 0 for token in tokens) or mask_id not in tokens:
                raise ValueError(f"tokens must be whole numbers, the mask {mask_id} among them")
            listed.append((tokens, entry.get("facts")))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            left_out.append(f"line {number}: {str(error)[:200] or type(error).__name__}")
    if not listed:
        raise ValueError(f"{path} holds no problem that can be used" + (f": {left_out[0]}" if left_out else ""))
    return as_problems(listed, mask_id, None, str(path)), left_out
