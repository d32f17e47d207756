"""A ready-made host around any model: what a stranger writes is the model, the problems and a reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.lines import nothing_left
from dprm.decode.counts import CountRule, resolve_count
from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model
from dprm.decode.rows import Rows, rows_at, rows_count
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.identity import word
from dprm.host.judging import Judge
from dprm.host.metrics import Metric, Preference
from dprm.host.problem_files import read_json_lines
from dprm.host.rollout import Rollout
from dprm.order.checks import check_one_of, fail_at

# A reward is called with (tokens [L], facts) for one answer, or with (tokens [N,L], list of facts) if it says so.
Reward = Callable[..., Any]
ProblemSet = Problems | Tensor | Sequence[Any] | tuple[Any, ...] | Mapping[str, Any]
# A person's own files: path → problems and a line for each that is left out; (path, tokens, facts, scores [N,J]).
ReadFile = Callable[[Path], tuple[ProblemSet, list[str]]]
WriteFile = Callable[[Path, Tensor, Sequence[Any], Tensor], None]


class MadeHost(Host):
    """What `make_host` gives."""

    def __init__(self, name: str, model: Model, stock: dict[str, Problems], judged: Judge, pad: int | None):
        self.name, self._model, self._stock, self._judged, self._pad = name, model, stock, judged, pad
        self._decode_text: Callable[[int], str] | None = None
        self._read: ReadFile | None = None
        self._write: WriteFile | None = None

    def model(self) -> Model:
        return self._model

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """As many as there are, in an order drawn from the seed."""
        if split not in self._stock:
            raise ValueError(f"split is {split!r}: host {self.name} has problems of {', '.join(self._stock)}")
        stock = self._stock[split]
        order = Draws("problems", seed).bits(len(stock)).argsort() if seed else torch.arange(len(stock))
        return stock[order[:count]]

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        return self._judged(problems, tokens)

    def show(self, token: int) -> str:
        return super().show(token) if self._decode_text is None else self._decode_text(token)

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """Lines such as `{"tokens": [5, 7, 103], "facts": …}`, or what the host's own `read` takes."""
        stock = next(iter(self._stock.values()))
        listed: ProblemSet
        if self._read is not None:
            listed, left_out = self._read(path)
            if not len(listed):
                raise nothing_left(path, left_out)
        elif stock.context is not None:
            raise ValueError(f"host {self.name} takes no problem files: its model needs a context for every problem")
        else:
            listed, left_out = read_json_lines(path, self.decoding.mask_id, ragged=self._pad is not None)
        return _on(as_problems(listed, self.decoding.mask_id, self._pad, str(path)), stock.canvas.device), left_out

    def write(self, path: Path, problems: Problems, rollout: Rollout) -> list[str]:
        if self._write is None:
            return super().write(path, problems, rollout)
        self._write(path, rollout.tokens, problems.facts, rollout.scores)
        return [f"{len(problems):,} answers"]


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
    read: ReadFile | None = None,
    write: WriteFile | None = None,
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
        read: a person's own file → problems, and one line for each that is left out; None: JSON lines.
        write: (path, tokens [N,L], facts, scores [N,J]) writes finished answers as a file that people's tools open.

    Raises:
        ValueError: splits that share a problem, rows without a mask, and whatever else does not fit, by name and row.
    """
    host_device = torch.device(device) if device is not None else _device_of(model)
    stock: dict[str, Problems] = {}
    for split, listed in problems.items():
        check_one_of("split", split, SPLITS)
        posed = as_problems(listed, mask_id, pad, f"problems[{split!r}]")
        if split in (group or {}):
            members = torch.as_tensor(group[split], dtype=torch.int64)  # type: ignore[index]
            if members.shape != posed.key.shape:
                raise ValueError(f"group[{split!r}] has {len(members)} entries for {len(posed)} problems")
            posed = replace(posed, group=members)
        posed.check(f"problems[{split!r}]")
        if not len(posed):
            raise ValueError(f"problems[{split!r}] is empty: expected at least one problem")
        stock[split] = _on(posed, host_device)
    if not stock:
        raise ValueError(f"problems is empty: expected canvases of some of {', '.join(SPLITS)}")
    _check_disjoint(stock)
    host = MadeHost(name, model, stock, Judge(reward, batched=batched), pad)
    host.metrics = tuple(Metric(each) if isinstance(each, str) else each for each in metrics)
    names = [metric.name for metric in host.metrics]
    if len(set(names)) < len(names):
        raise ValueError(f"metrics are {', '.join(names)}: expected every name once")
    host.preference.range(host.judged)
    hidden = (*forbid, *(() if pad is None else (pad,)))
    host.decoding = Decoding(mask_id=mask_id, forbid=hidden, count=resolve_count(budget), **decoding)
    host._decode_text, host._read, host._write = show, read, write
    return host if preference is None else host.with_preference(preference)


def as_problems(listed: ProblemSet, mask_id: int, pad: int | None, what: str) -> Problems:
    """Problems from what a person has; keys are hashes of the canvas, the facts and the context."""
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
        pairs = [entry if _has_facts(entry) else (entry, None) for entry in listed]
        canvas, facts = [tokens for tokens, _ in pairs], [fact for _, fact in pairs]
    canvas = _canvas(canvas, pad, what)
    facts = [None] * len(canvas) if facts is None else list(facts)
    if len(facts) != len(canvas):
        raise ValueError(f"{what} has {len(facts)} facts for {len(canvas)} canvases")
    unmasked = ~(canvas == mask_id).any(1)
    if bool(unmasked.any()):
        raise ValueError(
            f"{what}[row {int(unmasked.nonzero()[0])}] holds no mask {mask_id}: there is nothing to reveal"
        )
    if context is not None and rows_count(context) != len(canvas):
        raise ValueError(f"{what} has {rows_count(context)} contexts for {len(canvas)} canvases")
    digests = [int(word(fact, rows_at(context, slice(row, row + 1))), 16) >> 2 for row, fact in enumerate(facts)]
    key = row_hash(torch.cat([canvas, torch.tensor(digests, device=canvas.device).unsqueeze(1)], dim=1))
    return Problems(canvas, key, facts, context)


def _has_facts(entry: Any) -> bool:
    """Whether it is (tokens, facts), and not tokens alone."""
    return isinstance(entry, tuple) and len(entry) == 2 and not isinstance(entry[0], int)


def _canvas(rows: Any, pad: int | None, what: str) -> Tensor:
    """[N,L] int64 of rows of tokens."""
    if isinstance(rows, Tensor):
        canvas = rows
        if rows.dim() != 2 or rows.dtype.is_floating_point or rows.dtype == torch.bool:
            raise ValueError(
                f"{what} is {rows.dtype} {tuple(rows.shape)}: expected integer tokens [problems, positions]"
            )
    else:
        listed = [torch.as_tensor(row) for row in rows]
        longest = max(map(len, listed), default=0)
        for row, tokens in enumerate(listed):
            if tokens.dim() != 1 or tokens.dtype.is_floating_point or tokens.dtype == torch.bool:
                raise ValueError(f"{what}[row {row}] is {str(rows[row])[:80]}: expected a list of whole numbers")
            if len(tokens) < longest and pad is None:
                raise ValueError(f"{what}[row {row}] has {len(tokens)} tokens and others {longest}: give pad")
        canvas = torch.full((len(listed), longest), 0 if pad is None else pad)
        for row, tokens in enumerate(listed):
            canvas[row, : len(tokens)] = tokens
    if len(canvas) and int(canvas.min()) < 0:
        fail_at(what, canvas, canvas < 0, "a token is a whole number from 0")
    return canvas.long()


def _check_disjoint(stock: dict[str, Problems]) -> None:
    """No problem and no group in two splits."""
    for what, column in (("problem", "key"), ("group", "groups")):
        first: dict[int, tuple[str, int]] = {}
        for split, posed in stock.items():
            for row, value in enumerate(getattr(posed, column).tolist()):
                other, where = first.setdefault(value, (split, row))
                if other != split:
                    here = f"problems[{split!r}][row {row}] has the {what} {value} of problems[{other!r}][row {where}]"
                    raise ValueError(f"{here}: what is fitted on must not be what chooses or tests")


def _on(posed: Problems, device: torch.device) -> Problems:
    group = None if posed.group is None else posed.group.to(device)
    return replace(posed, canvas=posed.canvas.to(device), key=posed.key.to(device), group=group)


def _device_of(model: Model) -> torch.device:
    parameters = getattr(model, "parameters", None)
    first = next(iter(parameters()), None) if callable(parameters) else None
    return first.device if isinstance(first, Tensor) else torch.device("cpu")
