"""`python -m benchmarks.gpu`: what a step costs on an accelerator, in ratios to limits and peers of the same run.

Reading is measured against one read of the logits at the bandwidth of a copy, and against a softmax; a selection, as a
CUDA graph, against a plain top-k as a CUDA graph; a whole decode, with a random model of LLaDA's shape, against the
bare calls of the model and against LLaDA's own steps. Medians, contestants in turns. Ten minutes at most.
"""

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

import dprm
from benchmarks.card import write_card
from benchmarks.selecting import learned, with_head
from dprm.decode import Blocks, Hidden
from dprm.decode.windows import Window
from dprm.order.rules import RULES

READS = {
    (8, 256, 126_464): {"mask by a table": 1.3, "mask by a head": 1.3, "mask by a head, half": 0.75},
    (64, 32, 157_184): {"mask by a table": 1.3, "mask by a head": 1.3, "mask by a head, half": 0.75},
    (1, 256, 126_464): {"mask by a table": 2.0, "mask by a head": 2.0},
}
SELECTS = ((64, 256), (256, 1024))
SELECT_LIMITS = {"top_m": 1.5, "head": 2.5, "shortlist_top_m": 3.0}

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Row = dict[str, object]
Contestants = dict[str, Callable[[], object]]


def medians(contestants: Contestants, repeats: int = 30, warm_up: int = 5) -> dict[str, float]:
    """Median seconds of each on the device, in turns; what a launch costs is counted where the device waits for it."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(warm_up + repeats):
        for name, run in contestants.items():
            seconds = seconds_of(run)
            if turn >= warm_up:
                times[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def seconds_of(run: Callable[[], object]) -> float:
    """Seconds on the device; on a CPU, where this only shows that it runs, on the clock."""
    if DEVICE == "cpu":
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
    began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    began.record()
    run()
    ended.record()
    torch.cuda.synchronize()
    return began.elapsed_time(ended) / 1e3


def graphed(run: Callable[[], object]) -> Callable[[], object]:
    """The same as a CUDA graph."""
    if DEVICE == "cpu":
        return run
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def row(what: str, seconds: float, peer: float, limit: float | None = None) -> Row:
    """A line of the card."""
    return {
        "what": what,
        "microseconds": seconds * 1e6,
        "peer": peer * 1e6,
        "ratio": seconds / peer,
        "limit": limit,
    }


def llada_step(logits: torch.Tensor, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """What LLaDA's own loop works out of the logits at temperature 0: arg-max, softmax and the picked probability."""
    token = logits.argmax(-1)
    return logits.to(dtype).softmax(-1).gather(-1, token.unsqueeze(-1)).squeeze(-1)


def reading(shape: tuple[int, int, int], limits: dict[str, float], repeats: int = 30) -> list[Row]:
    """Reading, and reading and selecting, against one read of the logits."""
    logits = torch.randn(shape, device=DEVICE, dtype=torch.bfloat16)
    copy = torch.empty_like(logits)
    every = torch.ones(shape[:2], dtype=torch.bool, device=DEVICE)
    half = torch.rand(shape[:2], device=DEVICE) < 0.5
    window = torch.zeros_like(every)
    window[:, : max(1, shape[1] // 8)] = True
    head, table = with_head(), learned("top_m")

    def decided(order: dprm.Order, flags: torch.Tensor) -> Callable[[], object]:
        return lambda: order.select(dprm.read(logits, None, flags), flags, 3, 0.5, seed=1).mask

    seconds = medians(
        {
            "copy": lambda: copy.copy_(logits),
            "float32 softmax": lambda: logits.float().softmax(-1).max(-1),
            "LLaDA's float64 step": lambda: llada_step(logits),
            "read": lambda: dprm.read(logits),
            "read half": lambda: dprm.read(logits, None, half),
            "read an eighth, as a window": lambda: dprm.read(logits, None, window),
            "read by the torch backend": lambda: dprm.read(logits, backend="torch"),
            "mask by a table": graphed(decided(table, every)),
            "mask by a head": graphed(decided(head, every)),
            "mask by a head, half": graphed(decided(head, half)),
        },
        repeats,
    )
    # A copy reads and writes as much.
    once = seconds.pop("copy") / 2
    name = "×".join(f"{size:,}" for size in shape)
    rows = [row(f"{what}, {name}", value, once, limits.get(what)) for what, value in seconds.items()]
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        for backend in ("auto", "torch"):
            dprm.read(logits, None, half, backend=backend)
        extra = (torch.cuda.max_memory_allocated() - before) / 2**20
        rows.append({"what": f"extra MiB to read, {name}", "microseconds": None, "ratio": extra, "limit": 64.0})
    return rows


def selecting(size: tuple[int, int], repeats: int = 30) -> list[Row]:
    """A selection and a top-k, both as CUDA graphs, and without."""
    confidence = torch.rand(size, device=DEVICE)
    numbers = dprm.Reading(torch.zeros_like(confidence, dtype=torch.int64), confidence, confidence, confidence)
    flags = torch.rand(size, device=DEVICE) < 0.5

    def select(order: dprm.Order) -> Callable[[], object]:
        return lambda: order.select(numbers, flags, 3, 0.5, seed=1).mask

    orders = {rule: learned(rule) for rule in RULES} | {"head": with_head()}
    runs: Contestants = {"top-k": lambda: confidence.masked_fill(~flags, -torch.inf).topk(3)}
    runs |= {name: select(order) for name, order in orders.items()}
    rows = []
    for kind, contestants in (("graph", {name: graphed(run) for name, run in runs.items()}), ("eager", runs)):
        seconds = medians(contestants, repeats)
        peer = seconds.pop("top-k")
        for name, value in seconds.items():
            limit = SELECT_LIMITS.get(name) if kind == "graph" else None
            rows.append(row(f"select {size[0]}×{size[1]}, {kind}, {name}", value, peer, limit))
    return rows


class Model(nn.Module):
    """A transformer of LLaDA's shape with random weights: 32 layers of width 4,096."""

    def __init__(self, layers: int, width: int = 4096, heads: int = 32, inner: int = 12_288, vocabulary: int = 126_464):
        super().__init__()
        self.heads = heads
        self.token = nn.Embedding(vocabulary, width)
        self.attention = nn.ModuleList(nn.Linear(width, 3 * width, bias=False) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.gate = nn.ModuleList(nn.Linear(width, 2 * inner, bias=False) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(inner, width, bias=False) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def states(self, tokens: torch.Tensor) -> torch.Tensor:
        """[B,L,D], before the output head."""
        x = self.token(tokens)
        rows, length, width = x.shape
        for attention, out, gate, down in zip(self.attention, self.out, self.gate, self.down, strict=True):
            q, k, v = attention(nn.functional.rms_norm(x, (width,))).view(rows, length, 3, self.heads, -1).unbind(2)
            seen = nn.functional.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v)))
            x = x + out(seen.transpose(1, 2).flatten(2))
            open_, value = gate(nn.functional.rms_norm(x, (width,))).chunk(2, -1)
            x = x + down(nn.functional.silu(open_) * value)
        return nn.functional.rms_norm(x, (width,))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.states(tokens))


