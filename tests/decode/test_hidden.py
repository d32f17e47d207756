"""A model that leaves its output head to the decoder decodes as if all logits had been there."""

import pytest
import torch

import dprm
from dprm.decode import Blocks, Compete, Cumulative, Hidden, HoldBack

VOCABULARY, MASK, WIDTH = 12, 11, 8
GENERATOR = torch.Generator().manual_seed(0)
EMBEDDING = torch.randn(VOCABULARY, WIDTH, generator=GENERATOR)
HEAD = torch.randn(WIDTH, VOCABULARY, generator=GENERATOR)


def states(tokens):
    seen = EMBEDDING[tokens]
    return seen.cumsum(1) + seen.flip(1).cumsum(1).flip(1)


class Leaving:
    """The model without its head, and how many positions its head was asked for at each step."""

    def __init__(self):
        self.asked = []

    def __call__(self, tokens):
        return Hidden(states(tokens), self.head)

    def head(self, some):
        self.asked.append(len(some))
        # One position at a time: a matrix product of another size may round otherwise.
        return (some.unsqueeze(2) * HEAD).sum(1)


def whole(tokens):
    return (states(tokens).unsqueeze(3) * HEAD).sum(2)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"budget": 3, "window": Blocks(4)},
        {"temperature": 0.8},
        {"temperature": 0.8, "confidence_of": "mode", "top_p": 0.9},
        {"budget": 2, "guard": HoldBack((3,))},
        {"budget": Cumulative(6), "revoke": Compete()},
        {"budget": Cumulative(6), "revoke": Compete(), "temperature": 0.5},
    ],
)
@pytest.mark.parametrize("order", [dprm.Order(), dprm.Order(signal="entropy", rule="shortlist_top_m", explore=True)])
def test_the_decoding_is_that_of_all_logits(how, order):
    canvas = torch.full((5, 12), MASK)
    canvas[:, :3] = torch.randint(0, MASK, (5, 3), generator=torch.Generator().manual_seed(1))
    settings = {"mask_id": MASK, "seed": torch.arange(5), **how}
    leaving = Leaving()
    one, two = dprm.decode(whole, canvas, order, **settings), dprm.decode(leaving, canvas, order, **settings)
    assert torch.equal(one.tokens, two.tokens)
    assert torch.equal(one.step_map, two.step_map)
    assert max(leaving.asked) <= 5 * 9


def test_the_head_is_asked_for_what_is_masked_and_of_that_for_what_is_in_the_window():
    canvas, leaving, windowed = torch.full((2, 8), MASK), Leaving(), Leaving()
    dprm.decode(leaving, canvas, mask_id=MASK, budget=2)
    assert leaving.asked == [16, 12, 8, 4]
    dprm.decode(windowed, canvas, mask_id=MASK, budget=2, window=Blocks(4))
    assert windowed.asked == [8, 4, 8, 4]


def test_hidden_states_of_other_canvases_are_refused():
    with pytest.raises(ValueError, match=r"the model gave \(2, 3\) positions for canvases \(2, 4\)"):
        dprm.decode(lambda tokens: Hidden(states(tokens)[:, :3], HEAD), torch.full((2, 4), MASK), mask_id=MASK)
