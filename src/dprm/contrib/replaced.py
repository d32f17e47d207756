"""An attribute of somebody else's module or object, replaced for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value` inside; what was there before comes back, whatever happens.

    Raises:
        AttributeError: the owner has nothing of that name, so that this is another version of it.
    """
    own = vars(owner)
    if not hasattr(owner, name):
        shown = getattr(owner, "__name__", type(owner).__name__)
        raise AttributeError(f"{shown} has no {name}: this adapter was written for another version of it")
    was_its_own, before = name in own, own.get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if was_its_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
