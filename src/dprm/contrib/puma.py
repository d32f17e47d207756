"""PUMA: the streaming pool of its training, revealing along a policy. Shapes: B rows, L positions, V vocabulary.

The pool reveals true tokens, as many as its phases ask for. Only its own choice by confidence is changed; the random
start of a new row, and what a collapse reveals beside it, stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector


@contextmanager
def attached(pool: Any, selector: Selector, module: Any = None) -> Iterator[None]:
    """Have a pool advance along a policy.

    Args:
        pool: a `PhasedMasking` of PUMA.
        module: where the pool calls `unmask_from_scores`; None: where its class is written.
    """
    selector.expect_mask("pool has mask_id", getattr(pool, "mask_id", None))
    home = module or sys.modules[type(pool).__module__]
    own_update, own_unmask = pool.update_with_logits, home.unmask_from_scores
    rows = 0

    def update(log_probs: Tensor) -> Any:
        nonlocal rows
        names = [str(rows + row) for row in range(len(log_probs))]
        rows += len(log_probs)

        def unmask(scores: Tensor, num_unmask: Tensor, x0: Tensor, xt_format: Tensor) -> Tensor:
            after: Tensor = own_unmask(scores, num_unmask, x0, xt_format)
            if selector.idle or xt_format is not pool.xt:
                return after
            masked = xt_format == selector.mask_id
            requests = Requests(tuple(names), 0 * masked.sum(1), pool.state["L_eff"].clamp(min=1))
            own = masked & (after != selector.mask_id)
            chosen = selector.select(own, scores.exp(), masked, requests, logits=log_probs)
            return x0.where(chosen, xt_format)

        with replaced(home, "unmask_from_scores", unmask):
            return own_update(log_probs)

    with replaced(pool, "update_with_logits", update):
        yield
