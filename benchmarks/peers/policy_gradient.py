"""Two peers: an unmasking policy trained by policy gradient with a KL penalty, on a frozen host.

    π(i | s) ∝ ψ_i · e^{f_i},   loss = −E[A · min(ρ, clip(ρ))] + λ · KL(π ‖ ψ),   A the reward centred in its prompt

Several trajectories of every prompt are drawn from the policy as it stands, positions without replacement (Plackett and
Luce); a few decisions of each are kept, and the clipped ratio ρ of new to old probability is followed for some epochs.
The features and the host's signal are those of the branched head. Deployed, it takes the largest scores.

What is rewarded is the terminal reward (the objective of UPO), or the likelihood of the path, without any verifier (the
objective of SAS, as far as its abstract tells): a decision at step t earns the sum of log p of all tokens that are
revealed from t on, centred and scaled among the trajectories of the same prompt at the same step.

Shapes: B trajectories, S decisions, m positions a step, L positions, F features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dprm.decode.loop import Result, Step, advance, begin
from dprm.fit.cost import Cost
from dprm.fit.run import Run
from dprm.host.host import Problems
from dprm.order import Order, Policy, Reading
from dprm.order.head import Head, Sight
from dprm.order.noise import DRAW, Stream, mix, mix_rows
from dprm.order.signals import Odds

_BARRED = -1e4


@dataclass(frozen=True)
class DrawnOdds(Odds):
    """Log odds and a standard Gumbel variate: the largest scores are then draws without replacement ∝ ψ · e^f."""

    name: ClassVar[str] = "drawn odds"
    needs_noise: ClassVar[bool] = True

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        if stream is None:
            raise ValueError("signal 'drawn odds' needs a seed")
        return super().value(reading, stream) - stream.log_uniform(reading.tokens.shape[1], DRAW).neg_().log_()


@dataclass(frozen=True)
class PolicyGradient:
    """The policy-gradient estimator.

    Attributes:
        prompts: prompts a round. samples: trajectories of each prompt.
        decisions: decisions of a trajectory that are learned from, on average.
        epochs, batch: passes over them, and decisions of a step. rate: learning rate. clip: of the ratio.
        penalty: λ, of the divergence from the host's order.
        reach: neighbours that the head sees on each side.
        path: reward the likelihood of the path instead of the answer.
    """

    prompts: int = 128
    samples: int = 8
    decisions: int = 12
    epochs: int = 2
    batch: int = 4096
    rate: float = 1e-3
    clip: float = 0.2
    penalty: float = 0.01
    reach: int = 4
    path: bool = False

    @property
    def name(self) -> str:
        """As in cards."""
        return "path_likelihood" if self.path else "policy_gradient"

    def learn(self, run: Run) -> Policy:
        """Fit; see `dprm.fit.fit`. Nothing is kept: a fit that was killed begins again."""
        rounds = max(1, int((run.calls - run.cost.calls) / (run.steps * self.prompts * self.samples)))
        run.reserve(rounds * self.prompts)
        states = run.host.decoding.states
        empty = Head.empty(states, self.reach, rounds * self.prompts * self.samples)
        weight = empty.weight.to(run.take(0).canvas.device).requires_grad_()
        optimiser = torch.optim.AdamW([weight], self.rate, (0.9, 0.99), weight_decay=0.01)
        for turn in range(rounds):
            problems = run.take(self.prompts).copies(self.samples)
            head = replace(empty, weight=weight.detach().clone())
            sight, picked, advantage = self._drawn(run, problems, head, turn)
            if len(picked):
                self._follow(empty, weight, optimiser, sight, picked, advantage, mix(run.seed, turn))
        return self._order(run, replace(empty, weight=weight.detach().cpu()), Odds()).policy()

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try: as it was trained."""
        return (1.0,)

    def _order(self, run: Run, head: Head, signal: Odds) -> Order:
        host = run.host
        return Order(
            aux=host.decoding.states, signal=signal, ready=1, reward_range=host.reward_range, head=head, guidance=1.0
        )

    def _drawn(self, run: Run, problems: Problems, head: Head, turn: int) -> tuple[Sight, Tensor, Tensor]:
        """Decisions of trajectories drawn from the policy: what was seen, what was picked, and what came of it."""
        host, order = run.host, self._order(run, head, DrawnOdds())
        share = min(1.0, self.decisions / run.steps)
        sights, picked, rows, steps, rewards, returns = [], [], [], [], [], []
        model = host.model()
        for start in range(0, len(problems), run.rows):
            batch = problems[start : start + run.rows]
            seen: list[tuple[Tensor, Tensor, Sight, Tensor]] = []

            def on_step(step: Step, seen: list[tuple[Tensor, Tensor, Sight, Tensor]] = seen) -> None:
                state, choice = step.state, step.choice
                lot = Stream(mix_rows(state.seeds, state.step, 1), 0.0, len(state), state.tokens.device)
                kept = (lot.log_uniform(1, DRAW).exp().squeeze(1) < share) & choice.mask.any(1)
                index = kept.nonzero().flatten()
                aux = None
                if host.decoding.state_of is not None:
                    aux = host.decoding.state_of(state.tokens, step.reading)
                sight = Sight.of(step.reading, choice.candidates, choice.budget, step.progress, aux)
                chosen = torch.where(choice.kept, choice.picked, -1)
                seen.append((state.row[index], state.step[index], sight[index], chosen[index]))

            seeds = mix_rows(batch.key, mix(run.seed, turn))
            state = begin(batch.canvas, host.decoding, seeds, batch.context)
            result = advance(model, state, order, host.decoding, on_step=on_step)
            rewards.append(host.reward(host.scores(batch, result.tokens.cpu())))
            run.cost += Cost(rollouts=len(batch), calls=int(result.row_nfe.sum()))
            # In the order of the rows, whatever batch they were in.
            row, step = torch.cat([each[0] for each in seen]), torch.cat([each[1] for each in seen])
            home = (row * (int(step.max()) + 1) + step).argsort() if len(row) else row
            wide = max(each[3].shape[1] for each in seen)
            padded = [torch.nn.functional.pad(each[3], (0, wide - each[3].shape[1]), value=-1) for each in seen]
            sights.append(Sight.joined([each[2] for each in seen])[home])
            picked.append(torch.cat(padded)[home])
            rows.append(row[home] + start)
            steps.append(step[home])
            returns.append(returned(result, row[home], step[home]))
            if run.on_progress is not None:
                run.on_progress(run.cost.calls, "trajectories")
        wide = max(each.shape[1] for each in picked)
        whole = torch.cat([torch.nn.functional.pad(each, (0, wide - each.shape[1]), value=-1) for each in picked])
        row, group = torch.cat(rows), problems.groups.cpu()
        if self.path:
            # Decisions are compared with those of the same prompt at the same step.
            at = torch.cat(steps).cpu()
            advantage = _advantage(torch.cat(returns).cpu(), mix_rows(group[row.cpu()], 5) + at).to(whole.device)
        else:
            advantage = _advantage(torch.cat(rewards), group).to(whole.device)[row]
        told = advantage != 0
        return Sight.joined(sights)[told], whole[told], advantage[told]

    def _follow(
        self,
        empty: Head,
        weight: Tensor,
        optimiser: torch.optim.Optimizer,
        sight: Sight,
        picked: Tensor,
        advantage: Tensor,
        seed: int,
    ) -> None:
        """Some epochs of clipped policy gradient."""
        with torch.no_grad():
            pieces = [slice(start, start + self.batch) for start in range(0, len(picked), self.batch)]
            before = torch.cat([log_probability(empty, weight, sight[piece], picked[piece])[0] for piece in pieces])
        generator = torch.Generator().manual_seed(seed)
        for _ in range(self.epochs):
            shuffled = torch.randperm(len(picked), generator=generator).to(picked.device)
            for start in range(0, len(picked), self.batch):
                rows = shuffled[start : start + self.batch]
                now, divergence = log_probability(empty, weight, sight[rows], picked[rows])
                ratio = (now - before[rows]).clamp(-5, 5).exp()
                clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
                gain = torch.minimum(ratio * advantage[rows], clipped * advantage[rows]).mean()
                optimiser.zero_grad()
                (self.penalty * divergence.mean() - gain).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_([weight], 1.0)
                optimiser.step()


