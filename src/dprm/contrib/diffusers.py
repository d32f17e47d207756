"""diffusers: a scheduler for `LLaDA2Pipeline` that reveals along a policy, and a callback that writes traces.

The scheduler lets `BlockRefinementScheduler` sample, count and edit, and changes which masked positions it commits. The
policy is a part of its configuration, so `save_pretrained` and `from_pretrained` keep it, of the scheduler and of a
pipeline. Shapes: B rows, L positions of a block, V vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

# A pipeline finds out how to load a component by its base classes, in the component's own module: SchedulerMixin has to
# be a name of this one.
from diffusers import BlockRefinementScheduler, SchedulerMixin
from diffusers.configuration_utils import register_to_config
from torch import Tensor

from dprm.contrib.packing import packed, unpacked
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.order.policy import Policy

__all__ = ["DprmScheduler", "SchedulerMixin", "Tracing"]


class DprmScheduler(BlockRefinementScheduler):  # type: ignore[misc]
    """`BlockRefinementScheduler`, committing as many positions as it would, chosen by a policy.

    Args:
        policy: the text of a policy, see `of`; None is the order of the base class.
        guidance: None as stored; 0 is the order of the base class.

    The other arguments are those of the base class.
    """

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        block_length: int = 32,
        num_inference_steps: int = 32,
        threshold: float = 0.95,
        editing_threshold: float | None = None,
        minimal_topk: int = 1,
        policy: str | None = None,
        guidance: float | None = None,
    ):
        super().__init__(block_length, num_inference_steps, threshold, editing_threshold, minimal_topk)
        self.policy = None if policy is None else unpacked(policy)
        self._selectors: dict[tuple[int, int], Selector] = {}
        self._requests: Requests | None = None
        self._block = 0

    @classmethod
    def of(cls, policy: Policy | str | os.PathLike[str], base: Any = None, **settings: Any) -> DprmScheduler:
        """A scheduler with a policy or its file, and otherwise the settings of `base`, another scheduler."""
        known = {} if base is None else {key: value for key, value in base.config.items() if not key.startswith("_")}
        scheduler: DprmScheduler = cls(**{**known, **settings, "policy": packed(policy)})
        return scheduler

    def set_timesteps(self, *args: Any, **kwargs: Any) -> None:
        """As of the base class; a pipeline calls it once an answer."""
        super().set_timesteps(*args, **kwargs)
        self._block, self._requests = 0, None

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        *,
        mask_token_id: int | None = None,
        return_dict: bool = True,
        **settings: Any,
    ) -> Any:
        """One step, see the base class. `prev_sample` and `transfer_index` follow the policy."""
        own = super().step(model_output, timestep, sample, mask_token_id=mask_token_id, return_dict=True, **settings)
        selector = self._selector(mask_token_id, model_output.shape[-1])
        masked = sample == selector.mask_id
        if self._requests is None or int(timestep) == 0 or len(self._requests.names) != len(sample):
            names = [str(row) for row in range(len(sample))]
            self._requests = Requests.begin(names, masked, self._block * sample.shape[1])
            self._block += 1
        clean = None if selector.silent else model_output
        chosen = selector.select(
            own.transfer_index, own.sampled_probs, masked, self._requests, logits=clean, tokens=own.sampled_tokens
        )
        after = torch.where(chosen | own.editing_transfer_index, own.sampled_tokens, sample)
        output = type(own)(**{**own, "prev_sample": after, "transfer_index": chosen})
        return output if return_dict else output.to_tuple()

    def _selector(self, mask_id: int | None, vocabulary: int) -> Selector:
        key = (-1 if mask_id is None else mask_id, vocabulary)
        if key not in self._selectors:
            self._selectors[key] = Selector(
                self.policy, mask_id=mask_id, vocabulary=vocabulary, guidance=self.config.guidance
            )
        return self._selectors[key]


class Tracing:
    """`callback_on_step_end` of a pipeline with any scheduler: writes what was revealed, with the cells of a policy.

    Args:
        selector: made with `traces`; its mask and its policy are those of the pipeline.
        names: one request a row of the batch.
    """

    tensor_inputs = ("block_x", "sampled_probs", "active_block")

    def __init__(self, selector: Selector, names: Sequence[str]):
        self.selector = selector
        self.names = tuple(names)
        self._requests: Requests | None = None
        self._first = -1

    def __call__(self, pipeline: Any, step: int, timestep: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Write one step; nothing is changed."""
        masked, text = tensors["active_block"], tensors["block_x"]
        length = masked.shape[1]
        first = text.shape[1] - length
        if self._requests is None or (timestep <= 1 and step == 0) or self._first != first:
            self._requests, self._first = Requests.begin(self.names, masked, first), first
        revealed = masked & (text[:, -length:] != self.selector.mask_id)
        self.selector.record(revealed, tensors["sampled_probs"], masked, self._requests)
        return {}
