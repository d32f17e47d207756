"""One reference decoding loop, and the host-owned objects around it."""

from dprm.decode.counts import Cumulative, EntropyBound, Even, Factor, Fixed, Threshold
from dprm.decode.guards import HoldBack
from dprm.decode.loop import Result, decode
from dprm.decode.revoke import Compete, Remask
from dprm.decode.state import State
from dprm.decode.trace import Trace
from dprm.decode.windows import Blocks

__all__ = [
    "Blocks",
    "Compete",
    "Cumulative",
    "EntropyBound",
    "Even",
    "Factor",
    "Fixed",
    "HoldBack",
    "Remask",
    "Result",
    "State",
    "Threshold",
    "Trace",
    "decode",
]
