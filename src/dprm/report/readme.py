"""The tables of README and docs, from committed cards: `python -m dprm.report.readme`, or `--check` to compare only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.cards import cards_in, studies_in
from dprm.evaluate.study import Study
from dprm.hosts import ENTRIES
from dprm.report.across import across
from dprm.report.evidence import evidence_table
from dprm.report.finetunings import contrast_table, phase_table
from dprm.report.fits import fitted_arms, price_of
from dprm.report.front import Line, budget, compares_fits, lines_of, one_a_host, picture
from dprm.report.names import with_learned_names
from dprm.report.numbers import NOTHING, markdown, number, with_interval
from dprm.report.responses import response_tables
from dprm.report.sensitivity import sensitivity_table
from dprm.theory.proofs import proof_table

# Files with tables, and the way from there to the folder of cards. A table stands between <!-- NAME --> and
# <!-- /NAME -->.
DOCUMENTS = {"README.md": "results"}
DOCUMENTS |= {f"docs/{name}.md": "../results" for name in ("results", "across", "verdict", "theory")}
# All learned orders in one picture.
PICTURE = "docs/pictures/hosts.svg"
CALIBRATION = "verdict-calibration.json"
_GAIN = ("difference in reward", "relative")


def headline(cards: dict[str, Card], folder: str) -> str:
    """One line a host: its order beside the learned one, and the verdict that `dprm audit` gives."""
    rows = []
    for host, line in one_a_host(cards).items():
        about = ENTRIES[host].domain if host in ENTRIES else ""
        shown = (f"`{host}`", about, NOTHING, "no card yet", "", "") if line is None else _shown(line, about, folder)
        rows.append(shown)
    return markdown(("host", "what it is", "reward, host's own → `dprm`", _GAIN[0], "calls", "verdict"), rows)


def across_tables(cards: dict[str, Card]) -> str:
    """All hosts side by side: the tables of `dprm report --all`."""
    parts = []
    for table in (table for section in across(cards) for table in section.tables):
        rows = [[cell.replace("|", "\\|") for cell in row] for row in table.rows]
        parts.append(f"## {table.title}\n\n{markdown(table.columns, rows)}")
    return "\n\n".join(parts)


def _shown(line: Line, about: str, folder: str) -> tuple[str, ...]:
    host, rewards = line.card.host, f"{line.own.mean:.3f} → {line.learned.mean:.3f}"
    about = ", ".join(part for part in (about, line.setting) if part)
    gain = _gain(line.card, line.learned)[0]
    return f"[`{host}`]({folder}/{line.file})", about, rewards, gain, line.calls, line.verdict


def verdict_table(cards: dict[str, Card], folder: str) -> str:
    """One line a card with a learned order: the host's own order beside it, and the verdict."""
    rows = [
        (
            *_compared(line.file, line.card, folder),
            f"{_solved(line.own)} → {_solved(line.learned)}",
            _gain(line.card, line.learned)[0],
            line.calls,
            line.verdict,
        )
        for line in lines_of(cards)
    ]
    columns = ("host", "positions a step", "problems", "host's own order → learned", _GAIN[0], "calls", "verdict")
    return markdown(columns, rows)


def table(cards: dict[str, Card], folder: str) -> str:
    """One line a card and order, as Markdown; differences have their 95 % interval.

    Cards that compare nothing but fits have their own table.
    """
    columns = ("host", "positions a step", "problems", "order", "solved", *_GAIN, "calls")
    rows = [
        (*_compared(name, card, folder), order, _solved(arm), *_gain(card, arm), f"{arm.nfe:.0f}")
        for name, card in cards.items()
        if not compares_fits(card)
        for order, arm in card.arms.items()
    ]
    return markdown(columns, rows)


