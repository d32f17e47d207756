"""What it saves to compute the output head only where something may be revealed. One CPU thread.

A random transformer of LLaDA's shape, made small, with a vocabulary that is large for it.
"""

from collections.abc import Callable

import torch

import dprm
from benchmarks.gpu import Model
from benchmarks.timing import medians
from dprm.decode import Blocks, Hidden


@torch.inference_mode()
def measure(repeats: int = 5) -> list[dict[str, object]]:
    """Whole decodes, against the same with all logits."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model(layers=4, width=128, heads=4, inner=384, vocabulary=16_384).eval()
    mask, canvas = 16_383, torch.full((2, 64), 16_383)

    def decoded(asked: bool, window: Blocks | None) -> Callable[[], object]:
        called = (lambda tokens: Hidden(model.states(tokens), model.head)) if asked else model
        return lambda: dprm.decode(called, canvas, mask_id=mask, budget=4, window=window)

    rows = []
    for name, window in (("whole canvas", None), ("blocks of 8", Blocks(8))):
        seconds = medians({"all": decoded(False, window), "asked": decoded(True, window)}, repeats, warm_up=1)
        rows.append(
            {
                "what": f"decode 2×64, 4 layers, V 16,384, logits where asked, {name}",
                "microseconds": seconds["asked"] * 1e6,
                "ratio": seconds["asked"] / seconds["all"],
                "limit": 1.0,
            }
        )
    return rows
