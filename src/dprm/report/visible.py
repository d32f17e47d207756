"""Host text as people may see it: characters that act instead of showing are written out.

Tokens, names and notes come from hosts and files. Marks that turn the writing direction, join, hide or control text are
shown by their number, `⟨U+202E⟩`, so that nothing on a page moves because of them. What is left is text, and becomes
HTML in one place, where the template is filled.
"""

from __future__ import annotations

import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import Any

# Control, format, surrogate, private and unassigned characters; line and paragraph separators.
_ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    """`text` with every acting character written out; line breaks become `⏎`."""
    return "".join(_shown(character) for character in text)


def all_visible(data: Any) -> Any:
    """The same data with all text in it visible: dictionaries (keys too), lists, tuples and dataclasses."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, dict):
        return {all_visible(key): all_visible(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(all_visible(value) for value in data)
    if is_dataclass(data) and not isinstance(data, type):
        return replace(data, **{field.name: all_visible(getattr(data, field.name)) for field in fields(data)})
    return data


def _shown(character: str) -> str:
    if character == "\n":
        return "⏎"
    return f"⟨U+{ord(character):04X}⟩" if unicodedata.category(character) in _ACTING else character
