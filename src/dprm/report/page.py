"""The page: every run as an article, in one HTML file that needs nothing else.

Host text becomes HTML here and nowhere else: the template escapes all it is given, and the page's own policy
forbids every script but the one it carries.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dprm.evaluate.card import Card
from dprm.evaluate.study import Study
from dprm.evaluate.verdict import judge
from dprm.fit.montecarlo import is_local
from dprm.host.metrics import BENEFIT
from dprm.hosts import ENTRIES, difficulty_in_words
from dprm.report.across import across
from dprm.report.breakdown import breakdown, gallery
from dprm.report.colours import order_colours
from dprm.report.comparison import comparison
from dprm.report.decisions import decisions
from dprm.report.diaries import diaries
from dprm.report.examples import examples
from dprm.report.fits import fits
from dprm.report.front import budget
from dprm.report.learned import sureness, what_was_learned
from dprm.report.names import with_learned_names
from dprm.report.numbers import NOTHING
from dprm.report.pareto import pareto
from dprm.report.parts import Article, Section
from dprm.report.passing import passing
from dprm.report.replay import replay
from dprm.report.runs import Learned, Run
from dprm.report.searching import searching
from dprm.report.trainings import conclusion, trainings
from dprm.report.visible import all_visible

LARGEST = 8_000_000
_HERE = Path(__file__).parent


def page(runs: list[Run], title: str = "Which position next?") -> str:
    """The report of some runs as HTML; ValueError where it would be larger than a page may be."""
    return _page([_article(run, colours) for run, colours in zip(runs, order_colours(runs))], title)


def page_across(cards: dict[str, Card], title: str = "Across hosts") -> str:
    """All hosts side by side, from cards by file name."""
    named = {name: with_learned_names(card) for name, card in all_visible(cards).items()}
    return _page([Article("All hosts", "across hosts", {"cards": f"{len(cards)}"}, across(named), {})], title)


def _page(articles: list[Article], title: str) -> str:
    script = (_HERE / "replay.js").read_text()
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # Orders stay in the order of their card.
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    html = environment.get_template("page.html").render(
        title=title,
        articles=articles,
        style=Markup((_HERE / "page.css").read_text()),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    size = len(html.encode())
    if size > LARGEST:
        raise ValueError(
            f"the page of these {len(articles)} runs has {size:,} bytes, more than {LARGEST:,}: give fewer"
        )
    return html


def _article(run: Run, colours: dict[str, str]) -> Article:
    if isinstance(run.content, Card):
        return _of_card(run.name, run.content, colours)
    if isinstance(run.content, Study):
        return _of_study(run.name, run.content, colours)
    return _of_policy(run.name, run.content)


def _of_card(name: str, card: Card, colours: dict[str, str]) -> Article:
    parts = (comparison, searching, breakdown, fits, replay, decisions, pareto, gallery, examples)
    sections = [part(card, colours) for part in parts]
    grouped = "" if card.groups == card.count else f" in {card.groups:,} groups"
    facts = {
        "host": _host(card.host),
        **_difficulty(card.host, card.variant),
        "budget": budget(card),
        "problems": f"{card.count:,} of {card.split}{grouped}",
        "reward": str(card.preference) or next(metric.name for metric in card.metrics if metric.role == BENEFIT),
        "reference": card.reference,
        "seed": ", ".join(map(str, card.seeds)),
    }
    provenance = {
        "command": card.command,
        "problems": card.problems,
        "weights": card.weights or NOTHING,
        "device": card.device or NOTHING,
        **{f"decoding, {part}": text for part, text in card.decoding.items()},
        "intervals": f"{card.resamples} resamples, 95 %",
        **{f"policy of {order}": arm.policy for order, arm in card.arms.items() if arm.policy is not None},
        **card.versions,
    }
    # By today's rules: a card may be older than they are.
    verdict = None if card.verdict is None else judge(card).facts()
    return Article(name, "comparison", facts, _present(sections), provenance, verdict)


def _of_study(name: str, study: Study, colours: dict[str, str]) -> Article:
    sections = [passing(study, colours), trainings(study, colours), diaries(study, colours)]
    facts = {
        "host": _host(study.host),
        **_difficulty(study.host, study.variant),
        "problems": f"{study.count:,} of {study.split}",
        **({"answers a problem": str(study.samples)} if study.samples > 1 else {}),
        "seed": ", ".join(map(str, study.seeds if study.parts else [study.seed])),
    }
    provenance = {
        "command": study.command,
        **{f"problems, {part}": digest for part, digest in study.problems.items()},
        **{f"arm {arm}": _in_words(account) for arm, account in study.arms.items()},
        **{note: _in_words(value) for note, value in study.notes.items()},
        **study.versions,
    }
    return Article(name, "study", facts, _present(sections), provenance, conclusion=conclusion(study))


def _of_policy(name: str, learned: Learned) -> Article:
    header = {key: value for key, value in learned.header.items() if key not in ("kind", "notes", "digest")}
    sections = _present([what_was_learned(learned.policy), sureness(learned.policy)])
    written = learned.header.get("notes", {})
    notes = {f"note: {key}": _in_words(value) for key, value in written.items()}
    provenance = {
        **{key: _in_words(value) for key, value in header.items()},
        **notes,
        "digest": learned.header["digest"],
    }
    facts = {
        "host": _host(str(written.get("host", NOTHING))),
        **_difficulty(str(written.get("host", "")), str(written.get("variant", ""))),
        "estimator": str(written.get("estimator", NOTHING)),
        "values": str(header["values"]),
        "cells": " × ".join(map(str, header["cells"])),
        "guidance": _in_words(header["guidance"]),
        "rule": str(header["rule"]),
    }
    if learned.policy.head is not None or is_local(learned.policy):
        del facts["cells"]  # They have none that mean anything.
    return Article(name, "policy", facts, sections, provenance)


def _host(name: str) -> str:
    return f"{name}: {ENTRIES[name].domain}" if name in ENTRIES else name


def _difficulty(host: str, variant: str) -> dict[str, str]:
    return {"difficulty": difficulty_in_words(host, variant)} if variant else {}


def _present(sections: list[Section | None]) -> list[Section]:
    return [section for section in sections if section is not None]


def _in_words(value: Any) -> str:
    """A setting: nested ones as `name value`, separated by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(inner)}" for key, inner in value.items()) or NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value))
    return NOTHING if value is None else str(value)
