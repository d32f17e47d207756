"""What a fit on a checkpoint of 8B costs: `python -m benchmarks.checkpoint` writes results/checkpoint-cost.json and the
table of docs/huggingface.md.

Measured here, on one thread of a processor: a whole fit of 10,000 calls on a random model of LLaDA's shape and a small
width. Every model call is counted where it is made, its floating-point operations are counted by torch, and its seconds
are set apart from those of the fit around it. Extrapolated from the same formulas, at the width of LLaDA-8B: operations
and bytes. No accelerator is asked. With `--check` nothing is measured; the page is compared with the file.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measured import write_page
from dprm.contrib.hf import small_llada
from dprm.contrib.hf.checkpoint import Checkpoint
from dprm.contrib.hf.host import host
from dprm.contrib.hf.llada import LLaDA
from dprm.fit import fit
from dprm.fit.cost import Cost
from dprm.fit.head import HeadFit

ROOT = Path(__file__).parent.parent
CARD, PAGE = ROOT / "results" / "checkpoint-cost.json", ROOT / "docs" / "huggingface.md"
CALLS, PROMPT, LENGTH, BLOCK = 10_000, 32, 32, 8
# Width, layers, heads, width of the hidden layer, vocabulary: of the model that is run, and of LLaDA-8B.
SMALL = (64, 2, 4, 192, 1024)
LARGE = (4096, 32, 32, 12_288, 126_464)
# Of the fit on paper: tokens of a prompt and of an answer, prompts a batch, operations a second.
ASKED, ANSWER, BATCH, RATE = 128, 128, 64, 400e12


class Words:
    """A tokenizer as far as it is needed for prompts of tokens."""

    mask_token_id = eos_token_id = pad_token_id = None
    all_special_ids: tuple[int, ...] = ()

    def decode(self, tokens: list[int], skip_special_tokens: bool = True) -> str:
        return " ".join(map(str, tokens))


def flops(shape: tuple[int, ...], positions: int) -> float:
    """Of a call on one canvas: 2 a weight and position, and 4 a pair of positions, layer and width."""
    width, layers, _, hidden, vocabulary = shape
    weights = layers * (4 * width**2 + 3 * width * hidden) + width * vocabulary
    return 2.0 * weights * positions + 4.0 * layers * width * positions**2


def weights(shape: tuple[int, ...]) -> int:
    """Numbers in the matrices of a model, the embedding among them."""
    width, layers, _, hidden, vocabulary = shape
    return layers * (4 * width**2 + 3 * width * hidden) + 2 * width * vocabulary


def made(shape: tuple[int, ...]) -> LLaDA:
    """A random model in LLaDA's format."""
    width, layers, heads, hidden, vocabulary = shape
    torch.manual_seed(0)
    config = small_llada.LLaDAConfig(
        vocab_size=vocabulary, d_model=width, n_layers=layers, n_heads=heads, mlp_hidden_size=hidden
    )
    model = small_llada.LLaDAModelLM(config)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2 if weight.dim() > 1 else 1.0)
    return LLaDA(model)


def measure(calls: int = CALLS) -> dict[str, float]:
    """A fit, counted and timed."""
    torch.set_num_threads(1)
    denoiser, mask = made(SMALL), SMALL[-1] - 1
    loaded = Checkpoint("random", denoiser, Words(), mask, 0, ())
    generator = torch.Generator().manual_seed(1)
    asked = torch.randint(mask, (4096, PROMPT), generator=generator).tolist()
    lines = [{"tokens": row, "split": "fit"} for row in asked]
    # Something of the answer that its order can change.
    reward = lambda text, line: len({int(word) % 7 for word in text.split()}) / 7  # noqa: E731
    posed = host("random", lines, reward, length=LENGTH, block=BLOCK, steps=LENGTH, checkpoint=loaded)
    counted = {"canvases": 0, "forwards": 0, "bytes": 0}
    inside = 0.0
    forward = denoiser.model.forward

    def timed(*given: Any, **named: Any) -> Any:
        nonlocal inside
        began = time.thread_time()
        output = forward(*given, **named)
        inside += time.thread_time() - began
        counted["canvases"] += len(given[0])
        counted["forwards"] += 1
        counted["bytes"] = max(counted["bytes"], output.logits.nbytes)
        return output

    denoiser.model.forward = timed
    with tempfile.TemporaryDirectory() as folder:
        began = time.thread_time()
        fitted = fit(HeadFit(), posed, calls=calls, rows=BATCH, folder=Path(folder) / "fit")
        seconds = time.thread_time() - began
        fitted.policy.save(Path(folder) / "policy.dprm")
        kept = sum(path.stat().st_size for path in (Path(folder) / "fit").rglob("*") if path.is_file())
        policy = (Path(folder) / "policy.dprm").stat().st_size
    denoiser.model.forward = forward
    # Only this way of attention is counted.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        denoiser(torch.zeros(1, PROMPT + LENGTH, dtype=torch.long))
    return {
        "calls asked for": calls,
        "calls in the account of the fit": Cost.of_notes(fitted.policy.notes).calls,
        "canvases that the model saw": counted["canvases"],
        "batches": counted["forwards"],
        "seconds of a processor, all": seconds,
        "seconds of them in the model": inside,
        "milliseconds around the model, a call": 1000 * (seconds - inside) / counted["canvases"],
        "operations of a call, counted by torch, to the formula": counter.get_total_flops()
        / flops(SMALL, PROMPT + LENGTH),
        "largest logits, bytes": counted["bytes"],
        "bytes kept on disk, a call": kept / counted["canvases"],
        "bytes of the policy": policy,
    }


def extrapolated(measured: dict[str, float]) -> dict[str, float]:
    """The same fit at the shape of LLaDA-8B."""
    positions, vocabulary = ASKED + ANSWER, LARGE[-1]
    total = flops(LARGE, positions) * measured["calls asked for"]
    return {
        "parameters": weights(LARGE),
        "petaflop": total / 1e15,
        "minutes at 400 TFLOP/s": total / RATE / 60,
        "gigabytes of weights in bfloat16": 2 * weights(LARGE) / 1e9,
        "gigabytes of logits, a batch of 64": 2 * BATCH * positions * vocabulary / 1e9,
        "the same with the head where asked, block of 32": 2 * BATCH * 32 * vocabulary / 1e9,
        "megabytes kept on disk": measured["bytes kept on disk, a call"] * measured["calls asked for"] / 1e6,
        "seconds around the model, on a processor as here": measured["milliseconds around the model, a call"]
        * measured["calls asked for"]
        / 1000,
    }


if __name__ == "__main__":
    sys.exit(write_page(CARD, PAGE, "cost", measure, extrapolated))
