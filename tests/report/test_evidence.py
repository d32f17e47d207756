"""From theory to evidence: claims name statements that exist, and cells come from cards."""

import json

from dprm.report.evidence import CLAIMS, evidence_table
from dprm.report.readme import peer_table
from dprm.theory import statements


def test_claims_rest_on_statements_that_are_there():
    assert {claim.statement for claim in CLAIMS} <= {one.name for one in statements()}


def test_a_table_has_a_line_for_every_card_with_a_learned_order_that_acts(card, learned_card):
    text = evidence_table({"plain.json": card, "learned.json": learned_card}, "../results")
    assert "plain.json" not in text
    assert text.count("[toy](../results/learned.json)") == len(CLAIMS)
    told = learned_card.arms["dprm"]
    assert f"{told.ready:.0%}, gate {told.gate:.2f}" in text


def test_peers_stand_in_the_order_of_their_gain(tmp_path):
    fits = [{"seed": seed, "calls": 100, "guidance": 1.0, "within": 0.25, "delta": 0.1} for seed in (0, 1)]
    gain = {"delta": 0.1, "low": 0.05, "high": 0.15}
    methods = [
        {"method": "confidence", "told": "nothing is learned", "solved": 0.5, "calls_problem": 6.0},
        {"method": "worse", "told": "x", "solved": 0.4, "calls_problem": 6.0, "delta": -0.1, "low": -0.2, "high": 0.0},
        {"method": "head", "told": "reward", "solved": 0.6, "calls_problem": 6.0} | gain | {"fits": fits},
    ]
    shared = {"host": "toy", "variant": "", "decoding": {"count": "1"}, "count": 40, "split": "test"}
    (tmp_path / "peers-toy.json").write_text(json.dumps({**shared, "methods": methods}))
    lines = peer_table(tmp_path, "results").splitlines()
    assert [line.split(" | ")[3] for line in lines[2:]] == ["head", "confidence", "worse"]
    assert "0.250, 0.250" in lines[2]
    assert "+0.100 [+0.050, +0.150]" in lines[2]