def metric_tables(cards: dict[str, Card], host: str, folder: str) -> str:
    """Of every card of a host all metrics of all orders, with the difference to the reference and its interval."""
    parts = []
    for name, card in cards.items():
        if card.host != host:
            continue
        names = [metric.name for metric in card.metrics]
        seeds = f", {len(card.seeds)} decode seeds" if len(card.seeds) > 1 else ""
        kind = "paired" if card.paired else "of independent samples"
        differences = f"differences are {kind}, to {card.reference}"
        rewarded = str(card.preference) or card.judged[0].name
        lead = f"{card.count:,} of {card.split}{seeds}; reward {rewarded}; {differences}"
        rows = [
            (order, *(_metric(arm, metric) for metric in names), f"{arm.changed:.0%}", f"{arm.nfe:.0f}")
            for order, arm in card.arms.items()
        ]
        title = _link(folder, name, card.host, card.variant)
        parts.append(f"{title}: {lead}.\n\n{markdown(('order', *names, 'decisions changed', 'calls'), rows)}")
    return "\n\n".join(parts)


def part_tables(cards: dict[str, Card], folder: str) -> str:
    """Of every card that goes part by part the mean reward of its learned orders in every part."""
    tables = []
    for name, card in cards.items():
        parts: dict[str, Any] = card.notes.get("parts", {})
        learned = [order for order, arm in card.arms.items() if arm.policy is not None and arm.ablates is None]
        if not parts or not learned:
            continue
        rows = [
            (
                part,
                f"{known['count']:,}",
                f"{known['arms'][card.reference]['mean']:.3f}",
                *(_part(known["arms"][order]) for order in learned),
            )
            for part, known in parts.items()
        ]
        columns = ("part", "problems", card.reference, *learned)
        tables.append(f"{_link(folder, name, card.host, card.variant)}, part by part.\n\n{markdown(columns, rows)}")
    return "\n\n".join(tables)


def _part(arm: dict[str, Any]) -> str:
    """Mean, difference with its interval, wins and losses."""
    counted = f", {arm['won']}:{arm['lost']}" if "won" in arm else ""
    return f"{arm['mean']:.3f} ({with_interval(arm['delta'], arm['delta_low'], arm['delta_high'])}{counted})"


def _metric(arm: Arm, name: str) -> str:
    """Its mean, and the difference to the reference."""
    estimate = arm.metrics.get(name)
    if estimate is None:
        return NOTHING
    if estimate.delta is None:
        return f"{estimate.mean:.3f}"
    return f"{estimate.mean:.3f} ({with_interval(estimate.delta, estimate.delta_low, estimate.delta_high)})"


def fit_table(cards: dict[str, Card], folder: str) -> str:
    """One line a fit, for cards that compare nothing else: what it took and what it gained."""
    columns = ("host", "positions a step", "problems", "estimator", "calls of the fit", "guidance", "solved", *_GAIN)
    rows = [
        (*_compared(name, card, folder), *_fit(arm), _solved(arm), *_gain(card, arm))
        for name, card in cards.items()
        if compares_fits(card)
        for arm in sorted(fitted_arms(card).values(), key=lambda arm: (arm.fit["estimator"], price_of(arm)))
    ]
    return markdown(columns, rows)


def study_table(studies: dict[str, Study], folder: str) -> str:
    """Trainings: what each order solves after each, or mean pass@K where several answers were sampled."""
    rows = []
    for name, study in studies.items():
        shared = (_link(folder, name, study.host, study.variant), f"{study.count:,} {study.split}")
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
    return markdown(("host", "problems", "training", "decoded by", "result"), rows)


def calibration_table(card: dict[str, Any]) -> str:
    """How often the verdict says `apply` in every world of `dprm audit --calibrate`, and how often it may or should."""
    rows = []
    for world in card["worlds"]:
        limit = "only shown" if world["most"] is None else f"at most {world['most']:.0%}"
        limit = limit if world["least"] is None else f"at least {world['least']:.0%}"
        rows.append((world["name"], f"{world['studies']:,}", f"{world['apply']:.1%}", limit))
    return markdown(("world", "studies", "`apply`", "limit"), rows)


