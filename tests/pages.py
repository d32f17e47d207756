"""The code that documents show, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def blocks(page: Path | str, language: str = "python") -> list[str]:
    """The code of a page in one language, block by block."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.S)


def run(page: str, names: dict[str, Any], first: int = 0, last: int | None = None) -> dict[str, Any]:
    """Execute the Python blocks of a page, or some of them, one after the other in one namespace."""
    for number, code in list(enumerate(blocks(page)))[first:last]:
        exec(compile(code, f"{page}, block {number}", "exec"), names)
    return names
