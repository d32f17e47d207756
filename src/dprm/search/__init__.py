"""Search at test time: many decodings of one question, judged on the way, pruned, grown again, and voted on."""

from dprm.search.schedule import Schedule
from dprm.search.search import Search, searched
from dprm.search.verify import ByFunction, VerdictSlot, Verifier

__all__ = ["ByFunction", "Schedule", "Search", "VerdictSlot", "Verifier", "searched"]
