"""Search at test time: many decodings of one question, judged on the way, pruned, grown again, and voted on."""

from dprm.search.around import searched
from dprm.search.schedule import Schedule
from dprm.search.search import Search
from dprm.search.verify import ByFunction, Likelihood, VerdictSlot, Verifier

__all__ = ["ByFunction", "Likelihood", "Schedule", "Search", "VerdictSlot", "Verifier", "searched"]
