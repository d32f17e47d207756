"""The one training loop of all small hosts: masked diffusion with a mask law that can be exchanged.

    loss = (1/B) Σ_b (1/|M_b|) Σ_{i∈M_b} −log p_θ(x⁰_i | x_t)

What a step does is a function of (weights, optimiser, law's state, step) and of nothing else; a checkpoint holds these
four, so a training that is killed and resumed on a CPU ends in the same bits as one that was not.
Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dprm.host.progress import Progress
from dprm.train import checkpoint
from dprm.train.masks import MaskLaw
from dprm.train.recipe import Recipe, Stopwatch
from dprm.train.transformer import Transformer

Evaluation = Callable[[Transformer], dict[str, float]]


def masked_loss(logits: Tensor, clean: Tensor, masked: Tensor) -> Tensor:
    """[B] mean cross-entropy over the masked positions of each row; every row must have one."""
    loss = F.cross_entropy(logits.float().flatten(0, 1), clean.flatten(), reduction="none").view(clean.shape)
    return (loss * masked).sum(1) / masked.sum(1)


class Training:
    """One training: the model and everything that moves with it.

    Args:
        model: on its device; trained in place.
        law: canvases of every step, on the same device.
        recipe: the numbers.
        folder: holds `checkpoint.safetensors` and `log.jsonl`; a checkpoint there is resumed.
        evaluate: called with the averaged model; its numbers are logged and shown.
        teach: called with (averaged model, step) every `recipe.teach_every` steps; returns a number to log.
        title: for the progress display.

    Attributes:
        average: the averaged model, the one to use.
        step, steps: steps made, and steps in all (None until a time limit has become a number).
    """

    def __init__(
        self,
        model: Transformer,
        law: MaskLaw,
        recipe: Recipe,
        folder: Path,
        evaluate: Evaluation | None = None,
        title: str = "train",
        teach: Callable[[Transformer, int], float] | None = None,
    ):
        self.teach = teach
        self.model, self.law, self.recipe, self.folder = model, law, recipe, folder
        self.evaluate, self.title = evaluate, title
        self.device = next(model.parameters()).device
        self.average = copy.deepcopy(model).requires_grad_(False).eval()
        matrices = [weight for weight in model.parameters() if weight.dim() > 1]
        gains = [weight for weight in model.parameters() if weight.dim() == 1]
        self.optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": recipe.decay}, {"params": gains, "weight_decay": 0.0}],
            lr=recipe.rate,
            betas=recipe.betas,
            fused=self.device.type == "cuda",
        )
        self.step, self.steps = 0, recipe.steps
        self._spent = 0.0
        self._evaluating = 0.0
        self._scores: dict[str, float] = {}
        self._forward = torch.compile(model) if recipe.compiled else model
        if self.path.is_file():
            self._resume()
        # Also without a checkpoint: a kill before the first one leaves a log.
        _forget_after(self.folder / "log.jsonl", self.step)

    @property
    def path(self) -> Path:
        """Where the checkpoint is."""
        return self.folder / "checkpoint.safetensors"

    def run(self, until: int | None = None) -> dict[str, float]:
        """Train to the end, or until step `until`, and return the last evaluation."""
        self.folder.mkdir(parents=True, exist_ok=True)
        watch = Stopwatch(self.recipe, self._spent, self.device)
        saved = shown = time.monotonic()
        shown_step = self.step
        with Progress(self.title) as progress, (self.folder / "log.jsonl").open("a") as log:
            while not self._over(until):
                if self.steps is None:
                    self.steps = watch.steps(self.step)
                    if self.steps is not None:
                        progress.say(f"{self.steps} steps fit into {self.recipe.minutes} minutes")
                loss, norm = self._update()
                if self.teach is not None and self.step % self.recipe.teach_every == 0:
                    _write(log, step=self.step, taught=self.teach(self.average, self.step))
                if self.step % self.recipe.log_every == 0 or self.step == self.steps:
                    facts = {"loss": loss.item(), "norm": norm.item()}
                    now = time.monotonic()
                    rate = (self.step - shown_step) / max(now - shown, 1e-9)
                    shown, shown_step = now, self.step
                    _write(log, step=self.step, rate=self.recipe.rate_at(self.step - 1, self.steps), **facts)
                    progress.show(self.step, self.steps, **facts, steps_per_s=rate, minutes=watch.seconds() / 60)
                if self._evaluation_due(watch):
                    self._evaluate(progress, log)
                    shown, shown_step = time.monotonic(), self.step
                if time.monotonic() - saved > self.recipe.save_every or self.step == self.steps:
                    self._spent = watch.seconds()
                    self.save()
                    saved = time.monotonic()
        self._spent = watch.seconds()
        return self._scores

    def _over(self, until: int | None) -> bool:
        return any(end is not None and self.step >= end for end in (self.steps, until))

    def _update(self) -> tuple[Tensor, Tensor]:
        """One step: loss and gradient norm, without waiting for them."""
        loss, logits = self._loss()
        torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.rate_at(self.step, self.steps)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.no_grad():
            averages: list[Tensor] = list(self.average.parameters())
            weights: list[Tensor] = list(self.model.parameters())
            torch._foreach_lerp_(averages, weights, 1.0 - self.recipe.average_at(self.step))
        self.law.advance(self.step, logits.detach())
        self.step += 1
        return loss.detach(), norm

    def _loss(self) -> tuple[Tensor, Tensor]:
        """The loss and the logits of this step."""
        clean, noisy, masked = self.law.canvases(self.step)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            logits = self._forward(noisy)
        return masked_loss(logits, clean, masked).mean(), logits

    def _evaluation_due(self, watch: Stopwatch) -> bool:
        if self.evaluate is None or self.steps is None:
            return False
        if self.step == self.steps:
            return True
        due = self.step % -(-self.steps // self.recipe.evaluations) == 0
        return due and watch.allows_evaluation(self._evaluating)

    def _evaluate(self, progress: Progress, log: Any) -> None:
        assert self.evaluate is not None
        start = time.monotonic()
        self._scores = self.evaluate(self.average)
        self._evaluating += time.monotonic() - start
        _write(log, step=self.step, **self._scores)
        progress.say(f"step {self.step}: " + "  ".join(f"{name} {value:.4g}" for name, value in self._scores.items()))

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the checkpoint."""
        tensors = checkpoint.with_prefix("model", dict(self.model.named_parameters()))
        tensors |= checkpoint.with_prefix("average", dict(self.average.named_parameters()))
        tensors |= checkpoint.with_prefix("law", self.law.state())
        for index, moments in self.optimiser.state_dict()["state"].items():
            tensors |= checkpoint.with_prefix(f"optimiser.{index}", moments)
        facts = {
            "step": self.step,
            "steps": self.steps,
            "spent": self._spent,
            "scores": self._scores,
            "recipe": asdict(self.recipe),
            "model": self.model.config.to_dict(),
        }
        checkpoint.save(self.path, tensors, facts)

    def _resume(self) -> None:
        tensors, facts = checkpoint.load(self.path, self.device)
        if facts["model"] != json.loads(json.dumps(self.model.config.to_dict())):
            raise ValueError(f"{self.path} belongs to a model {facts['model']}: choose another folder or delete it")
        # A tied output matrix is written once, under the name of the embedding.
        strict = not self.model.config.tied
        self.model.load_state_dict(checkpoint.part("model", tensors), strict=strict)
        self.average.load_state_dict(checkpoint.part("average", tensors), strict=strict)
        self.law.restore(checkpoint.part("law", tensors))
        moments = checkpoint.part("optimiser", tensors)
        state = self.optimiser.state_dict()
        count = sum(len(group["params"]) for group in state["param_groups"])
        state["state"] = {index: checkpoint.part(str(index), moments) for index in range(count)} if moments else {}
        self.optimiser.load_state_dict(state)
        self.step, self.steps = facts["step"], facts["steps"]
        self._spent, self._scores = facts["spent"], facts["scores"]


def _write(log: Any, **entry: float) -> None:
    log.write(json.dumps(entry) + "\n")
    log.flush()


def _forget_after(path: Path, step: int) -> None:
    """Drop log lines of steps that a resumed training will make again."""
    if path.is_file():
        # A kill can leave half a line at the end.
        whole = [line for line in path.read_text().splitlines(True) if line.endswith("\n")]
        path.write_text("".join(line for line in whole if json.loads(line)["step"] <= step))
