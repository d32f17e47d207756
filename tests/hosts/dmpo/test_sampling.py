"""Several samples of a Countdown problem."""

import pytest
import torch

from dprm.decode import Fixed
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.host import Countdown
from dprm.train.task import successes

MADE = problems.generate("test", 6, 3, seed=1, distinct=True)


def crammer(known, certainty):
    """A host whose model knows the solutions of some problems by heart, and is more or less sure of them."""
    answers = {tuple(row[: canvas.PROMPT]): row for row in known.tokens.tolist()}
    nothing = [canvas.EOT] * canvas.LENGTH

    def model(tokens):
        rows = [answers.get(tuple(row[: canvas.PROMPT]), nothing) for row in tokens.tolist()]
        return torch.nn.functional.one_hot(torch.tensor(rows), canvas.VOCABULARY) * certainty

    return Countdown(model).with_decoding(count=Fixed(14), temperature=1.0)


def solved(host, posed, samples, rows=64, seed=0):
    """[N,n] bool."""
    answers = decoded(host, posed.copies(samples), {"": Decode()}, rows=rows, seed=seed)[""]
    return successes(host, answers.scores).view(-1, samples)


def test_known_problems_are_solved_by_every_sample_and_unknown_ones_by_none():
    host = crammer(problems.Problems(*(field[:4] for field in MADE)), 40.0)
    assert solved(host, host.posed(MADE.listed()), 3).tolist() == [[True] * 3] * 4 + [[False] * 3] * 2


@pytest.mark.parametrize("rows", [5, 100])
def test_a_sample_does_not_depend_on_its_batch(rows):
    host = crammer(MADE, 7.0)
    posed = host.posed(MADE.listed())
    found = solved(host, posed, 4, rows, seed=3)
    assert 0 < int(found.sum()) < 24
    assert torch.equal(found, solved(host, posed, 4, rows=7, seed=3))
    assert torch.equal(found[2:], solved(host, posed[2:], 4, seed=3))


def test_samples_of_a_problem_differ_and_more_of_them_keep_the_first_ones():
    host = crammer(MADE, 7.0)
    posed = host.posed(MADE.listed())
    found = solved(host, posed, 8, seed=3)
    assert len({tuple(column) for column in found.T.tolist()}) > 1
    assert torch.equal(found[:, :4], solved(host, posed, 4, seed=3))
