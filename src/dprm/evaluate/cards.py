"""The cards among the files of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dprm.evaluate import study
from dprm.evaluate.card import KIND, Card
from dprm.evaluate.study import Study


def cards_in(folder: Path) -> dict[str, Card]:
    """The comparisons, by file name."""
    return {name: Card.load(folder / name) for name, data in _files(folder).items() if kind_of(data) == KIND}


def studies_in(folder: Path) -> dict[str, Study]:
    """The studies, by file name."""
    return {name: Study.load(folder / name) for name, data in _files(folder).items() if kind_of(data) == study.KIND}


def kind_of(data: Any) -> str | None:
    """What the JSON of a file says it is; a comparison of the first schema only shows it by its arms."""
    if not isinstance(data, dict):
        return None
    return data.get("kind", KIND if "arms" in data else None)


def _files(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
