"""Success matrices."""

import pytest
import torch

import dprm
from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.dmpo.sampling import copies, success_matrix

MADE = problems.generate("test", 6, 3, seed=1, distinct=True)


def crammer(known, certainty):
    """A host whose model knows the solutions of some problems by heart, and is more or less sure of them."""
    answers = {tuple(row[: canvas.PROMPT]): row for row in known.tokens.tolist()}
    nothing = [canvas.EOT] * canvas.LENGTH

    def model(tokens):
        rows = [answers.get(tuple(row[: canvas.PROMPT]), nothing) for row in tokens.tolist()]
        return torch.nn.functional.one_hot(torch.tensor(rows), canvas.VOCABULARY) * certainty

    return Countdown(model)


def test_known_problems_are_solved_by_every_sample_and_unknown_ones_by_none():
    host = crammer(problems.Problems(*(field[:4] for field in MADE)), 40.0)
    found = success_matrix(host, host.posed(MADE.listed()), dprm.Order(), 3, budget=14)
    assert found.tolist() == [[True] * 3] * 4 + [[False] * 3] * 2


@pytest.mark.parametrize("rows", [5, 100])
def test_a_sample_does_not_depend_on_its_batch(rows):
    host = crammer(MADE, 7.0)
    asked, how = host.posed(MADE.listed()), {"budget": 14, "seed": 3}
    found = success_matrix(host, asked, dprm.Order(), 4, rows=rows, **how)
    assert 0 < int(found.sum()) < 24
    assert torch.equal(found, success_matrix(host, asked, dprm.Order(), 4, rows=7, **how))
    assert torch.equal(found[2:], success_matrix(host, asked[2:], dprm.Order(), 4, **how))


def test_every_copy_of_a_problem_has_a_stream_of_its_own():
    asked = crammer(MADE, 1.0).posed(MADE.listed())
    many = copies(asked, 5)
    assert len(set(many.key.tolist())) == 30
    assert bool((many.key >= 0).all())
    assert torch.equal(many.canvas[::5], asked.canvas)
    assert list(many.facts[5:10]) == [MADE.listed()[1]] * 5
    with pytest.raises(ValueError, match="samples is 0"):
        copies(asked, 0)
