"""SGLang: an algorithm for `--dllm-algorithm DPRM`, which changes what another algorithm of SGLang reveals.

It is found through the entry point group `sglang.srt.plugins`; nothing of SGLang is overwritten. The settings are those
of `--dllm-algorithm-config`, a YAML file:

    policy: my-model.dprm      # none: the base algorithm's own order, to record it
    base: LowConfidence        # counts, edits and says when a block is done; its own settings stand beside these
    traces: traces/            # where choices are written, by the first tensor-parallel rank only
    guidance: 1.0              # 0: the base algorithm's own order
    explore: false
    contrasts: false           # with explore: write down what a head is learned from
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.fit.traces import Traces

NAME = "DPRM"


def register() -> None:
    """What the entry point calls, in every process of SGLang: gives the algorithm its name."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls

    algo_name_to_cls[NAME] = algorithm_class()


@dataclass
class _State:
    """What one request carries from round to round: the base algorithm's state, and its place in the block."""

    base: Any
    requests: Requests


def algorithm_class() -> Any:
    """The class, made when SGLang is there."""
    from sglang.srt.dllm.algorithm import get_algorithm_cls
    from sglang.srt.dllm.algorithm.base import DllmAlgorithm

    class Dprm(DllmAlgorithm):  # type: ignore[misc]
        """A base algorithm of SGLang whose reveals are chosen by a policy."""

        def __init__(self, config: Any):
            super().__init__(config)
            settings = config.algorithm_config
            self.base = get_algorithm_cls(settings.get("base", "LowConfidence"))(config)
            self.reuse_forward_metadata = self.base.reuse_forward_metadata
            folder = settings.get("traces")
            traces = None if folder is None or _rank() != 0 else Traces(folder, engine="sglang")
            self.selector = Selector(
                settings.get("policy"),
                mask_id=config.mask_id,
                guidance=settings.get("guidance"),
                explore=settings.get("explore", False),
                traces=traces,
                contrasts=settings.get("contrasts", False) and traces is not None,
            )

        def max_steps(self, block_size: int) -> int:
            return int(self.base.max_steps(block_size))

        def prepare_inputs(self, model_runner: Any, forward_batch: Any, states: list[_State]) -> None:
            self.base.prepare_inputs(model_runner, forward_batch, [state.base for state in states])

        def init_step_state(self, forward_batch: Any) -> list[_State]:
            """One state a request, at the start of its block."""
            rows, block = forward_batch.batch_size, self.block_size
            names = forward_batch.rids or [str(row) for row in range(rows)]
            masked = self._tokens(forward_batch) == self.mask_id
            if forward_batch.dllm_prompt_mask is not None:
                masked = masked & ~forward_batch.dllm_prompt_mask
            requests = Requests.begin(names, masked, forward_batch.positions.view(rows, block)[:, 0].long())
            bases = self.base.init_step_state(forward_batch)
            return [_State(base, requests[row]) for row, base in enumerate(bases)]

        def step(self, forward_batch: Any, full_logits: Tensor, states: list[_State]) -> list[bool]:
            """One step of the base algorithm, and then the policy's choice, in place."""
            before = self._tokens(forward_batch).clone()
            bases = [state.base for state in states]
            done = self.base.step(forward_batch, full_logits, bases)
            for state, base in zip(states, bases, strict=True):
                state.base = base
            if self.selector.idle:
                return list(done)
            prompt = forward_batch.dllm_prompt_mask
            after = self.selector.revise(
                before,
                self._tokens(forward_batch),
                full_logits.view(*before.shape, -1),
                Requests.joined([state.requests for state in states]),
                eligible=None if prompt is None else ~prompt,
            )
            # The tensor itself belongs to a captured graph.
            forward_batch.input_ids.copy_(after.view(-1))
            return list(done)

        def _tokens(self, forward_batch: Any) -> Tensor:
            tokens: Tensor = forward_batch.input_ids.view(forward_batch.batch_size, self.block_size)
            return tokens

    Dprm.__name__ = Dprm.__qualname__ = NAME
    return Dprm


def _rank() -> int:
    """This process among those that see the same logits."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0
    from sglang.srt.distributed import get_tensor_model_parallel_rank

    return int(get_tensor_model_parallel_rank())
