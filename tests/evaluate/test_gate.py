"""The gate that is declared beforehand opens on a gain that costs no part, and on nothing else."""

from types import SimpleNamespace

import pytest

from dprm.evaluate.gate import gate

PARTS = ("structure", "sequence")


def card(low, structure=0.0, sequence=0.0):
    metrics = {
        "balanced": SimpleNamespace(delta=0.1, delta_low=low),
        "structure": SimpleNamespace(delta=structure),
        "sequence": SimpleNamespace(delta=sequence),
    }
    return SimpleNamespace(reference="confidence", arms={"confidence": None, "dprm": SimpleNamespace(metrics=metrics)})


@pytest.mark.parametrize(
    ("told", "open_", "said"),
    [
        (card(0.001, 0.1, -0.02), True, "no part falls by more than 0.02"),
        (card(0.0), False, "the lower end of balanced is 0.0"),
        (card(-0.0043), False, "the lower end of balanced is -0.0043"),
        (card(None), False, "the lower end of balanced is None"),
        (card(0.01, sequence=-0.021), False, "sequence falls by 0.021"),
        (card(-0.01, structure=-0.5), False, "balanced is -0.01; structure falls by 0.500"),
    ],
)
def test_it_opens_on_a_gain_that_costs_no_part(told, open_, said):
    decision = gate(told, "dprm", "balanced", PARTS)
    assert decision.open is open_
    assert said in decision.reason


def test_what_is_not_in_the_card_is_named():
    with pytest.raises(ValueError, match="arm is 'confidence': expected one of confidence, dprm, other than"):
        gate(card(0.1), "confidence", "balanced", PARTS)
    with pytest.raises(ValueError, match="metric 'tm' is not in the card: it has balanced, structure, sequence"):
        gate(card(0.1), "dprm", "balanced", ("tm",))
