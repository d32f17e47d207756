"""`dprm.decode` with a learned order against its own confidence order, on a host of 5 million parameters."""

import statistics
import time

import torch
from torch import nn

import dprm
from benchmarks.selecting import learned, with_head
from benchmarks.timing import medians

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


def measure(repeats: int = 10) -> list[dict[str, object]]:
    """Seconds of a whole decode under each order, and the ratio to confidence order.

    The host's own calls are the same whatever the order, and vary by more than an order costs. So their time is taken
    apart, and one and the same median of it counted for all.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    host = Host().eval()
    parameters = sum(p.numel() for p in host.parameters()) / 1e6
    tables = {rule: learned(rule) for rule in ("top_m", "shortlist_top_m", "soft_bon")}
    rows: list[dict[str, object]] = []
    # A head is a hundred small operations whatever the canvas: what they weigh depends on how much the host has to do.
    for count, length, budget, orders in (
        (4, 32, 3, {"confidence order": dprm.Order(), **tables, "head": with_head()}),
        (16, 64, 8, {"confidence order": dprm.Order(), "head": with_head()}),
    ):
        canvas = torch.full((count, length), MASK)
        canvas[:, :8] = torch.randint(0, MASK, (count, 8))
        calls, own = _seconds(host, canvas, budget, orders, repeats if count < 16 else repeats // 2)
        peer = calls + own["confidence order"]
        rows += [
            {
                "what": f"decode {count}×{length}, {parameters:.1f}M host, {name}",
                "microseconds": (calls + seconds) * 1e6,
                "ratio": (calls + seconds) / peer,
                "limit": LIMITS.get((name, count)),
            }
            for name, seconds in own.items()
        ]
    return [*rows, beside(repeats)]


def beside(repeats: int) -> dict[str, object]:
    """What a step of the loop costs beside the model, and how much of it the reading and the selection are not."""
    count, length = 8, 64
    logits, canvas = torch.randn(count, length, VOCABULARY), torch.full((count, length), MASK)
    seeds, order, every = torch.arange(count), dprm.Order(), torch.ones(count, length, dtype=torch.bool)

    def decoded() -> None:
        dprm.decode(lambda tokens: logits, canvas, order, mask_id=MASK, budget=1, seed=seeds)

    def decided() -> None:
        for _ in range(length):
            reading = dprm.read(logits, None, every, forbid=MASK)
            order.select(reading, every, 1, progress, seed=seeds).mask  # noqa: B018 (worked out when asked for)

    progress = torch.full((count,), 0.5)
    seconds = medians({"decode": decoded, "read and select": decided}, repeats)
    own = (seconds["decode"] - seconds["read and select"]) / length
    return {
        "what": f"decode {count}×{length}, a step beside model, read and select",
        "microseconds": own * 1e6,
        "ratio": seconds["decode"] / seconds["read and select"],
        "limit": None,
    }


def _seconds(
    host: Host, canvas: torch.Tensor, budget: int, orders: dict[str, dprm.Order], repeats: int
) -> tuple[float, dict[str, float]]:
    """Median seconds of the host's calls in a decode, and of all else in it under each order; orders take turns."""
    calls: list[float] = []
    own: dict[str, list[float]] = {name: [] for name in orders}
    for turn in range(repeats + 1):
        for name, order in orders.items():
            inside = 0.0

            def timed(tokens: torch.Tensor) -> torch.Tensor:
                nonlocal inside
                began = time.thread_time()
                logits = host(tokens)
                inside += time.thread_time() - began
                return logits

            began = time.thread_time()
            dprm.decode(timed, canvas, order, mask_id=MASK, budget=budget, seed=0)
            if turn:  # The first one warms up.
                own[name].append(time.thread_time() - began - inside)
                calls.append(inside)
    return statistics.median(calls), {name: statistics.median(times) for name, times in own.items()}
