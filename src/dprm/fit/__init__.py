"""How values are learned: on policy, branched into a table or a head, asked of every prompt.

Every estimator is a frozen setting with one verb, `learn(run) -> Policy`. What it asks of the run is kept, so that a
fit goes on after a kill, and counted, so that every policy says its price in model calls.
"""

from dprm.fit.branched import Branched
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.fit.estimators import ESTIMATORS, Estimator, Fitted, estimator, fit
from dprm.fit.head import HeadFit
from dprm.fit.montecarlo import MonteCarlo
from dprm.fit.onpolicy import OnPolicy
from dprm.fit.run import Run

__all__ = [
    "ESTIMATORS",
    "Branched",
    "Branching",
    "Cost",
    "Estimator",
    "Fitted",
    "HeadFit",
    "MonteCarlo",
    "OnPolicy",
    "Run",
    "estimator",
    "fit",
]
