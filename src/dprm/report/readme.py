"""The README's result tables, from committed cards: `python -m dprm.report.readme`, or `--check` to compare only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.cards import cards_in, studies_in
from dprm.evaluate.study import Study
from dprm.report.fits import fitted_arms, price_of
from dprm.report.numbers import number, with_interval

START, END = "<!-- results -->", "<!-- /results -->"
FITS_START, FITS_END = "<!-- fits -->", "<!-- /fits -->"
STUDIES_START, STUDIES_END = "<!-- studies -->", "<!-- /studies -->"
_GAIN = ("difference in reward", "relative")


def table(cards: dict[str, Card]) -> str:
    """One line a card and order, as Markdown; differences have their 95 % interval.

    Cards that compare nothing but fits have their own table.
    """
    columns = ("host", "positions a step", "problems", "order", "solved", *_GAIN, "calls")
    rows = [
        (*_compared(name, card), order, _solved(arm), *_gain(card, arm), f"{arm.nfe:.0f}")
        for name, card in cards.items()
        if not _compares_fits(card)
        for order, arm in card.arms.items()
    ]
    return _markdown(columns, rows)


def fit_table(cards: dict[str, Card]) -> str:
    """One line a fit, for cards that compare nothing else: what it took and what it gained."""
    columns = ("host", "positions a step", "problems", "estimator", "calls of the fit", "guidance", "solved", *_GAIN)
    rows = [
        (*_compared(name, card), *_fit(arm), _solved(arm), *_gain(card, arm))
        for name, card in cards.items()
        if _compares_fits(card)
        for arm in sorted(fitted_arms(card).values(), key=lambda arm: (arm.fit["estimator"], price_of(arm)))
    ]
    return _markdown(columns, rows)


def study_table(studies: dict[str, Study]) -> str:
    """Trainings: what each order solves after each, or mean pass@K where several answers were sampled."""
    rows = []
    for name, study in studies.items():
        shared = (_link(name, study.host, study.variant), f"{study.count:,} {study.split}")
        for condition, parts in study.passk.items():
            means = (f"{part} {parts[part]['unbiased']['mean']:.3f}" for part in ("all", "hard") if part in parts)
            rows.append((*shared, condition, "samples", f"mean pass@K: {', '.join(means)}"))
        whole = [entry for entry in study.results if not study.passk and entry.get("part", "all") == "all"]
        for arm, order in dict.fromkeys((entry["arm"], entry["order"]) for entry in whole):
            solved = (
                f"{entry['solved']:.1%} at {entry['width']}"
                for entry in whole
                if (entry["arm"], entry["order"]) == (arm, order)
            )
            rows.append((*shared, arm, order, ", ".join(solved)))
    return _markdown(("host", "problems", "training", "decoded by", "result"), rows)


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))


def _compares_fits(card: Card) -> bool:
    return 1 < len(fitted_arms(card)) == len(card.arms) - 1


def _link(name: str, host: str, variant: str) -> str:
    return f"[{host}{f', {variant}' if variant else ''}](results/{name})"


def _compared(name: str, card: Card) -> tuple[str, str, str]:
    """Host, positions a step, problems."""
    return _link(name, card.host, card.variant), card.budget, f"{card.count:,} {card.split}"


def _fit(arm: Arm) -> tuple[str, str, str]:
    """Estimator, price, guidance."""
    return arm.fit["estimator"], f"{price_of(arm):,}", number(arm.guidance, "g")


def _solved(arm: Arm) -> str:
    """The share solved; the mean reward where nothing is."""
    return f"{arm.mean:.3f}" if arm.solved is None else f"{arm.solved:.1%}"


def _gain(card: Card, arm: Arm) -> tuple[str, str]:
    """The difference to the reference, and how much of the reference's mean it is."""
    if arm.delta is None:
        return "", ""
    mean = card.arms[card.reference].mean
    interval = with_interval(arm.delta, arm.delta_low, arm.delta_high)
    return interval, f"{arm.delta / mean:+.1%}" if mean > 0 else ""


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
