"""What the front page shows of the committed cards: one line a host, and one picture of all learned orders."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.verdict import EQUAL_CALLS, judge_cards, policies
from dprm.hosts import ENTRIES, difficulty_in_words
from dprm.report.fits import fitted_arms
from dprm.report.numbers import with_interval

# The card that stands for a host where that is not the one with the most problems.
FRONT: dict[str, str] = {}
# Of the picture, in pixels: names, plot, numbers; a row; above the first row.
_NAMES, _PLOT, _NUMBERS, _ROW, _TOP = 340, 300, 190, 22, 46
_INK, _SOFT, _LINE, _LEARNED, _WORSE = "#22252b", "#626a76", "#e3e1dc", "#c2452d", "#59616e"


@dataclass(frozen=True)
class Line:
    """A card with a learned order: the arm that the verdict is about, the host's own, and the verdict."""

    file: str
    card: Card
    learned: Arm
    own: Arm
    verdict: str

    @property
    def setting(self) -> str:
        """The difficulty and the budget, in words."""
        times = self.learned.nfe / max(self.own.nfe, 1.0)
        dear = f"{times:.0f} × the calls" if times > EQUAL_CALLS else ""
        parts = (difficulty_in_words(self.card.host, self.card.variant), budget(self.card), dear)
        return ", ".join(part for part in parts if part)

    @property
    def calls(self) -> str:
        """Model calls a problem; of both where they are not the same."""
        own, learned = f"{self.own.nfe:.0f}", f"{self.learned.nfe:.0f}"
        return own if own == learned else f"{own} → {learned}"


def budget(card: Card) -> str:
    """How many positions are revealed a step, in words."""
    if card.budget.isdecimal():
        return f"{card.budget} position{'' if card.budget == '1' else 's'} a step"
    steps = re.fullmatch(r"Even\(steps=(\d+)\)", card.budget)
    return f"{steps[1]} even steps" if steps else card.budget


def compares_fits(card: Card) -> bool:
    """Whether a card compares nothing but fits with each other."""
    return 1 < len(fitted_arms(card)) == len(card.arms) - 1


def lines_of(cards: dict[str, Card]) -> list[Line]:
    """The cards with a learned order, by host; those that compare fits alone are left out."""
    lines = []
    for host in dict.fromkeys(card.host for card in cards.values()):
        own = {name: card for name, card in cards.items() if card.host == host}
        verdicts = judge_cards(own)[1]
        for name, card in own.items():
            arm = verdicts[name].arm
            if arm is not None and not compares_fits(card):
                lines.append(Line(name, card, card.arms[arm], card.arms[card.reference], verdicts[name].verdict))
    return lines


def one_a_host(cards: dict[str, Card]) -> dict[str, Line | None]:
    """By host its line of the most problems, at equal calls where there is one; None for a host without a card.

    Cards of today, which have measured times and kept their outcomes, go before those of the first version.
    """
    lines = lines_of(cards)
    found: dict[str, Line | None] = {}
    for host in [*ENTRIES, *dict.fromkeys(line.card.host for line in lines if line.card.host not in ENTRIES)]:
        of_host = [line for line in lines if line.card.host == host]
        named = [line for line in of_host if line.file == FRONT.get(host)]
        equal = [line for line in of_host if "→" not in line.calls]
        found[host] = max(named or equal or of_host, key=_weight, default=None)
    return found


def _weight(line: Line) -> tuple[bool, int]:
    return line.learned.time_ratio is not None, line.card.count


def picture(cards: dict[str, Card]) -> str:
    """The difference of every learned order to its host's own, with its 95 % interval, as SVG."""
    lines = _one_a_setting([line for line in lines_of(cards) if line.learned.delta_low is not None])
    ends = [end for line in lines for end in (line.learned.delta_low, line.learned.delta_high) if end is not None]
    low, high = min([0.0, *ends]), max([0.05, *ends])

    def x(value: float) -> str:
        return f"{_NAMES + (value - low) / (high - low) * _PLOT:.1f}"

    wide, tall = _NAMES + _PLOT + _NUMBERS, _TOP + _ROW * len(lines) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
        ' font-family="system-ui, sans-serif" font-size="13" role="img"'
        ' aria-label="Difference in mean reward of every learned order to its host\'s own, with 95 % intervals">',
        f'<rect width="{wide}" height="{tall}" fill="white"/>',
        f'<text x="10" y="20" fill="{_INK}" font-weight="600">Mean reward: learned order minus the host\'s own</text>',
        f'<text x="10" y="36" fill="{_SOFT}" font-size="11">same model, same problems of the test split,'
        " 95 % intervals; rewards go from 0 to 1</text>",
    ]
    for tick in (step / 10 for step in range(-10, 11)):
        if low <= tick <= high:
            parts.append(f'<line x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP}" y2="{tall - 24}" stroke="{_LINE}"/>')
            where = f'x="{x(tick)}" y="{tall - 9}" font-size="11" text-anchor="middle"'
            parts.append(f'<text {where} fill="{_SOFT}">{tick:+.1f}</text>')
    parts.append(f'<line x1="{x(0)}" x2="{x(0)}" y1="{_TOP}" y2="{tall - 24}" stroke="{_INK}"/>')
    for row, line in enumerate(lines):
        parts += _row(line, _TOP + _ROW * (row + 0.5), x)
    return "\n".join([*parts, "</svg>", ""])


def _one_a_setting(lines: list[Line]) -> list[Line]:
    """Of several cards of one setting that with the fewest learned orders, the best of many being a choice."""

    def rank(line: Line) -> tuple[int, int]:
        return len(policies(line.card)), -line.card.count

    settings: dict[tuple[str, str], Line] = {}
    for line in lines:
        key = line.card.host, line.setting
        if key not in settings or rank(line) < rank(settings[key]):
            settings[key] = line
    return list(settings.values())


def _row(line: Line, y: float, x: Callable[[float], str]) -> list[str]:
    arm = line.learned
    if arm.delta is None or arm.delta_low is None or arm.delta_high is None:
        return []
    colour = _LEARNED if arm.delta_low > 0 else _WORSE
    name = f'<tspan font-weight="600">{escape(line.card.host)}</tspan>'
    setting = f'<tspan fill="{_SOFT}">{escape(re.sub(" positions? a step", " a step", line.setting))}</tspan>'
    ends = f'x1="{x(arm.delta_low)}" x2="{x(arm.delta_high)}" y1="{y}" y2="{y}"'
    number = with_interval(arm.delta, arm.delta_low, arm.delta_high)
    return [
        f'<text x="10" y="{y + 4:.0f}" fill="{_INK}">{name} {setting}</text>',
        f'<line {ends} stroke="{colour}" stroke-width="3"/>',
        f'<circle cx="{x(arm.delta)}" cy="{y}" r="4.5" fill="{colour}"/>',
        f'<text x="{_NAMES + _PLOT + 14}" y="{y + 4:.0f}" fill="{_INK}" font-size="12">{number}</text>',
    ]
