"""The peer: an unmasking policy trained by policy gradient with a KL penalty, on a frozen host.

    π(i | s) ∝ ψ_i · e^{f_i},   loss = −E[A · min(ρ, clip(ρ))] + λ · KL(π ‖ ψ),   A the reward centred in its prompt

Several trajectories of every prompt are drawn from the policy as it stands, positions without replacement (Plackett and
Luce); a few decisions of each are kept, and the clipped ratio ρ of new to old probability is followed for some epochs.
The features and the host's signal are those of the branched head; it has a network on top of the linear part, which the
branched head does without. Deployed, it takes the largest scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dprm.decode.loop import Denoiser
from dprm.decode.state import State
from dprm.fit.branching import positions_a_step
from dprm.fit.cost import Cost
from dprm.fit.resume import check_same_fit
from dprm.host.host import Host, Problems
from dprm.host.rollout import run
from dprm.order import Choice, Order, Policy, Reading
from dprm.order.files import read_tensors, write_tensors
from dprm.order.head import Head, HeadShape, Sight
from dprm.order.noise import mix, mix_rows
from dprm.order.signals import Odds

_KIND = "dprm.policy_gradient"
_BARRED = -1e4


@dataclass(frozen=True)
class PolicyGradient:
    """The policy-gradient estimator.

    Attributes:
        rounds: updates of the policy. prompts: prompts a round. samples: trajectories of each prompt.
        decisions: decisions of a round's trajectories that are learned from.
        epochs, batch: passes over them, and decisions of a step. rate: learning rate. clip: of the ratio.
        penalty: λ, of the divergence from the host's order.
        width: positions revealed a step; None: the host's own budget. head_width: size of the network.
        linear: whether the linear part is trained along with the network, or stays 0.
        seed: of everything.
    """

    rounds: int = 64
    prompts: int = 128
    samples: int = 8
    decisions: int = 12
    epochs: int = 2
    batch: int = 4096
    rate: float = 1e-3
    clip: float = 0.2
    penalty: float = 0.01
    width: int | None = None
    head_width: int = 64
    linear: bool = True
    seed: int = 0

    def fit(
        self, host: Host, problems: Problems, path: Path, on_round: Callable[[int, float], None] | None = None
    ) -> Policy:
        """Fit, or go on fitting from the round kept beside `path`.

        Args:
            problems: the fit split; rounds walk through it again and again.
            on_round: called with (rounds done, mean reward of the round).
        """
        if not len(problems):
            raise ValueError("problems is empty: a fit needs at least one prompt")
        notes = {"host": host.name, "estimator": "policy_gradient", "problems": problems.digest, "setting": repr(self)}
        learner = _Learner(self, host, problems)
        first = learner.restore(path.with_name(f"{path.name}.learner"), notes)
        denoiser = host.denoiser()
        for turn in range(first, self.rounds):
            place = (torch.arange(self.prompts) + turn * self.prompts) % len(problems)
            part, group = problems.sampled(place, self.samples)
            reward = learner.round(part, group, denoiser, turn)
            learner.save(path.with_name(f"{path.name}.learner"), notes, turn + 1)
            learner.policy(notes).save(path)
            if on_round is not None:
                on_round(turn + 1, reward)
        return learner.policy(notes)


class _Learner:
    """A head, its optimiser, and what it has cost."""

    def __init__(self, setting: PolicyGradient, host: Host, problems: Problems):
        self.setting, self.host = setting, host
        shape = HeadShape(host.aux_states, width=setting.head_width)
        self.head = Head(shape, setting.seed, support=setting.rounds * setting.prompts * setting.samples)
        self.head.to(problems.canvas.device)
        self.head.linear.requires_grad_(setting.linear)
        trained = [weight for weight in self.head.parameters() if weight.requires_grad]
        self.optimiser = torch.optim.AdamW(trained, setting.rate, (0.9, 0.99), weight_decay=0.01)
        self.width = positions_a_step(host, setting.width)
        self.cost = Cost()

    def order(self, sampling: bool) -> Order:
        """The policy as it stands: drawn from, or its largest scores."""
        return Order(
            aux=self.host.aux_states,
            signal="odds",
            ready=1,
            rule="shortlist_top_m" if sampling else "top_m",
            shortlist=(1, self.width, 1),
            explore=sampling,
            proposal="tilted",
            reward_range=self.host.reward_range,
            head=self.head,
        )

    def policy(self, notes: dict[str, str]) -> Policy:
        """Frozen, to be deployed."""
        return self.order(sampling=False).policy(**notes, **self.cost.notes())

    def round(self, problems: Problems, group: Tensor, denoiser: Denoiser, turn: int) -> float:
        """Draw trajectories, and follow the gradient of their rewards; returns the mean reward."""
        setting, seeds = self.setting, mix_rows(problems.key, mix(self.setting.seed, turn))
        seen: list[tuple[Sight, Tensor]] = []

        def on_step(state: State, reading: Reading, choice: Choice) -> None:
            progress = 1.0 - (state.tokens == self.host.mask_id).sum(1) / state.initial.clamp(min=1)
            aux = self.host.aux(state, reading) if self.host.aux_states > 1 else None
            seen.append((Sight.of(reading, choice.candidates, self.width, progress, aux), choice.picked))

        result = run(
            self.host,
            problems.canvas,
            self.order(sampling=True),
            denoiser=denoiser,
            budget=self.width,
            seed=seeds,
            on_step=on_step,
        )
        reward = self.host.reward(problems, result.tokens.cpu()).double()
        self.cost += Cost(rollouts=len(problems), calls=int(result.row_nfe.sum()))
        advantage = _advantage(reward, group).to(problems.canvas.device)
        rows = (advantage != 0).nonzero().flatten()
        generator = torch.Generator().manual_seed(mix(setting.seed, turn, 1))
        steps = torch.randperm(len(seen), generator=generator)[: setting.decisions].tolist()
        if len(rows):
            sight = Sight.joined([seen[step][0][rows] for step in steps])
            picked = torch.cat([seen[step][1][rows] for step in steps])
            self._follow(sight, picked, advantage[rows].repeat(len(steps)), generator)
        return float(reward.mean())

    def _follow(self, sight: Sight, picked: Tensor, advantage: Tensor, generator: torch.Generator) -> None:
        setting = self.setting
        with torch.no_grad():
            pieces = [slice(start, start + setting.batch) for start in range(0, len(picked), setting.batch)]
            before = torch.cat([log_probability(self.head, sight[piece], picked[piece])[0] for piece in pieces])
        for _ in range(setting.epochs):
            shuffled = torch.randperm(len(picked), generator=generator).to(picked.device)
            for start in range(0, len(picked), setting.batch):
                rows = shuffled[start : start + setting.batch]
                now, divergence = log_probability(self.head, sight[rows], picked[rows])
                ratio = (now - before[rows]).clamp(-5, 5).exp()
                clipped = ratio.clamp(1 - setting.clip, 1 + setting.clip)
                gain = torch.minimum(ratio * advantage[rows], clipped * advantage[rows]).mean()
                self.optimiser.zero_grad()
                (setting.penalty * divergence.mean() - gain).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
                self.optimiser.step()

    def save(self, path: Path, notes: dict[str, str], turn: int) -> None:
        """Everything the next round depends on."""
        tensors: dict[str, Tensor] = {f"head.{name}": weight for name, weight in self.head.named_parameters()}
        for name, weight in self.head.named_parameters():
            for moment, value in self.optimiser.state.get(weight, {}).items():
                tensors[f"{moment}.{name}"] = value
        write_tensors(path, tensors, {"kind": _KIND, **notes, **self.cost.notes(), "turn": turn})

    def restore(self, path: Path, notes: dict[str, str]) -> int:
        """The round to go on with: 0 where nothing is kept."""
        if not path.is_file():
            return 0
        tensors, header = read_tensors(path, _KIND)
        check_same_fit(path, header, notes)
        for name, weight in self.head.named_parameters():
            with torch.no_grad():
                weight.copy_(tensors[f"head.{name}"])
            moments = ("step", "exp_avg", "exp_avg_sq")
            if f"step.{name}" in tensors:
                state = {moment: tensors[f"{moment}.{name}"] for moment in moments}
                self.optimiser.state[weight] = {
                    moment: value if moment == "step" else value.to(weight.device) for moment, value in state.items()
                }
        self.cost = Cost.of_notes(header)
        return int(header["turn"])


def log_probability(head: Head, sight: Sight, picked: Tensor) -> tuple[Tensor, Tensor]:
    """[S] log probability of drawing picked [S,m] one after the other, and [S] KL(π ‖ ψ) of the first draw."""
    reading = Reading(sight.tokens, sight.confidence, sight.margin, sight.entropy)
    log_psi = Odds().value(reading, None).float().masked_fill(~sight.candidates, _BARRED)
    score = (log_psi + head(sight)).masked_fill(~sight.candidates, _BARRED)
    policy, host = score.log_softmax(1), log_psi.log_softmax(1)
    divergence = torch.where(sight.candidates, policy.exp() * (policy - host), 0.0).sum(1)
    total = torch.zeros_like(divergence)
    for place in picked.unbind(1):
        column = place.unsqueeze(1)
        open_ = score.gather(1, column).squeeze(1) > _BARRED / 2
        total = total + torch.where(open_, score.log_softmax(1).gather(1, column).squeeze(1), 0.0)
        score = score.scatter(1, column, _BARRED)
    return total, divergence


def _advantage(reward: Tensor, group: Tensor) -> Tensor:
    """[B] float32: rewards centred and scaled inside their prompt; 0 where all trajectories of it earn the same."""
    _, member = torch.unique(group, return_inverse=True)
    size = torch.bincount(member)
    mean = torch.zeros(len(size), dtype=torch.float64).index_add_(0, member, reward) / size
    centred = reward - mean[member]
    spread = (torch.zeros(len(size), dtype=torch.float64).index_add_(0, member, centred.square()) / size).sqrt()
    return torch.where(spread[member] > 1e-6, centred / spread[member].clamp(min=1e-6), 0.0).float()
