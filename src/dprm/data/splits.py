"""Disjoint splits by construction: a problem's split is a function of the problem alone.

The key of a problem is a hash of its canonical form, so two spellings of one problem share a split, and no list of
problems has to be kept to know that training never saw a test problem.
"""

from __future__ import annotations

from torch import Tensor

SPLITS = ("train", "fit", "select", "test")
# Of 16 equal parts: 13 train, 1 each fit, select, test.
_PARTS = 16


def in_split(key: Tensor, split: str) -> Tensor:
    """[N] bool: which keys [N] int64 ≥ 0 (see `row_hash`) belong to the split."""
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
    slot = key % _PARTS
    if split == "train":
        return slot >= len(SPLITS) - 1
    return slot == SPLITS.index(split) - 1
