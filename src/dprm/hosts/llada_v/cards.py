"""Question cards: a picture, its question, and answers with the order in which their slots were revealed.

A card is a line of text, so that it can stand in a result card; `drawn` makes one SVG of several:

    GRID · question · right or wrong, who: word step, word step, … · …

where GRID are the nine numbers of the scene. Words keep the order of their slots; EOT is `□`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import torch

from dprm.data.scenes import PALETTE
from dprm.data.scenes import drawn as pictures_of
from dprm.host.rollout import Rollout
from dprm.hosts.llada_v import words

BETWEEN = " · "
# In points: of a card, of a pixel, of the text beside the picture.
_WIDE, _HIGH, _PIXEL, _SIDE = 330, 150, 3, 32
_ACROSS = 2
_RIGHT, _WRONG, _INK, _FAINT = "#1a7f37", "#b42318", "#1f2328", "#6b7280"


def line(grid: Sequence[int], question: str, answers: Mapping[str, tuple[list[int], list[int], bool]]) -> str:
    """A card. answers: by order the tokens and steps of the slots, and whether the answer counts."""
    parts = [" ".join(map(str, grid)), question]
    for name, (tokens, steps, right) in answers.items():
        said = ", ".join(f"{words.WORDS[token]} {step}" for token, step in zip(tokens, steps, strict=True))
        parts.append(f"{'right' if right else 'wrong'}, {name}: {said}")
    return BETWEEN.join(parts)


def lines(grids: Sequence[Sequence[int]], rollouts: Mapping[str, Rollout]) -> list[str]:
    """A card for every problem. grids: of their scenes. rollouts: by order."""
    cards = []
    slots = slice(words.QUESTION, words.LENGTH)
    for row, grid in enumerate(grids):
        answers = {
            name: (run.tokens[row, slots].tolist(), run.step_map[row, slots].tolist(), bool(run.scores[row, 0] == 1))
            for name, run in rollouts.items()
        }
        question = words.asked(next(iter(rollouts.values())).tokens[row].tolist())
        cards.append(line(grid, question, answers))
    return cards


def drawn(cards: Sequence[str]) -> str:
    """Cards in a grid, as SVG. The small number at a word is the step of its reveal."""
    down = max(1, -(-len(cards) // _ACROSS))
    width, height = _ACROSS * _WIDE, down * _HIGH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="system-ui, sans-serif" font-size="13" shape-rendering="crispEdges">'
    ]
    for number, card in enumerate(cards):
        x, y = number % _ACROSS * _WIDE, number // _ACROSS * _HIGH
        parts.append(f'<g transform="translate({x + 8} {y + 8})">{_card(card)}</g>')
    return "".join([*parts, "</svg>"])


def _card(card: str) -> str:
    grid, question, *answers = card.split(BETWEEN)
    parts = [_picture([int(number) for number in grid.split()])]
    left = _PIXEL * _SIDE + 12
    top = 14
    for text in _wrapped(question, 25):
        parts.append(f'<text x="{left}" y="{top}" fill="{_INK}" font-weight="600">{escape(text)}</text>')
        top += 17
    for answer in answers:
        told, _, said = answer.partition(": ")
        right, _, name = told.partition(", ")
        colour = _RIGHT if right == "right" else _WRONG
        parts.append(f'<text x="{left}" y="{top + 5}" fill="{_FAINT}" font-size="11">{escape(name)}</text>')
        spans = []
        for each in said.split(", "):
            word, step = each.rsplit(" ", 1)
            spans.append(
                f'<tspan fill="{colour if word != words.WORDS[words.EOT] else _FAINT}">{escape(word)}</tspan>'
                f'<tspan font-size="9" dy="-5" fill="{_FAINT}">{step}</tspan><tspan dy="5"> </tspan>'
            )
        parts.append(f'<text x="{left}" y="{top + 23}" xml:space="preserve">{"".join(spans)}</text>')
        top += 36
    return "".join(parts)


def _picture(grid: list[int]) -> str:
    """The scene, run by run of one colour in every line."""
    codes = pictures_of(torch.tensor([grid]), _SIDE)[0]
    back = int(codes[0, 0])
    side = _PIXEL * _SIDE
    parts = [f'<rect width="{side}" height="{side}" fill="{_hex(back)}" stroke="#d0d7de"/>']
    for y, row in enumerate(codes.tolist()):
        start = 0
        for x in range(1, _SIDE + 1):
            if x == _SIDE or row[x] != row[start]:
                if row[start] != back:
                    parts.append(
                        f'<rect x="{_PIXEL * start}" y="{_PIXEL * y}" width="{_PIXEL * (x - start)}" height="{_PIXEL}" '
                        f'fill="{_hex(row[start])}"/>'
                    )
                start = x
    return "".join(parts)


def _hex(code: int) -> str:
    return "#" + "".join(f"{part:02x}" for part in PALETTE[code].tolist())


def _wrapped(text: str, most: int) -> list[str]:
    """Lines of at most so many letters."""
    rows = [""]
    for word in text.split():
        if rows[-1] and len(rows[-1]) + 1 + len(word) > most:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    return rows
