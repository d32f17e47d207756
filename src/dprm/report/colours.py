"""A colour for each order: not twice in a run that can do without, and from run to run the same where that can be.

Orders that meet in a run are neighbours. An order takes, for the whole page, a colour that none of its neighbours has;
where there is none it takes one that is free in its run, and keeps its colour elsewhere. References are neutral. The
style sheet says what a colour is by day and by night.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dprm.evaluate.card import Card
from dprm.evaluate.study import Study
from dprm.report.runs import Run

COUNT = 10
# The neutral colour is 0.
_PLACES = range(1, COUNT)


def order_colours(runs: Iterable[Run]) -> list[dict[str, str]]:
    """For every run, a CSS colour for each of its orders and training arms."""
    contents = [run.content for run in runs]
    references = {content.reference for content in contents if isinstance(content, Card)}
    named = [_names(content) for content in contents]
    neutral = [_neutral(content, names, references) for content, names in zip(contents, named)]
    coloured = [[name for name in names if name not in plain] for names, plain in zip(named, neutral)]
    usual = _usual(coloured)
    places = [{**dict.fromkeys(plain, 0), **_places(names, usual)} for plain, names in zip(neutral, coloured)]
    return [{name: f"var(--order-{place})" for name, place in found.items()} for found in places]


def _names(content: object) -> list[str]:
    """The orders of a run: its arms, and what a study decoded by."""
    if not isinstance(content, Card | Study):
        return []
    decoded = [entry["order"] for entry in content.results if "order" in entry] if isinstance(content, Study) else []
    return list(dict.fromkeys([*content.arms, *decoded]))


def _neutral(content: object, names: list[str], references: set[str]) -> list[str]:
    """The reference of a comparison; in a study, the first name that is one elsewhere."""
    return [content.reference] if isinstance(content, Card) else [name for name in names if name in references][:1]


def _usual(coloured: list[list[str]]) -> dict[str, int]:
    """Every name's place on the page, the least used of those that no neighbour has."""
    neighbours: dict[str, set[str]] = {}
    for names in coloured:
        for name in names:
            neighbours.setdefault(name, set()).update(names)
    usual: dict[str, int] = {}
    for names in coloured:
        for name in names:
            if name not in usual:
                near = {usual[other] for other in neighbours[name] if other in usual}
                beside = {usual[other] for other in names if other in usual}
                usual[name] = _least_used(usual.values(), near if len(near) < len(_PLACES) else beside)
    return usual


def _places(names: list[str], usual: dict[str, int]) -> dict[str, int]:
    """The places of one run: the usual one, or for a name that comes too late a free one."""
    places: dict[str, int] = {}
    late = []
    for name in names:
        if usual[name] in places.values():
            late.append(name)
        else:
            places[name] = usual[name]
    for name in late:
        places[name] = _least_used(places.values(), set())
    return places


def _least_used(used: Iterable[int], barred: set[int]) -> int:
    """The first of the least used places that are not barred; of all, where all are."""
    counts = Counter(used)
    free = [place for place in _PLACES if place not in barred] or list(_PLACES)
    return min(free, key=lambda place: counts[place])
