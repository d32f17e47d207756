"""dprm: learn which masked position a discrete diffusion model should reveal next, from terminal reward."""

import importlib
from typing import TYPE_CHECKING, Any

from dprm.decode import Result, decode
from dprm.order import Order, Policy, Reading, Stats, read, scalarize

if TYPE_CHECKING:
    from dprm import hosts, theory

__version__ = "0.1.0"
__all__ = ["Order", "Policy", "Reading", "Result", "Stats", "decode", "hosts", "read", "scalarize", "theory"]

# Loaded on first use, so that `import dprm` costs little more than `import torch`.
_LAZY = ("hosts", "theory")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"dprm.{name}")
    raise AttributeError(f"module 'dprm' has no attribute {name!r}")
