"""Which problems a policy has seen: a sketch for its notes, of the same size however many they were.

It holds the smallest hashes of their groups. Of at most `_KEPT` groups that is all of them, and every one is known
again; of n more each is known again with probability `_KEPT`/n, so that a test of many problems that were learned on
does not pass.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import torch
from torch import Tensor

from dprm.order.noise import mix_rows

# The notes of a policy: the problems that it was fitted on, and those that chose its setting.
FITTED, SELECTED = "fitted_groups", "selected_groups"
_KEPT = 256
# Of a hash: of a thousand other problems none is taken for one of these, but for one time in millions.
_BYTES = 5


def sketch(groups: Tensor) -> str:
    """The sketch of groups [n] int64."""
    smallest = sorted(set(_hashes(groups).tolist()))[:_KEPT]
    return base64.b64encode(b"".join(each.to_bytes(_BYTES, "big") for each in smallest)).decode()


def first_seen(text: str, groups: Tensor) -> int | None:
    """The first row of groups [n] that is known to be among those of a sketch, or of several with spaces between
    them; None where none is."""
    rows = torch.isin(_hashes(groups), torch.tensor(list(_known(text)), dtype=torch.int64)).nonzero()
    return int(rows[0]) if len(rows) else None


def _known(text: str) -> Iterator[int]:
    for part in text.split():
        kept = base64.b64decode(part)
        yield from (int.from_bytes(kept[start : start + _BYTES], "big") for start in range(0, len(kept), _BYTES))


def _hashes(groups: Tensor) -> Tensor:
    return mix_rows(groups.cpu(), 7) & ((1 << 8 * _BYTES) - 1)
