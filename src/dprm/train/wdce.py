"""Weighted denoising cross-entropy (WDCE), the objective of DMPO.

The target of post-training is the reward-tilted path law p*(x) ∝ p_ref(x) e^{r(x)/α}. Importance weights turn G
rollouts of one prompt from the present law p_cur into samples of p*, and of its mirror image p⁻ ∝ p_ref e^{−r/α}:

    w = softmax_i(log_rnd_i + r_i/α)     w⁻ = softmax_i(log_rnd_i − r_i/α)     log_rnd = log p_ref − log p_cur
    A = w − λ w⁻                         loss = mean over prompts of Σ_i A_i · (1/|M_i|) Σ_{j∈M_i} CE_ij

What is decided, where sources leave it open:

- λ = 1 and no factor of the response length before the cross-entropy, as in the authors' trainer. Rollouts of a prompt
  are summed, prompts (and several masks of one rollout) are averaged, so a learning rate keeps its meaning when their
  number changes. α = 0.04: with rewards {0, 0.1, 1} the solved rollouts of a group share w almost evenly.
- With λ = 0 the minimum is p* itself. With λ = 1 the advantages of a group sum to 0: on one decision the loss is linear
  in the log-odds, so it has a direction (from p⁻ to p*) and no minimum. What ends it is that a group of equal rewards
  has A = 0, exactly: a prompt that is always solved, or never, is left alone.
- log_rnd compares bounds on the log-likelihood at temperature 1, both on the same masks (`objective.likelihood_bound`).
  Rollouts drawn at another temperature are treated as if they were not, as in the authors' trainer; the order is taken
  as given, only token probabilities enter. While the model is still the reference, log_rnd is 0.

Shapes: P prompts, G rollouts of each, R masks of each rollout, L positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dprm.order.checks import check_number, check_shape
from dprm.train.objective import masked_loss
from dprm.train.rollouts import RolloutCanvases


@dataclass(frozen=True)
class Wdce:
    """The objective.

    Attributes:
        alpha: temperature α of the tilt. negative: λ.
    """

    alpha: float = 0.04
    negative: float = 1.0

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0, open_low=True)
        check_number("negative", self.negative, 0)

    def __call__(self, logits: Tensor, canvases: RolloutCanvases) -> Tensor:
        advantage = self.advantages(canvases.reward, canvases.log_rnd)
        row_loss = masked_loss(logits, canvases.clean, canvases.masked).view(-1, *advantage.shape)
        return (advantage.to(row_loss.dtype) * row_loss).sum(-1).mean()

    def advantages(self, reward: Tensor, log_rnd: Tensor) -> Tensor:
        """A, [P,G] float64; 0 where all rollouts of a prompt have one reward and λ = 1."""
        wanted, unwanted = self.path_weights(reward, log_rnd)
        return wanted - self.negative * unwanted

    def path_weights(self, reward: Tensor, log_rnd: Tensor) -> tuple[Tensor, Tensor]:
        """w and w⁻, each [P,G] float64 with rows that sum to 1.

        Args:
            reward: [P,G]. A constant added to the rewards of a prompt changes nothing.
            log_rnd: [P,G] log p_ref − log p_cur of every rollout.
        """
        if reward.dim() != 2:
            raise ValueError(f"reward has shape {tuple(reward.shape)}: expected [prompts, rollouts of each]")
        check_shape("log_rnd", log_rnd, tuple(reward.shape), "one a rollout")
        exact, base = reward.double(), log_rnd.double()
        # Relative to the best of the group: equal rewards become exact zeros, so that w and w⁻ are the same bits.
        tilt = (exact - exact.amax(1, keepdim=True)) / self.alpha
        return (base + tilt).softmax(1), (base - tilt).softmax(1)
