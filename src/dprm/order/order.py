"""The order module: selects positions by the host's signal plus a learned, gated correction, and learns from rewards.

    score_i = log ψ_i + η_i · guidance · β · R̂_i

`Order()` with no evidence is exactly the host's order. Shapes: B rows, L positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from dprm.order.cells import Cells, Gate
from dprm.order.checks import (
    check_bounds,
    check_decision,
    check_integer,
    check_number,
    check_one_of,
    check_shape,
    check_shortlist,
)
from dprm.order.choice import Choice, Decision, Tilt
from dprm.order.head import Head, Sight
from dprm.order.noise import Stream
from dprm.order.policy import Policy, evidence, support_of
from dprm.order.reading import Reading
from dprm.order.rules import RULES, draw, top_m
from dprm.order.signals import Signal, resolve_signal, signal_from_spec
from dprm.order.stats import Stats, centre, checked_range, checked_reward
from dprm.order.values import BASELINES, Table, estimate

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

# e^40 · ψ stays an ordinary float32 for every ψ that matters; beyond it scores are compared as logarithms.
_MODERATE = 40.0


class Creditable(Protocol):
    """Anything that knows which cells were chosen in which row: a Choice, a decoding trace."""

    @property
    def rows(self) -> int:
        """How many rows there were."""

    def events(self) -> tuple[Tensor, Tensor]:
        """row [n] and cell [n], one entry a decision."""


class Order:
    """Which masked positions to reveal next.

    Args:
        phases, bins, aux: the grid of cells (see `Cells`).
        beta: inverse temperature β of the tilt. guidance: its strength; 0 is the host's order.
        warm, switch, ready: the gate (T_warm, T_switch, N_ready).
        signal: the host's own signal, by name or as a function of a Reading that returns ψ.
        warm_signal: the signal before T_warm, where it is another one; such as "random".
        rule: "top_m", "shortlist_top_m" or "soft_bon".
        shortlist: (least, most, per): N = min(most, max(least, per·m)), never below m.
        explore: draw shortlists before there is evidence. From an empty table `top_m` never leaves the host's order, so
            learning online needs one of the other two rules and `explore=True`.
        baseline: "none", "global", "prompt", or "auto": prompt where groups are given to `observe`, else global.
        reward_range: declared (lowest, highest) terminal reward.
        shrunken: shrink sparse cells towards their parents.
        forget: share of past evidence forgotten at each `observe`, for hosts that drift.
        head: a fitted `Head` whose values take the place of the table's.
        tables: separate tables, for rows that share no evidence; `select` is then told the table of each row, and acts
            as with one table at a time (to rounding, where corrections exceed e⁴⁰).
    """

    def __init__(
        self,
        phases: int = 8,
        bins: int = 16,
        aux: int = 1,
        beta: float = 1.0,
        guidance: float = 1.0,
        warm: float = 0,
        switch: float = 0,
        ready: float = 64,
        signal: str | Signal | Callable[[Reading], Tensor] = "confidence",
        rule: str = "top_m",
        shortlist: tuple[int, int, int] = (8, 64, 4),
        explore: bool = False,
        baseline: str = "auto",
        reward_range: tuple[float, float] = (0.0, 1.0),
        shrunken: bool = False,
        forget: float = 0.0,
        head: Head | None = None,
        warm_signal: str | Signal | Callable[[Reading], Tensor] | None = None,
        tables: int = 1,
    ):
        self.cells = Cells(phases, bins, aux, tables)
        self.gate = Gate(warm, switch, ready)
        self.beta = check_number("beta", beta, 0, open_low=True)
        self.guidance = check_number("guidance", guidance, 0)
        self.signal = resolve_signal(signal)
        self.warm_signal = None if warm_signal is None else resolve_signal(warm_signal)
        self.rule = check_one_of("rule", rule, RULES)
        self.shortlist = check_shortlist(shortlist)
        self.explore = bool(explore)
        self.baseline = check_one_of("baseline", baseline, BASELINES)
        self.reward_range = checked_range(reward_range)
        self.shrunken = bool(shrunken)
        self.forget = check_number("forget", forget, 0, 1)
        self.step = 0
        self._automatic = baseline == "auto"
        self._stats: Stats | None = None
        self._delta: Stats | None = None
        self._fixed: Table | None = None
        self.head = head
        if head is not None and tables > 1:
            raise ValueError(f"tables is {tables}: a head has none")
        self._tilts: dict[tuple[torch.device, float, float, float], Tilt] = {}
        self._heads: dict[torch.device, Head] = {}

    # ---- acting -----------------------------------------------------------------------------------------------------

    def select(
        self,
        reading: Reading,
        candidates: Tensor,
        budget: int | Tensor,
        progress: float | Tensor,
        aux: Tensor | None = None,
        step: int | None = None,
        seed: int | Tensor | None = None,
        table: Tensor | None = None,
    ) -> Choice:
        """Choose min(budget, candidates) positions of every row.

        Args:
            candidates: [B,L] bool, the eligible positions.
            budget: how many, an int or [B]. A tensor on the CPU never costs a sync.
            progress: share of the generation done, a number or [B], in [0, 1].
            aux: [B,L] int, the host-specific state of every position, below `aux` of the Order.
            step: schedule index u of the gate. Default: `observe` calls so far.
            seed: an int, from which every row derives its own stream, or [B], the streams themselves. Default 0. What
                is drawn also depends on `progress`, so that one seed serves a whole decoding.
            table: [B] int, the table of every row, for an Order with several.

        Raises:
            ValueError, TypeError: naming argument, row and value. Nothing is changed by any call.
        """
        confidence = reading.confidence
        if isinstance(progress, Tensor) and progress.dim() == 0:
            progress = progress.expand(len(confidence))
        count, most, low, high = check_decision(confidence, candidates, budget, progress, aux, seed, self.cells.aux)
        table = self._checked_table(table, len(confidence))
        u = self.step if step is None else check_number("step", step, 0)
        signal = self.signal if self.warm_signal is None or u >= self.gate.warm else self.warm_signal
        tilt = self._tilt(confidence.device, self.gate.ramp(u))
        exploring = self.explore and u >= self.gate.warm
        drawing = self.rule != "top_m" and (exploring or not tilt.silent)
        stream = None
        if drawing or signal.needs_noise:
            stream = Stream(0 if seed is None else seed, progress, confidence.shape[0], confidence.device)
        value = signal.value(reading, stream)
        if value.dtype in (torch.float16, torch.bfloat16):  # A reading made by hand; `read` gives float32.
            value, confidence = value.float(), confidence.float()
        aux = None if aux is None else aux.clone()  # The host may write into it again; what was captured stays.
        first = self.cells.first_of_phase(progress, table)
        decision = Decision(self.cells, signal, tilt, confidence, value, candidates, aux, first, count, most, low, high)
        if self.head is not None and not tilt.silent:
            decision.seen = self._head_on(confidence.device)(Sight.of(reading, candidates, count, progress, aux))
            decision.trust = decision.support()
        if drawing and stream is not None:
            return draw(decision, self.rule, self.shortlist, stream, everywhere=exploring or tilt.full)
        return top_m(decision)

    def _checked_table(self, table: Tensor | None, rows: int) -> Tensor | None:
        if table is None:
            if self.cells.tables > 1:
                raise ValueError(f"this Order has {self.cells.tables} tables: expected table, the one of every row")
            return None
        check_shape("table", table, (rows,), "one table a row")
        check_integer("table", table)
        check_bounds("table", table, 0, self.cells.tables - 1, f"this Order has tables = {self.cells.tables}")
        return table

    def _tilt(self, device: torch.device, ramp: float) -> Tilt:
        """The table at one point of the schedule, on one device; worked out once."""
        key = (device, ramp, self.guidance, self.beta)
        tilt = self._tilts.get(key)
        if tilt is None:
            table = self.table()
            gate = ramp * self.gate.readiness(table.support)
            says_nothing = self.head is None or not bool(self.head.weight.any() and gate.any())
            scale = 0.0 if says_nothing else self.guidance * self.beta
            bonus = gate * self.guidance * self.beta * table.value
            present = bonus != 0
            moderate = float(bonus.abs().max()) <= _MODERATE
            tilt = Tilt(
                value=table.value.float().to(device),
                gate=gate.float().to(device),
                bonus=bonus.float().to(device),
                factor=bonus.exp().float().to(device) if moderate else None,
                silent=not bool(present.any()) and scale == 0.0,
                full=bool(present.all()) or scale != 0.0,
                scale=scale,
            )
            if len(self._tilts) > 32:  # A ramp gives a new table at every step; old ones are not needed again.
                self._tilts.clear()
            self._tilts[key] = tilt
        return tilt

    def _head_on(self, device: torch.device) -> Head:
        """The head on one device; moved there once."""
        if device not in self._heads:
            assert self.head is not None
            self._heads[device] = self.head.to(device)
        return self._heads[device]

    @property
    def draws(self) -> bool:
        """Whether what it selects depends on random numbers."""
        return self.rule != "top_m" or self.signal.needs_noise

    @property
    def silent(self) -> bool:
        """Whether it selects as its signal does: nothing is known, nothing is done with it, and nothing is explored."""
        exploring = self.explore and self.rule != "top_m" and self.step >= self.gate.warm
        return not exploring and self._tilt(torch.device("cpu"), self.gate.ramp(self.step)).silent

    # ---- learning ---------------------------------------------------------------------------------------------------

    def observe(self, chosen: Creditable | Iterable[Creditable], reward: Tensor, group: Tensor | None = None) -> None:
        """Credit the cells captured at selection with the terminal reward of their row.

        Args:
            chosen: a Choice, several (one trajectory's steps), or the trace of `dprm.decode`.
            reward: [B] terminal rewards, inside `reward_range`.
            group: [B] int, the prompt each row answers; all rows of a prompt must come in one call. With the baseline
                "auto" it is given always or never; with "global" and "none" it has no meaning.

        Raises:
            ValueError: naming the row. Nothing is changed by a failed call.
        """
        if self._fixed is not None or self.head is not None:
            raise ValueError(
                "this Order acts on a policy without statistics: it cannot learn on; make one with Order(…)"
            )
        credited: list[Any] = [chosen] if hasattr(chosen, "events") else list(chosen)
        reward = torch.as_tensor(reward).cpu()
        if reward.dim() != 1:
            raise ValueError(f"reward has shape {tuple(reward.shape)}: expected one terminal reward a row")
        rewards = checked_reward(reward, self.reward_range)
        baseline = self._baseline_for(group)
        if baseline == "prompt":
            assert group is not None
            check_shape("group", group, tuple(reward.shape), "the prompt of every row")
            check_integer("group", group)
            rewards = centre(rewards, group.cpu(), self.reward_range)
        delta = evidence(self.cells, self.beta, self.reward_range, baseline)
        events = []
        for each in credited:
            if each.rows != len(rewards):
                raise ValueError(f"reward has {len(rewards)} rows: expected {each.rows}, one for every row decided")
            events.append(each.events())
        if events:
            row, cell = (torch.cat(column).cpu() for column in zip(*events, strict=True))
            check_bounds("row", row, 0, len(rewards) - 1, f"there are {len(rewards)} rewards")
            delta.add(cell, rewards[row], trajectory=row)
        self._absorb(delta, self.forget)
        self._delta = delta if self._delta is None else self._delta + delta
        self.step += 1

    def _baseline_for(self, group: Tensor | None) -> str:
        if self.baseline == "auto":
            return "global" if group is None else "prompt"
        if self.baseline == "prompt" and group is None:
            raise ValueError("baseline is 'prompt': observe needs group, the prompt of every row")
        if self.baseline == "global" and self._automatic and group is not None:
            remedy = "give it from the first observe on, or never, or make the Order with baseline='global'"
            raise ValueError(f"group is given, but what this Order knows came without: {remedy}")
        return self.baseline

    def merge(self, delta: Stats) -> None:
        """Take in evidence from elsewhere: another worker's `flush`, a file, a reduced sum."""
        self._absorb(delta, 0.0)

    def _absorb(self, delta: Stats, fade: float) -> None:
        baseline = ("prompt" if delta.centred else "global") if self.baseline == "auto" else self.baseline
        own = evidence(self.cells, self.beta, self.reward_range, baseline) if self._stats is None else self._stats
        self._stats = (own.forget(fade) if fade else own) + delta
        self.baseline = baseline
        self._tilts.clear()

    def flush(self) -> Stats | None:
        """What was observed here since the last flush, for others to `merge`. It stays counted here."""
        delta, self._delta = self._delta, None
        return delta

    def sync(self, group: ProcessGroup | None = None) -> None:
        """Take in what the other processes of a group observed since the last sync; all of them call it together.

        Only deltas travel, and each process leaves its own out of the sum: however often this is called, every event
        counts once, and all processes have the evidence of one that observed everything, bit for bit.
        """
        import torch.distributed as dist

        kinds = (None, False, True)
        delta = self.flush()
        device = torch.device("cuda") if dist.get_backend(group) == "nccl" else torch.device("cpu")
        # A process that observed nothing learns from the others whether rewards were centred.
        kind = torch.tensor([kinds.index(None if delta is None else delta.centred)], device=device)
        dist.all_reduce(kind, op=dist.ReduceOp.MAX, group=group)
        centred = kinds[int(kind)]
        if centred is None:
            return
        own = evidence(self.cells, self.beta, self.reward_range, "prompt" if centred else "global")
        if delta is not None:
            own = delta
        total = (own + own.empty()).all_reduce(group)
        self.merge(total.without(own))

    @property
    def stats(self) -> Stats | None:
        """A copy of all the evidence this Order acts on."""
        return None if self._stats is None else self._stats + self._stats.empty()

    def table(self) -> Table:
        """The values this Order acts on."""
        if self._fixed is not None:
            return self._fixed
        if self.head is not None:
            return support_of(self.head, self.cells)
        if self._stats is None:
            nothing = torch.zeros(self.cells.count, dtype=torch.float64)
            return Table(nothing, nothing)
        return estimate(self._stats, self.baseline, shrunken=self.shrunken)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def policy(self, **notes: str) -> Policy:
        """A frozen copy of what this Order would do now, with notes for people."""
        return Policy(
            table=self.table(),
            cells=self.cells,
            beta=self.beta,
            guidance=self.guidance,
            signal=self.signal.spec(),
            warm_signal=None if self.warm_signal is None else self.warm_signal.spec(),
            baseline=self.baseline,
            reward_range=self.reward_range,
            gate=self.gate,
            step=self.step,
            rule=self.rule,
            shortlist=self.shortlist,
            shrunken=self.shrunken,
            forget=self.forget,
            stats=None if self._fixed is not None else self._stats,
            head=self.head,
            notes=notes,
        )

    @classmethod
    def from_policy(
        cls,
        policy: Policy,
        rule: str | None = None,
        guidance: float | None = None,
        explore: bool = False,
        signal: Callable[[Reading], Tensor] | None = None,
        **expected: Any,
    ) -> Order:
        """An Order that acts as the policy says; None means as stored.

        With the statistics that a table policy carries, `observe` goes on learning from where the policy stood; an
        Order that must not learn is one on which nobody calls `observe`.

        Args:
            signal: your function, if the policy was fitted with one (functions are not stored).
            expected: header fields that must fit, such as `beta=1.0` or `cells=(8, 16, 1)`; see `Policy.expect`.
        """
        if not isinstance(policy, Policy):
            raise TypeError(f"policy is {policy!r}: expected a dprm.Policy; a file is read by dprm.Policy.load(path)")
        policy.expect(**expected)
        own = resolve_signal(signal) if signal is not None else signal_from_spec(policy.signal)
        if own.spec() != policy.signal:
            policy.expect(signal=own.spec())
        order = cls(
            *policy.cells.shape,
            beta=policy.beta,
            guidance=policy.guidance if guidance is None else guidance,
            warm=policy.gate.warm,
            switch=policy.gate.switch,
            ready=policy.gate.ready,
            signal=own,
            rule=policy.rule if rule is None else rule,
            shortlist=policy.shortlist,
            explore=explore,
            baseline=policy.baseline,
            reward_range=policy.reward_range,
            shrunken=policy.shrunken,
            forget=policy.forget,
            head=policy.head,
            warm_signal=None if policy.warm_signal is None else signal_from_spec(policy.warm_signal),
            tables=policy.cells.tables,
        )
        order.step = policy.step
        if policy.stats is not None:
            order._stats = policy.stats
        elif policy.head is None and bool((policy.table.support > 0).any()):
            order._fixed = policy.table
        return order
