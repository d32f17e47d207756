"""The kernel takes what torch takes; without an accelerator Triton's interpreter runs it."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dprm
from dprm.order import choice, rules
from tests.draws import RULES, candidates, logits, seeds, taught

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton")
kernel = pytest.importorskip("dprm.order.triton_pick")


@settings(max_examples=15, deadline=None)
@given(
    seed=seeds,
    length=st.sampled_from([1, 7, 16, 40]),
    levels=st.sampled_from([2, 5, 10_000]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    each=st.booleans(),
)
def test_it_takes_the_largest_and_at_ties_the_leftmost(seed, length, levels, dtype, each):
    generator = torch.Generator().manual_seed(seed)
    rank = torch.randint(-levels, levels + 1, (4, length), generator=generator).to(dtype) / 7
    rank[rank == 0] *= -1.0 if seed % 2 else 1.0
    flags = torch.rand(4, length, generator=generator) < 0.6
    most = int(torch.randint(1, length + 1, (), generator=generator))
    count = torch.randint(0, most + 1, (4,), generator=generator) if each else most
    moved = (part.to(DEVICE) if isinstance(part, torch.Tensor) else part for part in (rank, flags, count))
    position, kept, taken = (part.cpu() for part in kernel.pick(*moved, most))
    for row in range(4):
        among = flags[row].nonzero().flatten().tolist()
        best = sorted(among, key=lambda place: (-float(rank[row, place]), place))
        wanted = sorted(best[: int(count[row]) if each else count])
        assert taken[row].nonzero().flatten().tolist() == wanted
        assert position[row][kept[row]].tolist() == wanted
        assert int(kept[row].sum()) == len(wanted)
    picks = choice.largest(choice.only(flags, rank), flags, count, most)
    assert torch.equal(picks.mask(length), taken)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_infinities_and_tiny_numbers_have_their_places(seed):
    values = torch.tensor([[-torch.inf, -1e30, -1e-45, -0.0, 0.0, 1e-45, 1.0, torch.inf]], device=DEVICE)
    turn = torch.randperm(8, generator=torch.Generator().manual_seed(seed))
    rank, every = values[:, turn], torch.ones(1, 8, dtype=torch.bool, device=DEVICE)
    for count in range(9):
        _, _, taken = kernel.pick(rank, every, count, 8)
        best = sorted(range(8), key=lambda place: (-float(rank[0, place]), place))[:count]
        assert taken[0].cpu().nonzero().flatten().tolist() == sorted(best)


@settings(max_examples=6, deadline=None)
@given(seed=seeds, each=st.booleans())
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_selects_by_it_what_it_selects_without(rule, seed, each):
    order = taught(dprm.Order(rule=rule, shortlist=(4, 8, 2)), seed, share=0.5)
    reading, flags = dprm.read(logits(seed, 3, 12, 6)), candidates(seed, 3, 12)
    budget = torch.tensor([0, 2, 3]) if each else 2
    without = order.select(reading, flags, budget, 0.4, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "_kernel_for", lambda rank: kernel)
        patch.setattr(choice, "can_look", lambda rank: False)
        patch.setattr(rules, "clear_cut", lambda rank, width: None)
        by_it = order.select(reading, flags, budget, 0.4, seed=seed)
    assert torch.equal(by_it.mask, without.mask)
    assert torch.equal(by_it.changed, without.changed)
    assert torch.equal(*(one.events()[1].sort().values for one in (by_it, without)))


@pytest.mark.slow
def test_the_kernel_compiles_for_an_accelerator_that_is_not_here():
    code = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dprm.order import triton_pick as kernel

types = dict(row_stride="i64", candidates="*u8", budgets="*i64", budget="i32", length="i32", width="i32",
             flags="*u8", positions="*i64", kept="*u8")
for bits in (32, 64):
    constants = dict(PER_ROW=bits == 32, BITS=bits, BLOCK=1024)
    names = kernel._pick.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, f"*fp{bits}") for name in names}
    given = {(names.index(name),): number for name, number in constants.items()}
    source = ASTSource(fn=kernel._pick, signature=signature, constexprs=given)
    assert "cubin" in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm
"""
    import subprocess
    import sys

    environment = {name: setting for name, setting in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
