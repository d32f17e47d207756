"""A colour for each order: not twice in a run that can do without, and from run to run the same where that can be.

Orders that meet in a run are neighbours. An order takes, for the whole page, a colour that none of its neighbours has;
where there is none it takes one that is free in its run, and keeps its colour elsewhere. References are neutral; the
learned order has a colour of its own on every page. The style sheet says what a colour is by day and by night.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dprm.evaluate.card import Card
from dprm.evaluate.study import Study
from dprm.evaluate.verdict import judge, policies
from dprm.report.runs import Run

COUNT = 10
LEARNED = "var(--learned)"
# The neutral colour is 0.
_SHADES = range(1, COUNT)


def order_colours(runs: Iterable[Run]) -> list[dict[str, str]]:
    """For every run, a CSS colour for each of its orders and training arms."""
    contents = [run.content for run in runs]
    references = {content.reference for content in contents if isinstance(content, Card)}
    names_of = [_names(content) for content in contents]
    neutral_of = [_neutral(content, names, references) for content, names in zip(contents, names_of)]
    learned_of = [learned(content, names) for content, names in zip(contents, names_of)]
    coloured_of = [
        [name for name in names if name not in neutral and name != own]
        for names, neutral, own in zip(names_of, neutral_of, learned_of)
    ]
    usual = _usual(coloured_of)
    shades_of = [
        {**dict.fromkeys(neutral, 0), **_shades(coloured, usual)} for neutral, coloured in zip(neutral_of, coloured_of)
    ]
    return [
        {**{name: f"var(--order-{shade})" for name, shade in shades.items()}, **({own: LEARNED} if own else {})}
        for shades, own in zip(shades_of, learned_of)
    ]


def learned(content: object, names: list[str]) -> str | None:
    """The learned order of a run: of a comparison that of the verdict, of a study the training of that name."""
    if isinstance(content, Card):
        own = policies(content)
        return (
            judge(content).arm
            if len(own) > 1 and "dprm" not in own
            else next(iter(["dprm"] if "dprm" in own else own), None)
        )
    return next((name for name in names if name.startswith("dprm")), None)


def _names(content: object) -> list[str]:
    """The orders of a run: its arms, and what a study decoded by."""
    if not isinstance(content, Card | Study):
        return []
    decoded = [entry["order"] for entry in content.results if "order" in entry] if isinstance(content, Study) else []
    return list(dict.fromkeys([*content.arms, *decoded]))


def _neutral(content: object, names: list[str], references: set[str]) -> list[str]:
    """The reference of a comparison; in a study, the first name that is one elsewhere."""
    return [content.reference] if isinstance(content, Card) else [name for name in names if name in references][:1]


def _usual(coloured_of: list[list[str]]) -> dict[str, int]:
    """Every name's shade on the page, the least used of those that no neighbour has."""
    neighbours: dict[str, set[str]] = {}
    for names in coloured_of:
        for name in names:
            neighbours.setdefault(name, set()).update(names)
    usual: dict[str, int] = {}
    for names in coloured_of:
        for name in names:
            if name not in usual:
                near = {usual[other] for other in neighbours[name] if other in usual}
                beside = {usual[other] for other in names if other in usual}
                usual[name] = _least_used(usual.values(), near if len(near) < len(_SHADES) else beside)
    return usual


def _shades(names: list[str], usual: dict[str, int]) -> dict[str, int]:
    """The shades of one run: the usual one, or for a name that comes too late a free one."""
    shades: dict[str, int] = {}
    late = []
    for name in names:
        if usual[name] in shades.values():
            late.append(name)
        else:
            shades[name] = usual[name]
    for name in late:
        shades[name] = _least_used(shades.values(), set())
    return shades


def _least_used(used: Iterable[int], barred: set[int]) -> int:
    """The first of the least used shades that are not barred; of all, where all are."""
    counts = Counter(used)
    free = [shade for shade in _SHADES if shade not in barred] or list(_SHADES)
    return min(free, key=lambda shade: counts[shade])
