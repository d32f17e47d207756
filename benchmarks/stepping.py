"""A whole step, from logits to the mask of what is revealed, against vocabulary and batch. One CPU thread."""

import torch

import dprm
from benchmarks.selecting import with_head
from benchmarks.timing import medians

VOCABULARIES = (1_024, 8_192, 32_768, 126_464)
BATCHES = (1, 8)
LENGTH = 32


def measure(repeats: int = 8) -> list[dict[str, object]]:
    """Half of the positions are masked: a head that reads these, and confidence by a float32 softmax of all."""
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    order = with_head()
    for count in BATCHES:
        for vocabulary in VOCABULARIES:
            generator = torch.Generator().manual_seed(0)
            logits = torch.randn(count, LENGTH, vocabulary, generator=generator).bfloat16()
            masked = torch.rand(count, LENGTH, generator=generator) < 0.5

            def head(x: torch.Tensor = logits, flags: torch.Tensor = masked) -> torch.Tensor:
                return order.select(dprm.read(x, None, flags), flags, 3, 0.5, seed=1).mask

            def softmax(x: torch.Tensor = logits, flags: torch.Tensor = masked) -> torch.Tensor:
                return x.float().softmax(-1).amax(-1).masked_fill(~flags, -torch.inf).topk(3).indices

            seconds = medians({"softmax": softmax, "head": head}, repeats, warm_up=2)
            rows.append(
                {
                    "what": f"step {count}×{LENGTH}×{vocabulary:,}, head",
                    "microseconds": seconds["head"] * 1e6,
                    "peer": seconds["softmax"] * 1e6,
                    "ratio": seconds["head"] / seconds["softmax"],
                    "limit": None,
                    "rows": count,
                    "vocabulary": vocabulary,
                }
            )
    return rows
