"""The 3-mer correlation: do generated sequences use words of three bases as real sites of HepG2 do?

`words.json` beside this file holds how often every word comes in the strongest twentieth of the HepG2 sites that the
generator was trained on; it is written by

    python -m dprm.hosts.sdpo.words
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from dprm.hosts.sdpo.bases import word_counts
from dprm.hosts.sdpo.sites import CELLS, SITES, sites
from dprm.order.files import write_whole

SHIPPED = Path(__file__).with_name("words.json")
# Of the HepG2 sites, by their signal.
STRONGEST = 0.05


@cache
def reference() -> Tensor:
    """[64] float64, how often every word comes in real sites."""
    return torch.tensor(json.loads(SHIPPED.read_text())["counts"], dtype=torch.float64)


def word_correlation(counts: Tensor) -> Tensor:
    """[R] Pearson correlation of counts of words [R,64], or their means, and those of real sites; 0 where they do not
    vary."""
    own, real = counts.double(), reference()
    own, real = own - own.mean(1, keepdim=True), real - real.mean()
    scale = own.norm(dim=1) * real.norm()
    return torch.where(scale > 0, own @ real / scale.clamp(min=1e-300), 0.0)


def main() -> None:
    """Count anew."""
    part = sites().part("generator")
    part = part[part.cell == CELLS.index("HepG2")]
    strongest = part[part.signal.argsort(descending=True)[: int(STRONGEST * len(part))]]
    counts = word_counts(strongest.bases.long()).sum(0).tolist()
    facts = {"source": SITES.archive, "sites": len(strongest), "counts": counts}
    write_whole(SHIPPED, (json.dumps(facts) + "\n").encode())


if __name__ == "__main__":
    main()
