"""A person's own problems from a file, one JSON line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dprm.data.lines import SAID, nothing_left
from dprm.order.files import read_whole


def read_json_lines(path: Path, mask_id: int, ragged: bool = False) -> tuple[list[tuple[Any, Any]], list[str]]:
    """(tokens, facts) of lines such as `{"tokens": [5, 7, 103], "facts": …}`, and one line for each that is left out.

    Args:
        ragged: rows may differ in length; otherwise all have that of the first.
    """
    listed, left_out = list[tuple[Any, Any]](), list[str]()
    first_line: dict[str, int] = {}
    # Only a line feed ends a line: other separators may stand inside a JSON string.
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            length = len(listed[0][0]) if listed and not ragged else None
            tokens, facts = _problem(json.loads(line), mask_id, length)
            problem = json.dumps([tokens, facts], sort_keys=True)
        except json.JSONDecodeError as error:
            left_out.append(f"line {number}: no JSON ({error.msg} at column {error.colno})")
            continue
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            left_out.append(f"line {number}: {reason[:SAID]}")
            continue
        if problem in first_line:
            left_out.append(f"line {number}: the problem of line {first_line[problem]} again")
            continue
        first_line[problem] = number
        listed.append((tokens, facts))
    if not listed:
        raise nothing_left(path, left_out)
    return listed, left_out


def _text(path: Path) -> str:
    try:
        return read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None


def _problem(entry: Any, mask_id: int, length: int | None) -> tuple[list[int], Any]:
    if not isinstance(entry, dict) or not isinstance(entry.get("tokens"), list):
        raise ValueError(f'expected {{"tokens": [...]}}, with {mask_id} where to reveal')
    tokens = entry["tokens"]
    for position, token in enumerate(tokens):
        if type(token) is not int or not 0 <= token < 2**63:
            raise ValueError(f"tokens[{position}] is {str(token)[:40]}: expected a whole number from 0")
    if mask_id not in tokens:
        raise ValueError(f"tokens hold no mask {mask_id}: there is nothing to reveal")
    if length is not None and len(tokens) != length:
        raise ValueError(f"tokens has {len(tokens)} entries: expected {length}, as in the other problems")
    return tokens, entry.get("facts")
