"""The whole life of a learned order on a host: fitted, chosen, compared, judged, and the same again from its files."""

from __future__ import annotations

from pathlib import Path

import dprm
from dprm.evaluate.card import Card
from dprm.evaluate.estimates import judged_again
from dprm.evaluate.learn import Learned
from dprm.evaluate.outcomes import Outcomes
from dprm.host.host import Host


def lived(host: Host, folder: Path, estimator: str, calls: int, **how) -> Learned:
    """What `dprm.learn` gives on the test split, after what must be true of any of it was asserted."""
    how = {"select": 200, "test": 200, "rows": 512, "estimator": estimator, "calls": calls, **how}
    learned = dprm.learn(host, folder=folder, **how)
    card, policy = learned.card, learned.policy
    assert (card.host, card.split, card.count) == (host.name, "test", 200)
    assert 0.5 * calls < int(learned.fits[estimator].policy.notes["calls"]) < 1.3 * calls
    assert card.verdict is not None
    # The policy that was written is the one that was compared.
    stored = dprm.Policy.load(folder / "policy.dprm")
    assert stored.digest == policy.digest == card.arms["dprm"].policy
    # Every number of the card follows from the outcomes beside it.
    again = judged_again(Card.load(folder / "card.json"), Outcomes.load(folder / "card.outcomes.npz"))
    assert again.arms["dprm"].delta == card.arms["dprm"].delta
    assert again.verdict == card.verdict
    # Asked once more, nothing is decoded again and the same comes out.
    once_more = dprm.learn(host, folder=folder, **how)
    assert once_more.policy.digest == policy.digest
    assert once_more.account == learned.account
    return learned