def returned(result: Result, row: Tensor, step: Tensor) -> Tensor:
    """[n] float64: of decisions in some rows after so many steps, the sum of log p of all that is revealed later."""
    surprise = result.trace.confidence.double().clamp(min=1e-30).log().nan_to_num(0.0)[row]
    return (surprise * (result.step_map[row] > step.unsqueeze(1))).sum(1)


def log_probability(head: Head, weight: Tensor, sight: Sight, picked: Tensor) -> tuple[Tensor, Tensor]:
    """[S] log probability of drawing picked [S,m] one after the other (−1: none), and [S] KL(π ‖ ψ) of the first draw.

    Args:
        head: its features. weight: [F], its weights.
    """
    reading = Reading(sight.tokens, sight.confidence, sight.margin, sight.entropy)
    log_psi = Odds().value(reading, None).float().masked_fill(~sight.candidates, _BARRED)
    score = (log_psi + head.features(sight) @ weight).masked_fill(~sight.candidates, _BARRED)
    policy, host = score.log_softmax(1), log_psi.log_softmax(1)
    divergence = torch.where(sight.candidates, policy.exp() * (policy - host), 0.0).sum(1)
    total = torch.zeros_like(divergence)
    for position in picked.unbind(1):
        column = position.clamp(min=0).unsqueeze(1)
        real = position >= 0
        total = total + torch.where(real, score.log_softmax(1).gather(1, column).squeeze(1), 0.0)
        score = torch.where(real.unsqueeze(1), score.scatter(1, column, _BARRED), score)
    return total, divergence


def _advantage(reward: Tensor, group: Tensor) -> Tensor:
    """[B] float32: rewards centred and scaled inside their prompt; 0 where all trajectories of it earn the same."""
    _, member = torch.unique(group, return_inverse=True)
    size = torch.bincount(member)
    mean = torch.zeros(len(size), dtype=torch.float64).index_add_(0, member, reward) / size
    centred = reward - mean[member]
    spread = (torch.zeros(len(size), dtype=torch.float64).index_add_(0, member, centred.square()) / size).sqrt()
    return torch.where(spread[member] > 1e-6, centred / spread[member].clamp(min=1e-6), 0.0).float()
