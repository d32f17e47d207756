"""How values are learned: on policy, branched into a table or a head, and by the policy-gradient peer.

Every estimator is a frozen setting with one verb, `fit(host, problems, path, on_round) -> Policy`. It writes the policy
after every round, goes on after a kill, and notes in it what was spent (`Cost`).
"""

from dprm.fit.branched import Branched
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.fit.estimators import ESTIMATORS, Estimator, estimator
from dprm.fit.head import HeadFit
from dprm.fit.montecarlo import MonteCarlo
from dprm.fit.onpolicy import OnPolicy
from dprm.fit.policy_gradient import PolicyGradient

__all__ = [
    "ESTIMATORS",
    "Branched",
    "Branching",
    "Cost",
    "Estimator",
    "HeadFit",
    "MonteCarlo",
    "OnPolicy",
    "PolicyGradient",
    "estimator",
]