def peer_table(results: Path, folder: str) -> str:
    """Methods of others and ours at equal model calls, the best first, from cards of `python -m benchmarks.peers`."""
    rows = []
    for path in sorted(results.glob("peers-*.json")):
        card = json.loads(path.read_text())
        title = f"[{card['host']}{', ' + card['variant'] if card['variant'] else ''}]({folder}/{path.name})"
        compared = (title, card["decoding"]["count"], f"{card['count']:,} {card['split']}")
        for method in sorted(card["methods"], key=lambda each: -each.get("delta", 0.0)):
            fits = [fit for fit in method.get("fits", ()) if "guidance" in fit]
            calls = ", ".join(f"{fit['calls']:,}" for fit in fits)
            within = ", ".join(f"{fit['within']:.3f}" for fit in fits)
            gain = with_interval(method["delta"], method["low"], method["high"]) if "delta" in method else ""
            each = ", ".join(f"{fit['delta']:+.3f}" for fit in fits)
            price = f"{method['calls_problem']:.1f}"
            named = method["method"], method["told"], f"{method['solved']:.1%}"
            rows.append((*compared, *named, gain, each, within, calls, price))
    columns = ("host", "positions a step", "problems", "method", "what is learned from", "solved")
    more = ("difference in reward", "of every seed", "within-state R²", "calls of the fits", "calls")
    return markdown((*columns, *more), rows)


def _link(folder: str, name: str, host: str, variant: str) -> str:
    return f"[{host}{f', {variant}' if variant else ''}]({folder}/{name})"


def _compared(name: str, card: Card, folder: str) -> tuple[str, str, str]:
    """Host, positions a step, problems."""
    return (
        _link(folder, name, card.host, card.variant),
        card.budget if card.budget.isdecimal() else budget(card),
        f"{card.count:,} {card.split}",
    )


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
    """Write the tables into the documents, or say whether they are already there."""
    studies = studies_in(root / "results")
    cards = {name: with_learned_names(card) for name, card in cards_in(root / "results").items()}
    calibration = root / "results" / CALIBRATION
    worlds = json.loads(calibration.read_text()) if calibration.is_file() else {"worlds": []}
    of_host = {
        card.host: {name: each for name, each in cards.items() if each.host == card.host} for card in cards.values()
    }
    stale = []
    drawn, wanted = root / PICTURE, picture(cards)
    if drawn.parent.is_dir() and not (drawn.is_file() and drawn.read_text() == wanted):
        stale.append(PICTURE)
        if not check:
            drawn.write_text(wanted)
    for document, folder in {**DOCUMENTS, **{f"docs/{host}.md": "../results" for host in of_host}}.items():
        path = root / document
        if not path.is_file():
            continue
        text = wanted = path.read_text()
        for name, content in {
            "headline": headline(cards, folder),
            "across": across_tables(cards),
            "verdicts": verdict_table(cards, folder),
            "results": table(cards, folder),
            "fits": fit_table(cards, folder),
            "studies": study_table(studies, folder),
            "calibration": calibration_table(worlds),
            "proofs": proof_table(),
            "evidence": evidence_table(cards, folder),
            "peers": peer_table(root / "results", folder),
            **{f"metrics {host}": metric_tables(own, host, folder) for host, own in of_host.items()},
            **{
                f"responses {host}": response_tables(root / "results", host, folder)
                for host in of_host
                if f"<!-- responses {host} -->" in text
            },
            **{f"parts {host}": part_tables(own, folder) for host, own in of_host.items()},
            **{f"contrasts {host}": contrast_table(own) for host, own in of_host.items()},
            **{f"phases {host}": phase_table(own) for host, own in of_host.items()},
            **{f"sensitivity {host}": sensitivity_table(own, folder) for host, own in of_host.items()},
        }.items():
            wanted = _put(wanted, name, content)
        if wanted != text:
            stale.append(document)
            if not check:
                path.write_text(wanted)
    if check and stale:
        print(f"not as the committed cards: {', '.join(stale)}; run `python -m dprm.report.readme`", file=sys.stderr)
    return int(check and bool(stale))


def _put(text: str, name: str, content: str) -> str:
    """The text with other content between the marks of a table; as it is where there are none."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if start not in text:
        return text
    before, rest = text.split(start)
    return f"{before}{start}\n{content}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), "--check" in sys.argv))
