"""The paper's theory, executable: exactly enumerable chains, and every statement as an experiment."""

from dprm.theory.bucket import BucketTable
from dprm.theory.chain import Chain
from dprm.theory.examples import aliased_pair, keyed, myopic, null_control, random_chain
from dprm.theory.laws import soft_bon_law
from dprm.theory.statement import Outcome, Statement, statements

__all__ = [
    "BucketTable",
    "Chain",
    "Outcome",
    "Statement",
    "aliased_pair",
    "keyed",
    "myopic",
    "null_control",
    "random_chain",
    "soft_bon_law",
    "statements",
]
