"""The kernels mean what reading in pieces means; without an accelerator Triton's interpreter runs them."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dprm
from dprm.decode.reader import Gumbel, Logits
from dprm.decode.state import State
from tests.draws import logits, seeds

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton")
kernel = pytest.importorskip("dprm.order.triton_read")

# The interpreter is numpy, which warns of the infinities that the kernels reckon with.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
COLUMNS = ("confidence", "margin", "entropy", "peak")
few = settings(max_examples=8, deadline=None)


def close(here, there):
    assert torch.equal(here.tokens, there.tokens.cpu())
    for name in COLUMNS:
        torch.testing.assert_close(getattr(here, name), getattr(there, name).cpu(), atol=2e-6, rtol=1e-5)


def some(seed, rows=3, length=4, vocabulary=70, dtype=torch.float32):
    x = logits(seed, rows, length, vocabulary, dtype)
    generator = torch.Generator().manual_seed(seed)
    if seed % 3 == 1:
        x[torch.rand(x.shape, generator=generator) < 0.3] = -torch.inf
        x[..., 5] = 0.0
    return x, torch.rand(rows, length, generator=generator) < 0.6, torch.randint(0, vocabulary, (rows, length))


@few
@given(
    seed=seeds,
    forbid=st.sampled_from([[], [69], [3, 40], [68, 69]]),
    drawn=st.booleans(),
    partly=st.booleans(),
    tile=st.sampled_from([16, 64, 128]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_the_kernel_reads_what_torch_reads(seed, forbid, drawn, partly, tile, dtype):
    x, flags, tokens = some(seed, dtype=dtype)
    tokens, flags = tokens if drawn else None, flags if partly else None
    there = [None if part is None else part.to(DEVICE) for part in (x, tokens, flags)]
    close(dprm.read(x, tokens, flags, forbid=forbid), kernel.read_once(*there, forbid, tile=tile)[0])


def test_a_tie_goes_to_the_first_token_across_tiles_and_parts():
    x = torch.zeros(1, 2, 200, device=DEVICE)
    x[0, 1, [60, 150]] = 3.0
    reading, mode = kernel.read_once(x, None, None, [], tile=16)
    assert reading.tokens.tolist() == [[0, 60]]
    assert torch.equal(reading.tokens, mode)
    assert reading.margin.abs().max() == 0


@few
@given(seed=seeds)
def test_a_row_reads_the_same_alone_and_beside_others(seed):
    x = logits(seed, 5, 2, 300).to(DEVICE)
    whole, alone = (kernel.read_once(part, None, None, [], tile=16)[0] for part in (x, x[2:3].clone()))
    for name in ("tokens", *COLUMNS):
        assert torch.equal(getattr(whole, name)[2:3], getattr(alone, name))


@few
@given(seed=seeds, forbid=st.sampled_from([(), (69,), (3, 40)]), temperature=st.sampled_from([0.3, 1.0]))
def test_tokens_are_drawn_from_the_noise_of_their_position(seed, forbid, temperature):
    x, flags, _ = some(seed)
    generator = torch.Generator().manual_seed(seed)
    state = State.start(torch.zeros(3, 4, dtype=torch.int64), 0, seed)
    state.redrawn[:] = torch.randint(0, 3, (3, 4), generator=generator)
    noise = Gumbel(state).noise(70, temperature)
    moved = type(noise)(noise.keys.to(DEVICE), noise.versions.to(DEVICE), noise.width, temperature)
    drawn = Logits(forbid).draw(x, temperature, Gumbel(state), flags)
    there, mode = kernel.read_once(x.to(DEVICE), None, flags.to(DEVICE), sorted(forbid), moved, tile=64)
    close(dprm.read(x, drawn, flags, forbid=forbid), there)
    assert torch.equal(mode.cpu(), dprm.read(x, None, flags, forbid=forbid).tokens)


def test_what_is_no_number_shows_in_the_entropy_or_is_named_where_a_look_is_free():
    x = torch.zeros(1, 5, 40, device=DEVICE)
    x[0, 1, 3], x[0, 2, 39], x[0, 3] = torch.nan, torch.inf, -torch.inf
    reading, _ = kernel.read_once(x, None, None, [], tile=16)
    assert torch.isnan(reading.entropy).tolist() == [[False, True, True, True, False]]
    flags = torch.tensor([[True, False, False, False, True]], device=DEVICE)
    assert torch.isfinite(kernel.read_once(x, None, flags, [], tile=16)[0].entropy).all()
    if DEVICE == "cpu":
        with pytest.raises(ValueError, match=r"logits\[row 0, position 1, token 3\] is nan"):
            dprm.read(x, backend="triton")


def test_logits_of_any_strides_are_read():
    x = logits(1, 4, 3, 30).to(DEVICE)
    for view in (x.transpose(0, 1), x[:, :, :20], x.permute(0, 2, 1).contiguous().permute(0, 2, 1)):
        close(dprm.read(view.cpu().contiguous()), kernel.read_once(view, None, None, [])[0])


@pytest.mark.slow
def test_the_kernels_compile_for_an_accelerator_that_is_not_here():
    """Types, shapes and registers: all that can be known of a kernel without running it."""
    code = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dprm.order import triton_read as kernel

types = dict(
    logits="*bf16", row_stride="i64", position_stride="i64", length="i32", vocabulary="i32", eligible="*u8",
    forbidden="*i64", forbidden_count="i32", keys="*i32", versions="*i32", width="i32", coldness="fp32",
    floats="*fp32", places="*i64", slots="i32", parts="i32", tiles="i32", tokens="*i64", numbers="*fp32",
    chosen="*i64", positions="i32",
)
for function, constants in (
    (kernel._read_parts, dict(HAS_ELIGIBLE=True, DRAW=True, TILE=kernel.TILE)),
    (kernel._read_parts, dict(HAS_ELIGIBLE=False, DRAW=False, TILE=kernel.TILE, forbidden_count=1)),
    (kernel._put_together, dict(HAS_ELIGIBLE=True, HAS_TOKENS=True, DRAW=False, TOGETHER=32)),
    (kernel._put_together, dict(HAS_ELIGIBLE=False, HAS_TOKENS=False, DRAW=True, TOGETHER=32, parts=1)),
):
    names = function.arg_names
    signature = {name: "constexpr" if name in constants else types[name] for name in names}
    given = {(names.index(name),): number for name, number in constants.items()}
    source = ASTSource(fn=function, signature=signature, constexprs=given)
    assert "cubin" in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm
"""
    import subprocess
    import sys

    environment = {name: setting for name, setting in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
