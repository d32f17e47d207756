"""Survivor voting: the best answers vote for what they say, each with the weight e^score.

Of K survivors the ⌊share·K⌋ with the highest scores vote, at least one; a tie goes to the answer whose best voter has
the higher score.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import exp


def voted(answers: Sequence[Hashable], scores: Sequence[float], share: float) -> int:
    """The winner's place among survivors that are sorted by falling score: the best survivor that says it.

    Args:
        answers: what each survivor says, in a form in which equal answers are equal.
    """
    voters = max(1, int(share * len(answers)))
    weight: dict[Hashable, float] = {}
    for answer, score in zip(answers[:voters], scores[:voters]):
        weight[answer] = weight.get(answer, 0.0) + exp(score)
    # Of equals the first: dictionaries keep the order of the scores.
    winner = max(weight, key=lambda answer: weight[answer])
    return answers.index(winner)
