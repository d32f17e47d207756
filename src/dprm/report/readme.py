"""The README's result tables, from committed cards: `python -m dprm.report.readme`, or `--check` to compare only."""

from __future__ import annotations

import sys
from pathlib import Path

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.cards import cards_in, studies_in
from dprm.evaluate.study import Study
from dprm.fit.cost import Cost
from dprm.report.fits import fitted_arms, paths_of

START, END = "<!-- results -->", "<!-- /results -->"
FITS_START, FITS_END = "<!-- fits -->", "<!-- /fits -->"
STUDIES_START, STUDIES_END = "<!-- studies -->", "<!-- /studies -->"
_GAIN = ("difference in reward", "relative")


def table(cards: dict[str, Card]) -> str:
    """One line a card and order, as Markdown; differences are paired, with their 95 % interval.

    Cards that compare nothing but fits have their own table.
    """
    columns = ("host", "positions a step", "problems", "order", "solved", *_GAIN, "calls")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, card in cards.items():
        if _compares_fits(card):
            continue
        for order, arm in card.arms.items():
            posed = f"{card.count:,} {card.split}"
            cells = [_link(name, card), card.budget, posed, order, _solved(arm), *_gain(card, arm)]
            lines.append(f"| {' | '.join([*cells, f'{arm.nfe:.0f}'])} |")
    return "\n".join(lines)


def fit_table(cards: dict[str, Card]) -> str:
    """One line a fit, for cards that compare nothing else: what it took and what it gained."""
    columns = ("host", "positions a step", "problems", "estimator", "paths", "came back", "guidance", "solved", *_GAIN)
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, card in cards.items():
        if _compares_fits(card):
            for arm in sorted(fitted_arms(card).values(), key=lambda arm: (arm.fit["estimator"], paths_of(arm))):
                posed, cost = f"{card.count:,} {card.split}", Cost.of_notes(arm.fit)
                spent = f"{paths_of(arm):,}", f"{cost.rejoined:,}" if cost.rejoined else ""
                cells = [_link(name, card), card.budget, posed, arm.fit["estimator"], *spent, f"{arm.guidance:g}"]
                lines.append(f"| {' | '.join([*cells, _solved(arm), *_gain(card, arm)])} |")
    return "\n".join(lines)


def _compares_fits(card: Card) -> bool:
    return 1 < len(fitted_arms(card)) == len(card.arms) - 1


def _link(name: str, card: Card) -> str:
    return f"[{card.host}{f', {card.variant}' if card.variant else ''}](results/{name})"


def _solved(arm: Arm) -> str:
    """The share solved; the mean reward where nothing is."""
    return f"{arm.mean:.3f}" if arm.solved is None else f"{arm.solved:.1%}"


def _gain(card: Card, arm: Arm) -> tuple[str, str]:
    """The paired difference to the reference, and how much of the reference's mean it is."""
    if arm.delta is None:
        return "", ""
    interval = f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]"
    mean = card.arms[card.reference].mean
    return interval, f"{arm.delta / mean:+.1%}" if mean > 0 else ""


def study_table(studies: dict[str, Study]) -> str:
    """Trainings: what each order solves after each, or pass@K where samples were drawn."""
    lines = ["| host | problems | training | decoded by | result |", "|---|---|---|---|---|"]
    for name, study in studies.items():
        link, posed = f"[{study.host}](results/{name})", f"{study.count:,} {study.split}"
        if study.passk:
            for arm, parts in study.passk.items():
                shown = ", ".join(f"{part} {parts[part]['unbiased']['mean']:.3f}" for part in ("all", "hard"))
                lines.append(f"| {link} | {posed} | {arm} | samples | mean pass@K: {shown} |")
            continue
        for arm in study.arms:
            for order in dict.fromkeys(entry["order"] for entry in study.results):
                solved = [
                    f"{entry['solved']:.1%} at {entry['width']}"
                    for entry in study.results
                    if (entry["arm"], entry["order"]) == (arm, order)
                ]
                lines.append(f"| {link} | {posed} | {arm} masks | {order} | {', '.join(solved)} |")
    return "\n".join(lines)


def main(root: Path, check: bool) -> int:
    """Write the tables into README.md, or say whether they are already there."""
    readme, results = root / "README.md", root / "results"
    text = readme.read_text()
    cards = cards_in(results)
    wanted = _put(text, START, END, table(cards))
    if FITS_START in text:
        wanted = _put(wanted, FITS_START, FITS_END, fit_table(cards))
    if STUDIES_START in text:
        wanted = _put(wanted, STUDIES_START, STUDIES_END, study_table(studies_in(results)))
    if check:
        if wanted != text:
            print("README.md does not show the committed cards: run `python -m dprm.report.readme`", file=sys.stderr)
        return int(wanted != text)
    readme.write_text(wanted)
    return 0


def _put(text: str, start: str, end: str, what: str) -> str:
    before, rest = text.split(start)
    return f"{before}{start}\n{what}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), "--check" in sys.argv))
