"""dprm: learn which masked position a discrete diffusion model should reveal next, from terminal reward.

The rooms, each of which imports only from those before it:

    order     the plug-in itself: read logits, score positions, select, learn; torch and numpy only
    data      what problems and training sequences are made of: draws, splits, stocks, text on canvases
    decode    one loop, and the host's decisions as small objects: counts, windows, guards, revoke, Decoding
    host      what a host is: problems, judge, preference; ways to answer; finding hosts, making one
    fit       estimators, and the run that keeps, counts and resumes what they ask
    train     the shared transformer, its loop, mask laws and objectives
    search    many decodings of one question: pruned, grown again, voted on
    hosts     one folder a host: data, reward, decoding, recipe
    evaluate  cards, statistics, verdict, ablations, studies, the protocol of a fit
    contrib   thin adapters to other people's engines, each imported by itself
    report    cards as one page, and as tables
    cli       the command `dprm`
    theory    exactly enumerable chains: the paper's statements as checks (imports order and decode)
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprm import hosts, theory
    from dprm.decode import Decoding, Result, decode
    from dprm.evaluate.learn import learn
    from dprm.host.host import Host, Problems
    from dprm.host.made import make_host
    from dprm.host.metrics import Metric, Preference
    from dprm.order import Order, Policy, Reading, Stats, read, scalarize

__version__ = "0.1.0"

# Loaded on first use: the command says its help and its version without torch.
_HOME = {
    **dict.fromkeys(("Decoding", "Result", "decode"), "dprm.decode"),
    **dict.fromkeys(("Order", "Policy", "Reading", "Stats", "read", "scalarize"), "dprm.order"),
    "Host": "dprm.host.host",
    "Metric": "dprm.host.metrics",
    "Preference": "dprm.host.metrics",
    "Problems": "dprm.host.host",
    "learn": "dprm.evaluate.learn",
    "make_host": "dprm.host.made",
}
_ROOMS = ("hosts", "theory")
__all__ = [
    "Decoding",
    "Host",
    "Metric",
    "Order",
    "Policy",
    "Preference",
    "Problems",
    "Reading",
    "Result",
    "Stats",
    "decode",
    "hosts",
    "learn",
    "make_host",
    "read",
    "scalarize",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"dprm.{name}")
    raise AttributeError(f"module 'dprm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """`dprm.decode` is the function; importing the room of that name must not put the room in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
