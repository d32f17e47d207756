"""Learning while a model is trained: rollouts are recorded, their rewards observed, and what happens is logged.

    observer = Observer()
    selector = Selector(None, mask_id=…, explore=True, traces=observer)      gives the rollouts their order
    reward = observer.rewarding(my_reward)                                   a reward function as of TRL

The order acts on what it has learned from the next rollout on. With several processes every one observes its own
rollouts and all act on the sum. Shapes: B rows of a step, n positions, R rollouts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.diagnostics import LATE, LOW
from dprm.fit.events import Events
from dprm.fit.traces import Reveals
from dprm.fit.tracking import Tracking
from dprm.order.order import Order

Reward = Callable[..., Sequence[float]]


class Observer:
    """Keeps the choices of rollouts until their rewards are known. Given to a `Selector` as its `traces`."""

    def __init__(self) -> None:
        self._steps: list[tuple[tuple[str, ...], Tensor, Tensor, Tensor]] = []
        self._order: Order | None = None
        self._seen = _Seen()
        self._before: Any = None

    def expect(self, order: Order, digest: str, model: dict[str, int | None]) -> None:
        """The order that chooses, and learns."""
        self._order = order

    def record(self, reveals: Reveals) -> None:
        """Take down one step; no value is looked at."""
        decided = reveals.changed & reveals.candidates.any(1)
        self._steps.append((reveals.names, reveals.chosen, reveals.confidence, decided))

    def observe(self, rewards: Sequence[float] | Tensor, prompts: Sequence[Hashable] | None = None) -> None:
        """Credit all rollouts since the last call, in the order in which they were begun.

        Args:
            rewards: [R]. prompts: [R], what each answers; without them values mostly say how easy the prompts were. All
                rollouts of a prompt belong to one process.

        Raises:
            ValueError: not as many rewards as rollouts, or one outside the range; nothing is forgotten then.
        """
        if self._order is None:
            raise ValueError("this observer belongs to no Selector: give it to one as traces=")
        index: dict[str, int] = {}
        rows, cells, sure, changed, decided = [], [], [], [], []
        for names, chosen, confidence, different in self._steps:
            own = torch.tensor([index.setdefault(name, len(index)) for name in names])
            chosen = chosen.cpu()
            row, place = (chosen >= 0).nonzero().unbind(1)
            rows.append(own[row])
            cells.append(chosen[row, place].long())
            sure.append(confidence.cpu()[row, place])
            changed.append(different.cpu())
            decided.append((chosen >= 0).any(1))
        reward = torch.as_tensor(rewards).double().cpu()
        if len(reward) != len(index):
            raise ValueError(f"rewards has {len(reward)} rows: expected {len(index)}, one for each rollout recorded")
        if not len(index):
            return
        events = Events(len(index), torch.cat(rows), torch.cat(cells))
        group = None if prompts is None else _numbered(prompts)
        learner = _empty(self._order)
        learner.observe(events, reward, group)
        delta = learner.flush()
        assert delta is not None
        self._steps = []
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            delta.all_reduce()
        self._seen.add(self._order, events.cell, torch.cat(sure), torch.cat(changed), torch.cat(decided))
        self._order.merge(delta)
        self._order.step += 1

    def rewarding(self, reward: Reward) -> Reward:
        """The same reward function, (prompts, completions, …) → [R], whose rewards are observed as well."""

        def observed(prompts: Sequence[Any], completions: Sequence[Any], **named: Any) -> Sequence[float]:
            rewards = reward(prompts=prompts, completions=completions, **named)
            self.observe(rewards, [repr(prompt) for prompt in prompts])
            return rewards

        # Trainers name what they log after the function.
        observed.__name__ = getattr(reward, "__name__", type(reward).__name__)
        return observed

    def facts(self) -> dict[str, float]:
        """What has happened since the last call, for a log; empty where nothing was observed.

        readiness and gate of the positions that were selected; order_change, the share of steps that the policy
        changed; radius and drift of the values; cross_entropy, −log confidence of what was selected, by confidence bin;
        late_low, the share of late selections in the low bins.
        """
        if self._order is None or not len(self._seen):
            return {}
        seen, self._seen = self._seen, _Seen()
        facts = seen.facts(self._order)
        now = self._order.stats
        if now is not None:
            tracked = Tracking().then(self._before, now, self._order.gate.ready, 1)
            if len(tracked):
                facts |= {"radius": tracked.radius[-1], "drift": tracked.drift[-1]}
            self._before = now
        return {f"dprm/{name}": value for name, value in facts.items()}


class _Seen:
    """Selections since the last log: n positions, and the steps of rows."""

    def __init__(self) -> None:
        self._columns: list[tuple[Tensor, ...]] = []

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, order: Order, cell: Tensor, confidence: Tensor, changed: Tensor, decided: Tensor) -> None:
        """Those of one observation, with what the order knew when it chose."""
        gate = order.gate.ramp(order.step) * order.gate.readiness(order.table().support)
        self._columns.append((cell, confidence, gate[cell], changed[decided]))

    def facts(self, order: Order) -> dict[str, float]:
        """Means over all of them."""
        cell, confidence, gate, changed = (torch.cat(column) for column in zip(*self._columns, strict=True))
        phases, bins, aux = order.cells.shape
        entropy = -confidence.clamp(min=1e-12).log()
        binned = (cell // aux) % bins
        late = cell // (bins * aux) >= LATE * phases
        facts = {
            "readiness": float((gate >= 1.0).double().mean()),
            "gate": float(gate.mean()),
            "order_change": float(changed.double().mean()),
        }
        if bool(late.any()):
            facts["late_low"] = float((confidence[late] < LOW).double().mean())
        for number in sorted(set(binned.tolist())):
            facts[f"cross_entropy/bin_{number:02}"] = float(entropy[binned == number].mean())
        return facts


def write(facts: dict[str, float], step: int, to: Any) -> None:
    """Facts into a run of Weights & Biases, which has `log`, or a writer of TensorBoard, which has `add_scalar`."""
    if not facts:
        return
    if hasattr(to, "add_scalar"):
        for name, value in facts.items():
            to.add_scalar(name, value, step)
    else:
        to.log(facts, step=step)


def _empty(order: Order) -> Order:
    """An order that learns in the same cells, and knows nothing."""
    return Order(
        *order.cells.shape,
        beta=order.beta,
        baseline=order.baseline,
        reward_range=order.reward_range,
        signal=order.signal,
    )


def _numbered(prompts: Sequence[Hashable]) -> Tensor:
    number: dict[Hashable, int] = {}
    return torch.tensor([number.setdefault(prompt, len(number)) for prompt in prompts])
