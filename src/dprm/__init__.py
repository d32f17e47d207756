"""dprm: learn which masked position a discrete diffusion model should reveal next, from terminal reward.

The rooms, each of which imports only from those before it:

    order     the plug-in itself: read logits, score positions, select, learn; torch only
    data      what problems and training sequences are made of: draws, splits, stocks, text on canvases
    decode    one loop, and the host's decisions as small objects: counts, windows, guards, revoke, Decoding
    host      what a host is: problems, judge, preference; ways to answer; finding hosts, making one
    fit       estimators, and the run that keeps, counts and resumes what they ask
    train     the shared transformer, its loop, mask laws and objectives
    hosts     one folder a host: data, reward, decoding, recipe
    evaluate  cards, statistics, verdict, ablations, studies, the protocol of a fit
    report    cards as one page, and as tables
    cli       the command `dprm`
    theory    exactly enumerable chains: the paper's statements as checks (imports order and decode)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprm import hosts, theory
    from dprm.decode.decoding import Decoding
    from dprm.decode.loop import Result, decode
    from dprm.evaluate.learn import learn
    from dprm.host.host import Host, Problems
    from dprm.host.made import make_host
    from dprm.host.metrics import Metric, Preference
    from dprm.order.order import Order
    from dprm.order.policy import Policy
    from dprm.order.reading import Reading, read
    from dprm.order.scalarize import scalarize
    from dprm.order.stats import Stats

__version__ = "0.1.0"

# Loaded on first use, so that nothing is paid for that is not used.
_HOME = {
    "Decoding": "dprm.decode.decoding",
    "Host": "dprm.host.host",
    "Metric": "dprm.host.metrics",
    "Order": "dprm.order.order",
    "Policy": "dprm.order.policy",
    "Preference": "dprm.host.metrics",
    "Problems": "dprm.host.host",
    "Reading": "dprm.order.reading",
    "Result": "dprm.decode.loop",
    "Stats": "dprm.order.stats",
    "decode": "dprm.decode.loop",
    "learn": "dprm.evaluate.learn",
    "make_host": "dprm.host.made",
    "read": "dprm.order.reading",
    "scalarize": "dprm.order.scalarize",
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
        # The room `dprm.decode` has the name of the function: what is asked for here is the function.
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"dprm.{name}")
    raise AttributeError(f"module 'dprm' has no attribute {name!r}")
