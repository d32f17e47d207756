"""`dprm.decode` with a learned order against its own confidence order, on a host of 5 million parameters."""

import torch
from torch import nn

import dprm
from benchmarks.selecting import learned
from benchmarks.timing import medians

VOCABULARY, MASK = 64, 63


class Host(nn.Module):
    """A plain bidirectional transformer of the size of the small hosts."""

    def __init__(self, width: int = 256, depth: int = 6, length: int = 64):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.token(tokens) + self.place[: tokens.shape[1]]))


def measure(repeats: int = 50) -> list[dict[str, object]]:
    """Seconds of a whole decode under each order, and the ratio to confidence order."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    host = Host().eval()
    parameters = sum(p.numel() for p in host.parameters()) / 1e6
    canvas = torch.full((4, 32), MASK)
    canvas[:, :8] = torch.randint(0, MASK, (4, 8))

    def run(order):
        return lambda: dprm.decode(host, canvas, order, mask_id=MASK, budget=3, seed=0)

    runs = {"confidence order": run(dprm.Order())}
    runs |= {rule: run(learned(rule)) for rule in ("top_m", "shortlist_top_m", "soft_bon")}
    seconds = medians(runs, repeats, warm_up=2)
    return [
        {
            "what": f"decode 4×32, {parameters:.1f}M host, {name}",
            "microseconds": seconds[name] * 1e6,
            "ratio": seconds[name] / seconds["confidence order"],
            "limit": 1.05 if name in ("top_m", "shortlist_top_m") else None,
        }
        for name in runs
    ]
