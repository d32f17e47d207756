"""DMPO: the rollouts of a trainer in the order of a policy; `trainer.generate` is replaced for a while.

The trainer keeps its own sampler. Inside it, `get_transfer_index` is asked for an order, and only while the trainer
generates, so that an evaluation beside it stays as it is.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dprm.contrib import transfer_index
from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector


@contextmanager
def attached(trainer: Any, selector: Selector, module: Any = None) -> Iterator[None]:
    """Have a trainer roll out in the order of a policy.

    Args:
        trainer: with the sampler as its attribute `generate`.
        module: where the sampler calls `get_transfer_index`; None: where it is written.
    """
    sampler = trainer.generate
    home = module or sys.modules[sampler.__module__]
    calls = itertools.count()

    def generate(*args: Any, **named: Any) -> Any:
        selector.expect_mask("trainer generates with mask_id", named.get("mask_id", selector.mask_id))
        # Names seed what is drawn: no two rollouts of a run may have the same, also after it was resumed.
        with transfer_index.attached(home, selector, prefix=f"{selector.order.step}.{next(calls)}-"):
            return sampler(*args, **named)

    with replaced(trainer, "generate", generate):
        yield
