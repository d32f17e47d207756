"""One reference decoding loop, and the host-owned objects around it."""

from dprm.decode.counts import Cumulative, EntropyBound, Even, Factor, Fixed, Threshold
from dprm.decode.decoding import Decoding
from dprm.decode.guards import HoldBack
from dprm.decode.hidden import Hidden
from dprm.decode.loop import Result, Step, advance, begin, commit, decode
from dprm.decode.reader import Logits, Reader
from dprm.decode.revoke import Compete, Remask
from dprm.decode.state import State
from dprm.decode.trace import Trace
from dprm.decode.windows import Blocks

__all__ = [
    "Blocks",
    "Compete",
    "Cumulative",
    "Decoding",
    "EntropyBound",
    "Even",
    "Factor",
    "Fixed",
    "Hidden",
    "HoldBack",
    "Logits",
    "Reader",
    "Remask",
    "Result",
    "State",
    "Step",
    "Threshold",
    "Trace",
    "advance",
    "begin",
    "commit",
    "decode",
]
