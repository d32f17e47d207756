"""A callback for `transformers.Trainer` and all trainers made of it: logs what the order does, keeps it, resumes it.

Numbers go where the trainer logs: into Weights & Biases, TensorBoard, or what else it reports to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from dprm.contrib.selector import Selector
from dprm.contrib.training import Observer
from dprm.order.policy import Policy

FILE = "order.dprm"


class OrderCallback(TrainerCallback):
    """Beside a trainer whose rollouts go through a `Selector` that an `Observer` watches.

    Every checkpoint gets the policy as it is then, `order.dprm`; a run that is resumed goes on with that of its
    checkpoint.
    """

    def __init__(self, selector: Selector, observer: Observer):
        self.selector, self.observer = selector, observer

    def attach(self, trainer: Any) -> OrderCallback:
        """Take the first place among the callbacks, so that those that report to others see our numbers."""
        trainer.callback_handler.callbacks.insert(0, self)
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """A fresh run begins with what the selector knows, a resumed one with what its checkpoint knew."""
        if state.global_step == 0:
            return
        path = self._path(args, state)
        if not path.is_file():
            raise ValueError(f"{path} is not there: the run that is resumed had no order to keep")
        kept, order = Policy.load(path, cells=self.selector.order.cells), self.selector.order
        if kept.stats is not None:
            order.merge(kept.stats)
        order.step = kept.step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **named: Any) -> None:
        """Add the facts of the order to what is logged."""
        if logs is not None:
            logs.update(self.observer.facts())

    def on_save(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """Keep the policy in the checkpoint; on one process only."""
        if state.is_world_process_zero:
            self.selector.order.policy(estimator="training").save(self._path(args, state))

    def _path(self, args: Any, state: Any) -> Path:
        return Path(args.output_dir) / f"checkpoint-{state.global_step}" / FILE
