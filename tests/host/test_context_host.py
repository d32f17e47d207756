"""A ready-made host whose model needs a context for every row: which of two languages the row is written in."""

import pytest
import torch

import dprm
from dprm.fit.branching import Branching
from dprm.host.rollout import Decode
from dprm.theory import myopic
from tests.host.life import lived

CHAIN = myopic(beta=2.0)
MASK = CHAIN.vocab


# ---- the host --------------------------------------------------------------------------------------------------------


def model(tokens, context):
    """The chain, with both its tokens exchanged in rows of the other language."""
    other = context["language"].unsqueeze(1).bool()
    logits = CHAIN.denoiser()(torch.where(other & (tokens != MASK), 1 - tokens, tokens))[..., :2]
    return torch.where(other.unsqueeze(2), logits.flip(2), logits)


def posed(first, count):
    language = torch.arange(count) % 2
    context = {"language": language, "name": [f"row {first + row}" for row in range(count)]}
    return {"canvas": torch.full((count, 4), MASK), "facts": language.tolist(), "context": context}


def host():
    return dprm.make_host(
        "two languages",
        model,
        mask_id=MASK,
        problems={"fit": posed(0, 600), "select": posed(1000, 200), "test": posed(2000, 200)},
        reward=lambda tokens, language: float((tokens == 1 - language).all()),
    )


# ---- what is true of it ----------------------------------------------------------------------------------------------


def test_rows_of_both_languages_are_decoded_each_in_its_own():
    problems = host().problems("test", 6)
    result = Decode().result(host(), problems, 0, model)
    assert result.tokens.tolist() == [[language] * 4 for language in problems.facts]
    assert torch.equal(result.step_map[0], result.step_map[1])


def test_a_branch_keeps_the_context_of_its_problem():
    problems = host().problems("fit", 8)
    branches, _ = Branching(states=2, alternatives=3).collect(host(), problems, dprm.Order(), model)
    apart = [
        Branching(states=2, alternatives=3).collect(host(), problems[row : row + 1], dprm.Order(), model)[0].scores
        for row in range(8)
    ]
    assert torch.equal(branches.scores, torch.cat(apart))
    assert branches.gain(host()).amax() == 1.0


def test_problems_are_told_apart_by_their_context_alone():
    names = host().problems("fit", 600)
    assert len(names.key.unique()) == 600
    same = {"canvas": torch.full((2, 4), MASK), "context": {"language": torch.tensor([0, 0])}}
    with pytest.raises(ValueError, match=r"problems\['fit'\]\.key\[row 1\] is .* that of row 0 again"):
        dprm.make_host("twice", model, MASK, {"fit": same}, lambda tokens, facts: 0.0)
    short = {"canvas": torch.full((2, 4), MASK), "context": {"language": torch.tensor([0])}}
    with pytest.raises(ValueError, match=r"problems\['fit'\] has 1 contexts for 2 canvases"):
        dprm.make_host("short", model, MASK, {"fit": short}, lambda tokens, facts: 0.0)


def test_it_is_fitted_compared_and_judged(tmp_path):
    learned = lived(host(), tmp_path, "head", calls=2000)
    assert learned.card.arms["confidence"].mean == 0.0
    assert learned.card.arms["dprm"].mean == 1.0
    assert learned.card.verdict["verdict"] == "apply"
