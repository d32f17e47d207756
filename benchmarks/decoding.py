"""`dprm.decode` with a learned order against its own confidence order, on a host of 5 million parameters."""

import torch
from torch import nn

import dprm
from benchmarks.selecting import learned
from benchmarks.timing import medians
from dprm.order.head import Head, HeadShape

VOCABULARY, MASK = 64, 63
LIMITS = {("top_m", 4): 1.05, ("shortlist_top_m", 4): 1.05, ("head", 16): 1.02}


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


def with_head() -> dprm.Order:
    """An Order whose values are those of a head of the usual size."""
    head = Head(HeadShape(), support=1000)
    torch.nn.init.normal_(head.linear.weight, std=0.1)
    return dprm.Order(signal="odds", head=head)


def measure(repeats: int = 50) -> list[dict[str, object]]:
    """Seconds of a whole decode under each order, and the ratio to confidence order."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    host = Host().eval()
    parameters = sum(p.numel() for p in host.parameters()) / 1e6
    tables = {rule: learned(rule) for rule in ("top_m", "shortlist_top_m", "soft_bon")}
    rows: list[dict[str, object]] = []
    # A head is some forty small operations whatever the canvas: what they weigh depends on how much the host has to do.
    for (count, length), learned_orders in (
        ((4, 32), tables | {"head": with_head()}),
        ((16, 64), {"head": with_head()}),
    ):
        canvas = torch.full((count, length), MASK)
        canvas[:, :8] = torch.randint(0, MASK, (count, 8))

        def run(order, canvas=canvas):
            return lambda: dprm.decode(host, canvas, order, mask_id=MASK, budget=3, seed=0)

        runs = {name: run(order) for name, order in {"confidence order": dprm.Order(), **learned_orders}.items()}
        seconds = medians(runs, repeats if count < 16 else max(3, repeats // 5), warm_up=1)
        rows += [
            {
                "what": f"decode {count}×{length}, {parameters:.1f}M host, {name}",
                "microseconds": seconds[name] * 1e6,
                "ratio": seconds[name] / seconds["confidence order"],
                "limit": LIMITS.get((name, count)),
            }
            for name in runs
        ]
    return rows