def random_model(**shape: int) -> Model:
    """The model in bfloat16, on the device."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        model = Model(**shape).eval()
    torch.set_default_dtype(torch.float32)
    return model


@torch.inference_mode()
def decoding(model: Model, count: int, length: int = 256, steps: int = 64, repeats: int = 3) -> list[Row]:
    """Whole decodes: seconds, the ratio to the bare calls of the model, and what a step costs beside these."""
    mask = model.token.num_embeddings - 1
    canvas = torch.full((count, length), mask, device=DEVICE)
    per = length // steps

    def calls() -> None:
        for _ in range(steps):
            model(canvas)

    def llada(dtype: torch.dtype) -> None:
        tokens = canvas
        for _ in range(steps):
            logits = model(tokens)
            logits[..., mask] = -torch.inf
            token, sure = logits.argmax(-1), llada_step(logits, dtype)
            taken = sure.masked_fill(tokens != mask, -torch.inf).topk(per).indices
            tokens = tokens.scatter(1, taken, token.gather(1, taken))

    def ours(order: dprm.Order, asked: bool = False, window: Window | None = None) -> None:
        called = (lambda tokens: Hidden(model.states(tokens), model.head)) if asked else model
        dprm.decode(called, canvas, order, mask_id=mask, budget=per, window=window)

    contestants: Contestants = {
        "model alone": calls,
        "LLaDA's float64 loop": lambda: llada(torch.float64),
        "LLaDA's loop in float32": lambda: llada(torch.float32),
        "confidence": lambda: ours(dprm.Order()),
        "head": lambda: ours(with_head()),
        "head, logits where asked": lambda: ours(with_head(), asked=True),
        "head, logits where asked, blocks of 32": lambda: ours(with_head(), asked=True, window=Blocks(32)),
    }
    seconds = medians(contestants, repeats, warm_up=1)
    peer = seconds["model alone"]
    limits = {"head": 1.0 + 300e-6 * steps / peer, "head, logits where asked": 1.0}
    layers = len(model.attention)
    return [
        {
            **row(f"decode {count}×{length}, {layers} layers, {name}", value, peer, limits.get(name)),
            "beside": (value - peer) / steps * 1e6,
        }
        for name, value in seconds.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", metavar="FILE", help="write a card: the rows, the machine, the versions")
    parser.add_argument("--layers", type=int, default=32, help="layers of the model (default: 32)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("there is no accelerator here: nothing was measured", file=sys.stderr)
        return 2
    rows: list[Row] = []
    suites: list[Callable[[], list[Row]]] = [partial(reading, shape, limits) for shape, limits in READS.items()]
    suites += [partial(selecting, size) for size in SELECTS]
    # The model is made when its turn comes: the readings need the memory too.
    model = functools.cache(lambda: random_model(layers=arguments.layers))
    suites += [lambda count=count: decoding(model(), count) for count in (8, 1)]
    for suite in suites:
        # What one suite cannot do does not take the others' numbers away.
        try:
            rows += suite()
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            rows.append({"what": f"failed: {reason}", "microseconds": None, "ratio": None, "limit": None})
        torch.cuda.empty_cache()
    for line in rows:
        print(line)
    if arguments.out:
        write_card(arguments.out, "make bench-gpu", rows)
    return int(any(line["limit"] is not None and line["ratio"] > line["limit"] for line in rows))  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
