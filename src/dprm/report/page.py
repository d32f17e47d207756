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
from dprm.report.colours import order_colours
from dprm.report.comparison import comparison
from dprm.report.decisions import decisions
from dprm.report.fits import fits
from dprm.report.learned import sureness, what_was_learned
from dprm.report.pareto import pareto
from dprm.report.parts import Article, Section
from dprm.report.passing import passing
from dprm.report.replay import replay
from dprm.report.runs import Learned, Run
from dprm.report.trainings import trainings

LARGEST = 3_000_000
_HERE = Path(__file__).parent


def page(runs: list[Run], title: str = "Which position next?") -> str:
    """The report of some runs as HTML; ValueError where it would be larger than a page may be."""
    articles = [_article(run, colours) for run, colours in zip(runs, order_colours(runs))]
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
        raise ValueError(f"the page of these {len(runs)} runs has {size:,} bytes, more than {LARGEST:,}: give fewer")
    return html


def _article(run: Run, colours: dict[str, str]) -> Article:
    if isinstance(run.content, Card):
        return _of_card(run.name, run.content, colours)
    if isinstance(run.content, Study):
        return _of_study(run.name, run.content, colours)
    return _of_policy(run.name, run.content)


def _of_card(name: str, card: Card, colours: dict[str, str]) -> Article:
    parts = (comparison, fits, replay, decisions, pareto)
    sections = [part(card, colours) for part in parts]
    facts = {
        "host": card.host,
        "problems": f"{card.count:,} of {card.split}",
        "positions a step": card.budget,
        "reference": card.reference,
        "seed": ", ".join(map(str, card.seeds)),
    }
    provenance = {
        "command": card.command,
        "problems": card.problems,
        "weights": card.weights or "–",
        "intervals": f"{card.resamples} resamples, 95 %",
        **{f"policy of {order}": arm.policy for order, arm in card.arms.items() if arm.policy is not None},
        **card.versions,
    }
    return Article(name, "comparison", facts, _present(sections), provenance, card.verdict)


def _of_study(name: str, study: Study, colours: dict[str, str]) -> Article:
    sections = [passing(study, colours), trainings(study, colours)]
    facts = {"host": study.host, "problems": f"{study.count:,} of {study.split}", "seed": str(study.seed)}
    provenance = {
        "command": study.command,
        **{f"problems, {part}": digest for part, digest in study.problems.items()},
        **{f"arm {arm}": _told(account) for arm, account in study.arms.items()},
        **{note: _told(value) for note, value in study.notes.items()},
        **study.versions,
    }
    return Article(name, "study", facts, _present(sections), provenance)


def _of_policy(name: str, learned: Learned) -> Article:
    header = {key: value for key, value in learned.header.items() if key not in ("kind", "notes", "digest")}
    sections = _present([what_was_learned(learned.policy), sureness(learned.policy)])
    notes = {f"note: {key}": _told(value) for key, value in learned.header.get("notes", {}).items()}
    provenance = {**{key: _told(value) for key, value in header.items()}, **notes, "digest": learned.header["digest"]}
    facts = {
        "host": str(learned.header.get("notes", {}).get("host", "–")),
        "values": str(header.get("values", "–")),
        "cells": " × ".join(map(str, header.get("cells", []))) or "–",
        "guidance": _told(header.get("guidance")),
        "rule": str(header.get("rule", "–")),
    }
    return Article(name, "policy", facts, sections, provenance)


def _present(sections: list[Section | None]) -> list[Section]:
    return [section for section in sections if section is not None]


def _told(value: Any) -> str:
    """A setting in words: nested ones as `name value`, separated by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_told(inner)}" for key, inner in value.items()) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(map(_told, value))
    return "–" if value is None else str(value)
