"""The kernel gives the values of the folded head; without an accelerator Triton's interpreter runs it."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dprm
from dprm.order import fold
from tests.draws import candidates, logits, seeds
from tests.order.test_fold import head, sight

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton")
kernel = pytest.importorskip("dprm.order.triton_fold")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def by_kernel(one, seen):
    return (
        kernel.values(one._folded, seen.to(DEVICE)).cpu() if DEVICE == "cpu" else one.to(DEVICE)(seen.to(DEVICE)).cpu()
    )


@settings(max_examples=8, deadline=None)
@given(
    seed=seeds,
    aux=st.sampled_from([1, 3, 24]),
    reach=st.sampled_from([0, 2, 4]),
    length=st.sampled_from([1, 7, 20, 64]),
)
def test_the_values_are_those_of_the_folded_head(seed, aux, reach, length):
    one, seen = head(seed, aux, reach), sight(seed, 3, length, aux)
    torch.testing.assert_close(by_kernel(one, seen), one(seen), atol=2e-5, rtol=1e-5)


@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_a_rows_value_is_the_same_alone_to_the_last_bit(seed):
    one, seen = head(seed), sight(seed, 4, 20)
    assert torch.equal(by_kernel(one, seen)[2:3], by_kernel(one, seen[2:3]))


@settings(max_examples=4, deadline=None)
@given(seed=seeds)
@pytest.mark.parametrize("rule", ["top_m", "shortlist_top_m"])
def test_an_order_chooses_by_it_as_without(rule, seed):
    order = dprm.Order(head=head(seed), signal="odds", rule=rule, guidance=2.0)
    reading, flags = dprm.read(logits(seed, 4, 20, 6)), candidates(seed, 4, 20)
    without = order.select(reading, flags, 3, 0.4, seed=1).mask
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "_kernel_for", lambda candidates: kernel)
        assert torch.equal(order.select(reading, flags, 3, 0.4, seed=1).mask, without)


@pytest.mark.slow
def test_the_kernel_compiles_for_an_accelerator_that_is_not_here():
    code = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dprm.order import triton_fold as kernel

types = dict(candidates="*u8", aux="*i64", budgets="*i64", pace="*i64", length="i32", left_once="fp32",
             left_twice="fp32")
for states, block in ((False, 256), (True, 1024)):
    constants = dict(REACH=4, BOUNDS=10, STATES=states, BLOCK=block)
    names = kernel._values.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in names}
    given = {(names.index(name),): number for name, number in constants.items()}
    source = ASTSource(fn=kernel._values, signature=signature, constexprs=given)
    assert "cubin" in triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm
"""
    import subprocess
    import sys

    environment = {name: setting for name, setting in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
