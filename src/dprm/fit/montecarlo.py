"""Monte Carlo: values of the present canvas, asked of continuations from it. They hold for one prompt, and cost paths.

At some moments of a decoding the surest candidates are tried in turn: the canvas is forked, each candidate is revealed,
and every fork is finished by the host's own order, K times where tokens are drawn. With

    R̂ᴹᶜ_i = (1/β) log mean_k e^{β R_k}

the largest log ψ_i + guidance·β·R̂ᴹᶜ_i is revealed and the decoding goes on. The steps before a fork are paid once. What
is found is worth its price only against as many plain paths; `Rollout.nfe` counts every call.

Nothing is learned before the prompt is there: a fit only writes down what will be asked, and its policy file makes no
order by itself, it says how to answer (`of_policy`). Shapes: B problems, N candidates, K paths, L positions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from dprm.decode.loop import Denoiser, Result
from dprm.decode.state import State
from dprm.fit.branching import positions_a_step
from dprm.fit.resume import check_same_fit
from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout, run
from dprm.order import Choice, Order, Policy, Reading
from dprm.order.noise import mix, mix_rows

MONTE_CARLO = "montecarlo"
# The settings that a policy keeps in its note `local`; β and guidance are its own.
_KEPT = ("moments", "candidates", "paths", "temperature")


@dataclass(frozen=True)
class MonteCarlo:
    """Prompt-local values.

    Attributes:
        moments: shares of the decoding after which values are asked for.
        candidates: N, the surest of the canvas. paths: K, continuations of each; more than one needs a temperature.
        beta, guidance: of the tilt.
        width: positions revealed a step; None: the host's own budget.
        temperature: of the tokens; None: the host's own. seed: of everything.
    """

    moments: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    candidates: int = 4
    paths: int = 1
    beta: float = 1.0
    guidance: float = 10.0
    width: int | None = None
    temperature: float | None = None
    seed: int = 0

    def fit(
        self, host: Host, problems: Problems, path: Path, on_round: Callable[[int, float], None] | None = None
    ) -> Policy:
        """Write down what will be asked of every prompt; no problem is decoded.

        Args:
            problems, on_round: as other estimators have them; there is nothing to be learned from the first.
        """
        notes = {"host": host.name, "estimator": MONTE_CARLO, "setting": repr(self)}
        if path.is_file():
            check_same_fit(path, Policy.load(path).notes, notes)
        else:
            local = json.dumps({name: getattr(self, name) for name in _KEPT})
            order = Order(beta=self.beta, guidance=self.guidance, reward_range=host.reward_range)
            order.policy(**notes, local=local).save(path)
        if on_round is not None:
            on_round(1, 0.0)
        return Policy.load(path)

    @classmethod
    def of_policy(
        cls, policy: Policy, guidance: float | None = None, width: int | None = None, seed: int = 0
    ) -> MonteCarlo:
        """What a policy that was written by `fit` says to do; None takes its guidance and the host's own budget."""
        if not is_local(policy):
            raise ValueError("the policy has no note 'local': its values are its own, and it is an Order")
        kept = json.loads(policy.notes["local"])
        kept["moments"] = tuple(kept["moments"])
        asked = policy.guidance if guidance is None else guidance
        return cls(**kept, beta=policy.beta, guidance=asked, width=width, seed=seed)

    def batches(
        self, host: Host, problems: Problems, order: Order, rows: int = 64, denoiser: Denoiser | None = None
    ) -> Iterator[Rollout]:
        """Decode `rows` problems at a time.

        `nfe` counts every call of every path; a decision is one that values were asked for.
        """
        model = host.denoiser() if denoiser is None else denoiser
        for start in range(0, len(problems), rows):
            yield self._answer(host, problems[start : start + rows], order, model)

    def _answer(self, host: Host, problems: Problems, order: Order, model: Denoiser) -> Rollout:
        began = time.perf_counter()
        width = positions_a_step(host, self.width)
        state = State.start(problems.canvas, host.mask_id, mix_rows(problems.key, mix(self.seed)))
        steps = -(-int(state.initial.max()) // width)
        calls, asked, changed = (torch.zeros_like(state.initial) for _ in range(3))
        confidence = torch.full_like(state.tokens, torch.nan, dtype=torch.float32)

        go_on = partial(run, host, order=order, denoiser=model, budget=width, temperature=self.temperature)
        for moment in sorted({int(share * steps) for share in self.moments}):
            before = go_on(state, until=moment)
            decision = self._decide(host, problems, before.state, go_on)
            state = decision.state
            calls += before.row_nfe + decision.calls
            asked += decision.asked
            changed += decision.changed
            for part in (before.trace.confidence, decision.confidence):
                confidence = torch.where(part.isnan(), confidence, part)
        last = go_on(state)
        confidence = torch.where(last.trace.confidence.isnan(), confidence, last.trace.confidence)
        tokens = last.tokens.cpu()
        return Rollout(
            tokens=tokens,
            step_map=last.step_map.cpu(),
            confidence=confidence.cpu(),
            reward=host.reward(problems, tokens).float().cpu(),
            nfe=(calls + last.row_nfe).cpu(),
            decisions=asked.cpu(),
            changed=changed.cpu(),
            picks=asked.cpu(),
            ready=asked.cpu(),
            gate=asked.float().cpu(),
            seconds=torch.full((len(problems),), (time.perf_counter() - began) / len(problems)),
        )

    def _decide(self, host: Host, problems: Problems, state: State, go_on: Callable[..., Result]) -> _Decision:
        """Reveal the best of the candidates, judged by continuations."""
        seen: list[tuple[Reading, Choice]] = []
        go_on(state, until=state.step + 1, on_step=lambda _, reading, choice: seen.append((reading, choice)))
        nothing, unseen = torch.zeros_like(state.initial), torch.full_like(state.tokens, torch.nan, dtype=torch.float32)
        if not seen:
            return _Decision(state, nothing, nothing, nothing, unseen)
        reading, choice = seen[0]
        top = torch.where(choice.candidates, choice.score, -torch.inf).topk(
            min(self.candidates, len(choice.score[0])), 1
        )
        tries = top.indices.shape[1] * self.paths
        row = torch.arange(len(problems), device=state.tokens.device).repeat_interleave(tries)
        place = top.indices.repeat_interleave(self.paths, 1).flatten()
        real = torch.isfinite(top.values).repeat_interleave(self.paths, 1).flatten()
        token = torch.where(real, reading.tokens[row, place], state.tokens[row, place])
        forked = state.fork(tries).reveal(place, token)
        if self.paths > 1:
            forked.seeds = mix_rows(forked.seeds ^ (torch.arange(len(row), device=row.device) % self.paths), 1)
        ended = go_on(forked)
        reward = host.reward(problems[row], ended.tokens.cpu()).double().to(row.device)
        values = (self.beta * reward.view(len(problems), -1, self.paths)).exp().mean(2).log() / self.beta
        best = (top.values.double() + self.guidance * self.beta * values).argmax(1, keepdim=True)
        asked = choice.candidates.any(1)
        revealed = torch.zeros_like(state.given).scatter(1, top.indices.gather(1, best), asked.unsqueeze(1))
        state.tokens = torch.where(revealed, reading.tokens, state.tokens)
        # It goes with what the next step reveals.
        state.step_map = state.step_map.masked_fill(revealed, state.step + 1)
        return _Decision(
            state=state,
            # A path is paid for where there was something to try; the look at the canvas is one more call.
            calls=(ended.row_nfe * real).view(len(problems), -1).sum(1) + asked,
            asked=asked.long(),
            changed=(asked & (best.squeeze(1) != 0)).long(),
            confidence=torch.where(revealed, reading.confidence, unseen),
        )


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
