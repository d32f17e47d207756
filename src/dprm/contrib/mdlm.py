"""MDLM, DRAKES and SDPO: `_ddpm_update` in the order of a policy.

The sampler reveals every position by chance, so its own order is random: a policy for it is fitted with the signal
"random", and how many positions are revealed stays the sampler's chance. No model call is added. Shapes: B rows, L
positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch


@contextmanager
def attached(model: Any, selector: Selector) -> Iterator[Watch]:
    """Have a model sample in the order of a policy, made with `Selector(…, signal="random")`."""
    selector.expect_mask("model has mask_index", getattr(model, "mask_index", None))
    own_update, watch = model._ddpm_update, Watch()

    def update(x: Tensor, t: Tensor, dt: float, *args: Any, **named: Any) -> Any:
        if selector.idle:
            return own_update(x, t, dt, *args, **named)
        seen: list[Tensor] = []
        forward = model.forward

        def watched(*inputs: Any, **settings: Any) -> Tensor:
            output: Tensor = forward(*inputs, **settings)
            seen.append(output)
            return output

        with replaced(model, "forward", watched):
            result = own_update(x, t, dt, *args, **named)
        after = result[0] if isinstance(result, tuple) else result
        masked = x == selector.mask_id
        own = masked & (after != selector.mask_id)
        log_p = seen[0].clone()
        log_p[..., selector.mask_id] = -torch.inf
        gumbel = -(-torch.rand_like(log_p).clamp(min=1e-20).log()).log()
        tokens = torch.where(own, after, (log_p + gumbel).argmax(-1))
        # Cells are those of the surest token, whatever was drawn.
        confidence = log_p.softmax(-1).amax(-1)
        chosen = selector.select(own, confidence, masked, watch.requests(masked), logits=log_p)
        revised = torch.where(chosen, tokens.to(after.dtype), torch.where(masked, x.to(after.dtype), after))
        return (revised, *result[1:]) if isinstance(result, tuple) else revised

    with replaced(model, "_ddpm_update", update):
        yield watch
