"""What every adapter has to keep, and how it is asked: one step of an engine, and the same step with a policy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import dprm
from dprm.contrib.selector import Selector
from dprm.order import Cells, Stats
from tests.draws import logits

VOCABULARY, MASK = 9, 8


@dataclass(frozen=True)
class Engine:
    """An engine: (logits [B,L,V], tokens [B,L]) → tokens [B,L], of a step or of a whole generation.

    Attributes:
        own: the engine as it is. ordered: the same, and a `Selector` as the third argument.
        signal: what it ranks by. head: whether a head can be used there.
        shows: what an adapter can see of the model: "mask", "vocabulary".
        alone: whether a row by itself is answered as in a batch, by the engine as it is.
        arrays: whether it computes in another library, in which waits are counted otherwise.
        waits: how often an adapter waits where the engine as it is does not.
    """

    name: str
    own: Callable[[Tensor, Tensor], Tensor]
    ordered: Callable[[Tensor, Tensor, Selector], Tensor]
    signal: str = "confidence"
    head: bool = True
    shows: tuple[str, ...] = ()
    alone: bool = True
    arrays: bool = False
    waits: int = 0


def states(seed: int, rows: int = 6, length: int = 12) -> tuple[Tensor, Tensor]:
    """Logits with many ties, and canvases from one masked position to all; the mask is never the most probable."""
    generator = torch.Generator().manual_seed(seed)
    x = logits(seed, rows, length, VOCABULARY)
    x[..., MASK] = -20.0
    tokens = torch.randint(MASK, (rows, length), generator=generator)
    share = torch.rand(rows, 1, generator=generator)
    masked = torch.rand(rows, length, generator=generator) < share
    masked[0] = True
    masked[torch.arange(rows), torch.randint(length, (rows,), generator=generator)] = True
    return x, tokens.masked_fill(masked, MASK)


def policy(seed: int = 1, **settings: object) -> dprm.Policy:
    """A policy whose values go up and down with confidence, so that it disagrees with every order by confidence."""
    order = dprm.Order(phases=2, ready=1, baseline="global", **settings)
    stats = Stats(Cells(2, 16, 1), order.beta)
    cell = torch.arange(32).repeat(50)
    stats.add(cell, ((cell * 7 + seed) % 5 == 0).double())
    order.merge(stats)
    return dprm.Order.from_policy(order.policy(), guidance=3.0).policy()


class _Counted(TorchDispatchMode):
    """Counts what would stop an accelerator: values that Python asks for, and shapes that depend on values."""

    waiting = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "is_nonzero")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func.overloadpacket.__name__
        self.count += name in self.waiting
        if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
            self.count += any(index is not None and index.dtype == torch.bool for index in args[1])
        return func(*args, **(kwargs or {}))


class _Brought(TorchFunctionMode):
    """Counts what is brought from an accelerator or to it, and would be waited for; on the host nothing happens."""

    def __init__(self, counted: _Counted) -> None:
        super().__init__()
        self.counted = counted

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        named = kwargs or {}
        name = getattr(func, "__name__", "")
        places = [str(place) for place in (*args[1:], *named.values()) if isinstance(place, str | torch.device)]
        self.counted.count += (
            name in ("cpu", "numpy", "tolist")
            or (name == "to" and "cpu" in places and not named.get("non_blocking"))
            or (name in ("tensor", "as_tensor") and bool(places))
        )
        return func(*args, **named)


@contextmanager
def as_on_an_accelerator(monkeypatch):  # type: ignore[no-untyped-def]
    """Count syncs while dprm believes that a look at a value would cost one."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dprm.") and hasattr(module, "can_look"):
            monkeypatch.setattr(module, "can_look", lambda tensor: False)
    with _Counted() as counted, _Brought(counted):
        yield counted
    monkeypatch.undo()
