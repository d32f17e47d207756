"""The one training loop of all small hosts: a model, a mask law that says what it sees, an objective for its answers.

What a step does is a function of (weights, optimiser, law's state, step) and of nothing else; a checkpoint holds these
four, so a training that is killed and resumed on a CPU ends in the same bits as one that was not. It also says what
it belongs to: another recipe, model, law or objective is refused.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from dprm.decode.rows import rows_at
from dprm.host.identity import spec, word
from dprm.host.progress import Progress
from dprm.order.files import claim, write_whole
from dprm.train import checkpoint
from dprm.train.masks import MaskLaw
from dprm.train.objective import Objective, masked_cross_entropy
from dprm.train.parallel import processes
from dprm.train.recipe import Recipe, Stopwatch
from dprm.train.stopping import stopping
from dprm.train.transformer import Transformer

Evaluation = Callable[[Transformer], dict[str, float]]
# Numbers of a recipe that change how a training is watched, not what it learns.
_WATCHING = ("evaluations", "save_every", "log_every", "compiled")


class Training:
    """One training: the model and everything that moves with it.

    Args:
        model: on its device; trained in place.
        law: canvases of every step, on the same device.
        recipe: the numbers.
        folder: holds `checkpoint.safetensors` and `log.jsonl`; a checkpoint there is resumed.
        objective: the loss of a step.
        evaluate: called with the averaged model; its numbers are logged and shown.
        title: for the progress display.

    Attributes:
        average: the averaged model, the one to use.
        step, steps: steps made, and steps in all (None until a time limit has become a number).
        path, log: the checkpoint, and the log: one JSON object a line, each with its step.

    Raises:
        ValueError: the checkpoint in the folder belongs to another training; the message says what differs.
    """

    def __init__(
        self,
        model: Transformer,
        law: MaskLaw,
        recipe: Recipe,
        folder: Path,
        *,
        objective: Objective = masked_cross_entropy,
        evaluate: Evaluation | None = None,
        title: str = "train",
    ):
        self.model, self.law, self.recipe, self.folder = model, law, recipe, folder
        self.objective, self.evaluate, self.title = objective, evaluate, title
        self.path, self.log = folder / "checkpoint.safetensors", folder / "log.jsonl"
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
        self._spent = self._evaluating = 0.0
        self._scores: dict[str, float] = {}
        self._identity = {
            "recipe": {name: value for name, value in asdict(recipe).items() if name not in _WATCHING},
            "model": {**model.config.to_dict(), "first weights": word(*model.parameters())},
            "law": law.spec(),
            "objective": spec(objective),
        }
        self._forward = torch.compile(model) if recipe.compiled else model
        self.processes = processes()
        self._mine = self.processes.rows(recipe.rows)
        if self.processes.first:
            # Before the log is looked at: it may be another process's.
            claim(folder)
        if self.path.is_file():
            self._resume()
        if self.processes.first and self.log.is_file():
            # Steps that are made again are told again. A kill can leave half a line at the end.
            lines = [line for line in self.log.read_text().splitlines(True) if line.endswith("\n")]
            write_whole(self.log, "".join(line for line in lines if json.loads(line)["step"] <= self.step).encode())

    def run(self, until: int | None = None) -> dict[str, float]:
        """Train to the end, or until step `until`, and return the last evaluation.

        Raises:
            KeyboardInterrupt: Ctrl-C, or a polite request to end; the step is finished and saved first.
        """
        watch, recipe, shared = Stopwatch(self.recipe, self._spent, self.device), self.recipe, self.processes
        saved = time.monotonic()
        with Progress(self.title, quiet=not shared.first) as progress, stopping() as stopped:
            while not any(end is not None and self.step >= end for end in (self.steps, until)):
                if self.steps is None and (steps := shared.agreed(watch.steps(self.step) or 0, self.device)):
                    self.steps = steps
                    progress.say(f"{steps} steps fit into {recipe.minutes} minutes")
                loss, norm = self._update()
                last = self.step == self.steps
                if facts := self.law.lesson(self.step, self.average):
                    self._write(facts)
                if last or self.step % recipe.log_every == 0:
                    facts = {"loss": loss.item(), "norm": norm.item()}
                    self._write({"rate": recipe.rate_at(self.step - 1, self.steps), **facts})
                    progress.show(self.step, self.steps, **facts, minutes=watch.seconds() / 60)
                else:
                    progress.show(self.step, self.steps)
                if self.evaluate is not None and shared.first and self._evaluation_due(watch):
                    began = time.monotonic()
                    self._scores = self.evaluate(self.average)
                    self._evaluating += time.monotonic() - began
                    self._write(self._scores)
                    numbers = (f"{name} {value:.4g}" for name, value in self._scores.items())
                    progress.say(f"step {self.step}: {'  '.join(numbers)}")
                self._spent = watch.seconds()
                stop = bool(shared.agreed(stopped(), self.device))
                if last or stop or time.monotonic() - saved > recipe.save_every:
                    self.save()
                    saved = time.monotonic()
                if stop and not last:
                    raise KeyboardInterrupt
        return self._scores

    def _update(self) -> tuple[Tensor, Tensor]:
        """One step: loss and gradient norm, without waiting for them."""
        canvases = self.law.canvases(self.step)
        half = self.recipe.half or self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half), self._attention():
            told = () if canvases.context is None else (rows_at(canvases.context, self._mine),)
            logits = self.processes.joined(self._forward(canvases.noisy[self._mine], *told))
        loss = self.objective(logits, canvases)
        torch.autograd.backward(loss)
        self.processes.summed(self.model.parameters())
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

    def _attention(self) -> AbstractContextManager[None]:
        """How attention is computed. On a CPU the backward pass of the fused kernel takes a third of a step for the
        short canvases of the small hosts; written out as two products a whole step takes two thirds of the time."""
        fused = self.device.type != "cpu" or not self.recipe.compiled
        return nullcontext() if fused else sdpa_kernel(SDPBackend.MATH)

    def _evaluation_due(self, watch: Stopwatch) -> bool:
        if self.steps is None:
            return False
        due = self.step % -(-self.steps // self.recipe.evaluations) == 0
        return self.step == self.steps or (due and watch.allows_evaluation(self._evaluating))

    def _write(self, facts: dict[str, float]) -> None:
        if not self.processes.first:
            return
        with self.log.open("a") as log:
            log.write(json.dumps({"step": self.step, **facts}) + "\n")

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the checkpoint."""
        if not self.processes.first:
            return
        tensors = checkpoint.with_prefix("model", dict(self.model.named_parameters()))
        tensors |= checkpoint.with_prefix("average", dict(self.average.named_parameters()))
        tensors |= checkpoint.with_prefix("law", self.law.state())
        for index, moments in self.optimiser.state_dict()["state"].items():
            tensors |= checkpoint.with_prefix(f"optimiser.{index}", moments)
        facts = {"step": self.step, "steps": self.steps, "spent": self._spent, "scores": self._scores}
        checkpoint.save(self.path, tensors, {**facts, "belongs": self._identity})

    def _resume(self) -> None:
        tensors, facts = checkpoint.load(self.path, self.device)
        differing = differences(facts.get("belongs", {}), json.loads(json.dumps(self._identity)))
        if differing:
            raise ValueError(
                f"{self.path} belongs to another training: {'; '.join(differing)}; choose another folder or delete it"
            )
        # A tied output matrix is written once, under the name of the embedding.
        strict = not self.model.config.tied
        self.model.load_state_dict(checkpoint.without_prefix("model", tensors), strict=strict)
        self.average.load_state_dict(checkpoint.without_prefix("average", tensors), strict=strict)
        self.law.restore(checkpoint.without_prefix("law", tensors))
        moments = checkpoint.without_prefix("optimiser", tensors)
        state = self.optimiser.state_dict()
        for group in state["param_groups"] if moments else ():
            state["state"] |= {index: checkpoint.without_prefix(str(index), moments) for index in group["params"]}
        self.optimiser.load_state_dict(state)
        self.step, self.steps = facts["step"], facts["steps"]
        self._spent, self._scores = facts["spent"], facts["scores"]


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """What differs between two trees of plain data, a line for every leaf."""
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        there, here = dict(enumerate(there)), dict(enumerate(here))
    if isinstance(there, dict) and isinstance(here, dict):
        keys = list(dict.fromkeys([*here, *there]))
        lines = [differences(there.get(key), here.get(key), f"{name}.{key}" if name else key) for key in keys]
        return [line for below in lines for line in below]
    if there == here:
        return []
    texts = [text if len(text) <= 60 else f"{text[:60]}…" for text in (repr(there), repr(here))]
    return [f"{name} is {texts[0]} there and {texts[1]} here"]
