"""The plug-in itself: torch only, and nothing else of dprm."""

from dprm.order.cells import Cells, Gate
from dprm.order.choice import Choice
from dprm.order.head import Head, Sight
from dprm.order.order import Order
from dprm.order.policy import Policy, PolicyError
from dprm.order.reading import Reading, read
from dprm.order.scalarize import scalarize
from dprm.order.signals import SIGNALS, Halton, LeftToRight, NoisyConfidence, PositionWeighted, Signal
from dprm.order.stats import Stats
from dprm.order.values import Table, drift, estimate, radius

__all__ = [
    "SIGNALS",
    "Cells",
    "Choice",
    "Gate",
    "Halton",
    "Head",
    "LeftToRight",
    "NoisyConfidence",
    "Order",
    "Policy",
    "PolicyError",
    "PositionWeighted",
    "Reading",
    "Sight",
    "Signal",
    "Stats",
    "Table",
    "drift",
    "estimate",
    "radius",
    "read",
    "scalarize",
]
