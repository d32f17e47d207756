"""`dprm.read` against what it takes the place of: a float32 softmax and its maximum. One CPU thread."""

import torch

import dprm
from benchmarks.timing import medians

# Positions and vocabulary; those of LLaDA, and those of a small host.
SIZES = ((64, 126_464), (4096, 64))
LIMITS = {("bfloat16", 126_464): 1.0}


def measure(repeats: int = 10) -> list[dict[str, object]]:
    """One row a size, type and share of positions that are read."""
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    for (positions, vocabulary), dtype in (
        (size, dtype) for size in SIZES for dtype in (torch.bfloat16, torch.float32)
    ):
        generator = torch.Generator().manual_seed(0)
        logits = torch.randn(1, positions, vocabulary, generator=generator).to(dtype)
        half = torch.rand(1, positions, generator=generator) < 0.5
        seconds = medians(
            {
                "softmax": lambda x=logits: x.float().softmax(-1).max(-1),
                "all positions": lambda x=logits: dprm.read(x),
                "half of the positions": lambda x=logits, flags=half: dprm.read(x, eligible=flags),
            },
            repeats if vocabulary > 1000 else 10 * repeats,
            warm_up=2,
        )
        kind = str(dtype).removeprefix("torch.")
        rows += [
            {
                "what": f"read {positions}×{vocabulary:,} {kind}, {name}",
                "microseconds": seconds[name] * 1e6,
                "peer": seconds["softmax"] * 1e6,
                "ratio": seconds[name] / seconds["softmax"],
                "limit": LIMITS.get((kind, vocabulary)) if name == "all positions" else None,
            }
            for name in ("all positions", "half of the positions")
        ]
    return rows
