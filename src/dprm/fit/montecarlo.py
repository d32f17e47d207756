"""Monte Carlo: values of the present canvas, asked of continuations from it. They hold for one prompt, and cost paths.

At some moments of a decoding the surest candidates are tried in turn: the canvas is forked, each candidate is revealed,
and every fork is finished by the host's own order, K times where tokens are drawn. With

    R̂ᴹᶜ_i = (1/β) log mean_k e^{β R_k}

the largest log ψ_i + guidance·β·R̂ᴹᶜ_i is revealed and the decoding goes on. The steps before a fork are paid once. What
is found is worth its price only against as many plain paths; `Rollout.calls` counts every call.

Nothing is learned before the prompt is there: a fit only writes down what will be asked, and its policy file makes no
order by itself, it says how to answer (`of_policy`). Shapes: B problems, N candidates, K paths, L positions.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.decode.counts import Fixed
from dprm.decode.loop import Model, Result, Step, advance, begin
from dprm.decode.state import State
from dprm.fit.run import Run
from dprm.host.host import Host, Problems
from dprm.host.rollout import CALLS, Rollout
from dprm.order.checks import check_count, check_number
from dprm.order.noise import mix, mix_rows
from dprm.order.order import Order
from dprm.order.policy import Policy

MONTE_CARLO = "montecarlo"
# The settings that a policy keeps in its note `local`; β and guidance are its own.
_NOTED = ("moments", "candidates", "paths", "temperature")


@dataclass(frozen=True)
class MonteCarlo:
    """Prompt-local values: an estimator that learns nothing, and a way of answering.

    Attributes:
        moments: shares of the decoding after which values are asked for.
        candidates: N, the surest of the canvas. paths: K, continuations of each; more than one needs a temperature.
        beta, guidance: of the tilt.
        temperature: of the tokens; None: the host's own.
    """

    moments: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    candidates: int = 4
    paths: int = 1
    beta: float = 1.0
    guidance: float = 10.0
    temperature: float | None = None

    name = MONTE_CARLO

    def __post_init__(self) -> None:
        check_count("candidates", self.candidates, 1)
        check_count("paths", self.paths, 1)
        for share in self.moments:
            check_number("moments", share, 0, 1)
        Order(beta=self.beta, guidance=self.guidance)

    def learn(self, run: Run) -> Policy:
        """Write down what will be asked of every prompt; no problem is decoded."""
        local = json.dumps({name: getattr(self, name) for name in _NOTED})
        order = Order(beta=self.beta, guidance=self.guidance, reward_range=run.host.reward_range)
        return order.policy(local=local)

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try."""
        return (1.0, 10.0)

    @classmethod
    def of_policy(cls, policy: Policy, guidance: float | None = None) -> MonteCarlo:
        """What a policy that was written by `learn` says to do; None takes its guidance."""
        if not is_local(policy):
            raise ValueError("the policy has no note 'local': its values are its own, and it is an Order")
        noted = json.loads(policy.notes["local"])
        noted["moments"] = tuple(noted["moments"])
        return cls(**noted, beta=policy.beta, guidance=policy.guidance if guidance is None else guidance)

    def spec(self) -> Any:
        return [MONTE_CARLO, asdict(self)]

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """Decode a batch; `calls` counts every call of every path, a decision is one that values were asked for."""
        began = time.perf_counter()
        hot = host if self.temperature is None else host.with_decoding(temperature=self.temperature)
        asking = _Asking(self, hot, problems, model, hot.decoding.order())
        state = begin(problems.canvas, hot.decoding, mix_rows(problems.key, mix(seed)), problems.context)
        steps = _steps(hot, state)
        calls, decisions, changed = (torch.zeros_like(state.initial) for _ in range(3))
        confidence = torch.full_like(state.tokens, torch.nan, dtype=torch.float32)
        for share in sorted(set(self.moments)):
            before = asking.go_on(state, until=(share * steps).long())
            decision = asking.decide(before.state)
            state = decision.state
            calls += before.row_nfe + decision.calls
            decisions += decision.asked
            changed += decision.changed
            for column in (before.trace.confidence, decision.confidence):
                confidence = torch.where(column.isnan(), confidence, column)
        last = asking.go_on(state)
        last.trace.confidence = torch.where(last.trace.confidence.isnan(), confidence, last.trace.confidence)
        scores = host.scores(problems, last.tokens.cpu())
        rollout = Rollout.of(last, scores, time.perf_counter() - began)
        decisions = decisions.cpu()
        return replace(
            rollout,
            calls={CALLS: (calls + last.row_nfe).cpu()},
            decisions=decisions,
            changed=changed.cpu(),
            picks=decisions,
            ready=decisions,
            gate=decisions.float(),
        )


