"""Learning from traffic: traces of a served model, and rewards that came later, become a policy.

Rewards are lines of JSON, {"request": …, "reward": …}, with "prompt" where several requests answer one. Requests are
sorted by name and all sums are of integers, so the order of shards and lines cannot change a bit.

Where the engine explored and wrote contrasts (`fit.contrasts`), a head is learned, and a table otherwise.

Values are taken only if they explain something: those learned on three quarters of the prompts have to correlate with
the rewards of the last quarter. That is less than a comparison, in which orders meet on the same problems; it refuses
what is noise.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.fit.contrasts import Contrasts
from dprm.fit.events import Events
from dprm.fit.traces import SUFFIX, read_shard
from dprm.fit.traffic_account import Account
from dprm.order.order import Order
from dprm.order.policy import Policy
from dprm.order.signals import signal_from_spec
from dprm.order.stats import centre, checked_reward

_NAMED = 5
# Requests held out, below which a correlation says nothing.
_FEWEST = 30


@dataclass(frozen=True)
class Traffic:
    """All choices of a folder: names of R requests in their order, request [n] and cell [n] of every choice.

    `contrasts` are those of the R requests, None where no shard has any.
    """

    names: list[str]
    request: Tensor
    cell: Tensor
    cells: tuple[int, int, int]
    signal: dict[str, Any]
    model: dict[str, int | None]
    contrasts: Contrasts | None = None


def read_traces(folder: Path, account: Account) -> Traffic:
    """Every shard of a folder, in an order that does not depend on the names of the files.

    Raises:
        ValueError: no shard can be read, or two have different grids, signals or models, naming them.
    """
    shards: dict[str, tuple[str, dict[str, Tensor], dict[str, Any]]] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            digest, columns, header = read_shard(path)
        except ValueError:
            account.unreadable.append(path.name)
            continue
        if digest in shards:
            account.repeated.append(path.name)
        else:
            shards[digest] = path.name, columns, header
    if not shards:
        raise ValueError(f"{folder} has no shard of traces that can be read")
    known, changed = "", 0
    names = sorted({name for _, _, header in shards.values() for name in header["requests"]})
    place = {name: number for number, name in enumerate(names)}
    request, cell = [], []
    policies, engines = Counter[str](), Counter[str]()
    first: dict[str, Any] = {}
    contrasts: Contrasts | None = None
    for _, (name, columns, header) in sorted(shards.items()):
        for setting in ("cells", "signal", "model"):
            if first and header[setting] != first[setting]:
                raise ValueError(f"{name} has {setting} = {header[setting]}, and {known} has {first[setting]}")
        known, first = (known, first) if first else (name, header)
        own = torch.tensor([place[each] for each in header["requests"]])
        request.append(own[columns["request"].long()])
        cell.append(columns["cell"].long())
        if "contrast" in columns:
            contrasts = contrasts or Contrasts.zero(len(names), columns["contrast"].shape[1])
            contrasts.add(own[columns["contrasted"].long()], columns["contrast"])
        policies[header["policy"]] += len(cell[-1])
        engines[header["engine"]] += len(cell[-1])
        changed += int(columns["changed"].sum())
    grid = tuple(first["cells"])
    traffic = Traffic(names, torch.cat(request), torch.cat(cell), grid, first["signal"], first["model"], contrasts)
    account.shards, account.choices = len(shards), len(traffic.cell)
    account.policies, account.engines = dict(sorted(policies.items())), dict(sorted(engines.items()))
    account.changed = changed / max(account.choices, 1)
    return traffic


def read_rewards(path: Path) -> dict[str, tuple[float, str | None]]:
    """Reward and prompt of every request.

    Raises:
        ValueError: a line that is not such an object, a request with two different rewards, naming the line.
    """
    rewards: dict[str, tuple[float, str | None]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            prompt = entry.get("prompt")
            told = float(entry["reward"]), None if prompt is None else str(prompt)
            name = str(entry["request"])
        except (ValueError, TypeError, KeyError, AttributeError):
            wanted = '{"request": "…", "reward": 0.5}, with "prompt" if you know it'
            raise ValueError(f"{path}, line {number} is {line[:60]!r}: expected {wanted}") from None
        if rewards.get(name, told) != told:
            raise ValueError(f"{path}, line {number}: request {name!r} has another reward or prompt above")
        rewards[name] = told
    return rewards


def learn(
    folder: Path, rewards: Path, *, guidance: float | None = None, rule: str = "top_m", **settings: Any
) -> tuple[Policy, Account]:
    """A policy from a folder of traces and a file of rewards.

    Args:
        guidance: None: 1 where the values explain rewards of requests held out, otherwise 0, the engine's own order.
        settings: of the `Order` that learns: beta, ready, baseline, reward_range.
    """
    account = Account()
    traffic = read_traces(folder, account)
    told = read_rewards(rewards)
    known = [name for name in traffic.names if name in told]
    _missing(account, "reward", [name for name in traffic.names if name not in told])
    _missing(account, "trace", sorted(set(told) - set(traffic.names)))
    if not known:
        raise ValueError(f"{rewards} has no reward of any request in {folder}")
    reward = torch.tensor([told[name][0] for name in known], dtype=torch.float64)
    prompts = [told[name][1] for name in known]
    group = _groups(prompts, known, account)
    row_of_request = torch.full((len(traffic.names),), -1)
    place = {name: number for number, name in enumerate(traffic.names)}
    row_of_request[[place[name] for name in known]] = torch.arange(len(known))
    row = row_of_request[traffic.request]
    events = Events(len(known), row[row >= 0], traffic.cell[row >= 0])
    account.requests, account.choices = len(known), len(events.row)
    held_out = torch.tensor([_held_out(prompt or name) for prompt, name in zip(prompts, known, strict=True)])
    contrasts = None if traffic.contrasts is None else traffic.contrasts[torch.tensor([place[name] for name in known])]
    grid, signal = Order(*traffic.cells, **settings), signal_from_spec(traffic.signal)
    asked = torch.zeros(len(known), dtype=torch.int64) if group is None else group
    outcome = centre(checked_reward(reward, grid.reward_range), asked, grid.reward_range)

    def learned(rows: Tensor, guidance: float) -> Order:
        """An order of some requests, [R] bool."""
        head = None
        if contrasts is not None:
            counts = torch.bincount(events.among(rows).cell, minlength=grid.cells.count)
            # Requests without a prompt are problems of their own, or none could be left out to choose a penalty by.
            problem = torch.arange(len(known)) if group is None else group
            head = contrasts[rows].head(outcome[rows], problem[rows], grid.cells.aux, counts)
        order = Order(*traffic.cells, signal=signal, rule=rule, guidance=guidance, head=head, **settings)
        if head is None:
            order.observe(events.among(rows), reward[rows], None if group is None else group[rows])
        return order

    trial = learned(~held_out, 0.0)
    value = _mean_value(trial, events) if contrasts is None or trial.head is None else contrasts.value(trial.head)
    account.learned = "table" if contrasts is None else "head"
    account.explained = _explained(value, outcome, held_out & value.isfinite())
    lower = account.explained[1] if account.explained is not None else 0.0
    account.guidance = (1.0 if lower > 0 else 0.0) if guidance is None else guidance
    account.reason = _reason(account, guidance)
    order = learned(torch.ones_like(held_out), account.guidance)
    # A policy says which model it was learned on, so that another one refuses it.
    model = {name: str(number) for name, number in traffic.model.items() if number is not None}
    return order.policy(estimator="traffic", requests=str(len(known)), choices=str(account.choices), **model), account


def _missing(account: Account, what: str, names: list[str]) -> None:
    setattr(account, f"without_{what}", len(names))
    if names:
        account.named[what] = names[:_NAMED]


def _groups(prompts: list[str | None], names: list[str], account: Account) -> Tensor | None:
    """[R] the number of the prompt of every request; None where no prompts are named."""
    named = [prompt for prompt in prompts if prompt is not None]
    if not named:
        return None
    if len(named) < len(prompts):
        name = names[prompts.index(None)]
        raise ValueError(
            f"request {name!r} has no prompt, and others have: name the prompt of all requests, or of none"
        )
    counts = Counter(named)
    account.prompts, account.alone = len(counts), sum(count == 1 for count in counts.values())
    number = {prompt: index for index, prompt in enumerate(sorted(counts))}
    return torch.tensor([number[prompt] for prompt in named])


def _held_out(name: str) -> bool:
    return hashlib.blake2b(name.encode(), digest_size=1).digest()[0] < 64


def _mean_value(order: Order, events: Events) -> Tensor:
    """[R] the mean value of a request's choices, NaN where it has none."""
    value = order.table().value[events.cell]
    zero = value.new_zeros(events.rows)
    total, count = (zero.index_add(0, events.row, column) for column in (value, torch.ones_like(value)))
    return total / count


def _explained(value: Tensor, outcome: Tensor, chosen: Tensor) -> tuple[float, float, float] | None:
    """Correlation of values [R] with rewards [R] where chosen [R] bool, and its interval.

    z = artanh r is normal with variance 1/(n − 3).
    """
    pair = torch.stack([value[chosen], outcome[chosen]])
    if pair.shape[1] < _FEWEST or bool((pair.std(1) == 0).any()):
        return None
    r = float(torch.corrcoef(pair)[0, 1].clamp(-0.999999, 0.999999))
    half = 1.96 / math.sqrt(pair.shape[1] - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def _reason(account: Account, guidance: float | None) -> str:
    if account.explained is None:
        told = "too little was held out to tell whether the values explain rewards"
    else:
        r, low, high = account.explained
        told = f"on requests held out, values and rewards correlate by {r:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"{told}; as you asked" if guidance is not None else told
