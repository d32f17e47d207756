"""mlx-vlm: the function with which its diffusion sampler accepts positions, for Apple computers.

    _diffusion_confidence_transfer_mask(confidence [B,L], unrevealed [B,L], threshold, *, force_all) → mask [B,L]

What it accepts stays, also where the model has no mask token, so that an order is the same thing here. The engine's
arrays are read on the processor, which on an Apple computer shares their memory; that does evaluate them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch

NAME = "_diffusion_confidence_transfer_mask"


def ordered(transfer_mask: Callable[..., Any], selector: Selector, array: Any, watch: Watch | None = None) -> Any:
    """The same function, accepting as many positions as it would, chosen by a policy.

    Args:
        array: makes an array of the engine of one of numpy: `mx.array`.
    """
    watch = watch or Watch()

    def choose(confidence: Any, unrevealed: Any, threshold: float, **named: Any) -> Any:
        own = transfer_mask(confidence, unrevealed, threshold, **named)
        if selector.idle:
            return own
        score, candidates, mask = (torch.from_numpy(numpy.array(each)) for each in (confidence, unrevealed, own))
        chosen = selector.select(mask.bool(), score, candidates.bool(), watch.mixed(candidates.bool()))
        return array(chosen.numpy())

    return choose


@contextmanager
def attached(module: Any, selector: Selector, array: Any) -> Iterator[Watch]:
    """Have `mlx_vlm.generate.diffusion` accept by a policy; `array` is `mlx.core.array`."""
    if selector.order.head is not None:
        raise ValueError("this sampler shows only confidence: a head needs logits; use a policy with a table")
    watch = Watch()
    with replaced(module, NAME, ordered(getattr(module, NAME, None), selector, array, watch)):  # type: ignore[arg-type]
        yield watch