def _steps(host: Host, state: State) -> Tensor:
    """[B] int64, the steps of every decoding, where the schedule fixes them."""
    count = host.decoding.count
    if isinstance(count, Fixed):
        return -(-state.initial // count.m)
    steps = getattr(count, "steps", None)
    if steps is None:
        raise ValueError(f"count is {count}: values at moments of a decoding need a fixed number of steps")
    return torch.full_like(state.initial, int(steps))


@dataclass(frozen=True)
class _Asking:
    """One batch of problems that values are asked for."""

    setting: MonteCarlo
    host: Host
    problems: Problems
    model: Model
    order: Order

    def go_on(self, state: State, until: Tensor | None = None, steps: list[Step] | None = None) -> Result:
        """Decode on as the host does."""
        on_step = None if steps is None else steps.append
        return advance(self.model, state, self.order, self.host.decoding, until=until, on_step=on_step)

    def decide(self, state: State) -> _Decision:
        """Reveal the best of the candidates, judged by continuations."""
        setting, problems = self.setting, self.problems
        record: list[Step] = []
        self.go_on(state, until=state.step + 1, steps=record)
        nothing, unseen = torch.zeros_like(state.initial), torch.full_like(state.tokens, torch.nan, dtype=torch.float32)
        if not record:
            return _Decision(state, nothing, nothing, nothing, unseen)
        # Rows that are finished have left the batch.
        row = record[0].state.row
        reading, choice = record[0].reading, record[0].choice
        score = torch.where(choice.candidates, choice.score, -torch.inf)
        top = score.topk(min(setting.candidates, score.shape[1]), 1)
        tries = top.indices.shape[1] * setting.paths
        fork = torch.arange(len(row), device=row.device).repeat_interleave(tries)
        position = top.indices.repeat_interleave(setting.paths, 1).flatten()
        real = torch.isfinite(top.values).repeat_interleave(setting.paths, 1).flatten()
        token = torch.where(real, reading.tokens[fork, position], state.tokens[row[fork], position])
        forked = state[row].fork(tries).reveal(position, token)
        if setting.paths > 1:
            number = torch.arange(len(fork), device=row.device) % setting.paths
            forked = replace(forked, seeds=mix_rows(forked.seeds ^ number, 1))
        ended = self.go_on(forked)
        answered = problems[row[fork].cpu()]
        scores = self.host.scores(answered, ended.tokens.cpu())
        reward = self.host.reward(scores).to(row.device)
        values = (setting.beta * reward.view(len(row), -1, setting.paths)).exp().mean(2).log() / setting.beta
        best = (top.values.double() + setting.guidance * setting.beta * values).argmax(1, keepdim=True)
        decided = choice.candidates.any(1)
        revealed = torch.zeros_like(choice.candidates).scatter(1, top.indices.gather(1, best), decided.unsqueeze(1))
        whole = torch.zeros_like(state.given)
        whole[row] = revealed
        tokens, confidence = state.tokens.clone(), unseen.clone()
        tokens[row] = torch.where(revealed, reading.tokens, state.tokens[row])
        confidence[row] = torch.where(revealed, reading.confidence, unseen[row])
        after = replace(
            state,
            tokens=tokens,
            # It goes with what the next step reveals.
            step_map=torch.where(whole, (state.step + 1).int().unsqueeze(1), state.step_map),
        )
        columns = torch.zeros(3, len(state), dtype=torch.int64, device=row.device)
        # A path is paid for where there was something to try; the look at the canvas is one more call.
        columns[0, row] = (ended.row_nfe * real).view(len(row), -1).sum(1) + decided
        columns[1, row] = decided.long()
        columns[2, row] = (decided & (best.squeeze(1) != 0)).long()
        return _Decision(after, columns[0], columns[1], columns[2], confidence)


def is_local(policy: Policy) -> bool:
    """Whether a policy has no values of its own and says how to ask for them, prompt by prompt."""
    return "local" in policy.notes


@dataclass(frozen=True)
class _Decision:
    """The state after a decision; calls, whether values were asked for, and whether they changed it, each [B].

    `confidence` [B,L] is that of the position that was revealed, NaN elsewhere.
    """

    state: State
    calls: Tensor
    asked: Tensor
    changed: Tensor
    confidence: Tensor
