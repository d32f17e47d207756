"""Poorer tables from the evidence of a fitted one: what is each part of the cells worth?

    no format, no position, no EOT     cells that differ in this part alone are one cell
    no state                           phase and confidence alone
    counts alone                       values only in questions of how many; elsewhere the host's own order

The evidence is the same, so nothing is decoded for them; the gate stays, and all have the guidance that is given. The
whole table at that guidance is written beside them: the paper takes the setting with the best mean on select, where
`dprm fit` wants a corrected interval above 0.

python -m dprm.hosts.llada_v.tables weights/llada_v.dprm --guidance 16
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import torch

from dprm.host import weights as committed
from dprm.hosts.llada_v.questions import COUNT, FORMATS
from dprm.hosts.llada_v.words import SLOTS
from dprm.order import Policy
from dprm.order.stats import Stats
from dprm.order.values import Table, estimate

# Parts of a cell's state, as `host.cell_state` has them, behind phase and confidence.
_PARTS = (len(FORMATS), 2, SLOTS)
_FORMAT, _EOT, _POSITION = 2, 3, 4
POOLED = {
    "no-format": (_FORMAT,),
    "no-position": (_POSITION,),
    "no-eot": (_EOT,),
    "no-state": (_FORMAT, _EOT, _POSITION),
}


def poorer(policy: Policy) -> dict[str, Policy]:
    """The tables of the module, by name."""
    if policy.stats is None:
        raise ValueError("policy has no evidence: expected one that was fitted by onpolicy")
    tables = {name: pooled(policy, parts) for name, parts in POOLED.items()}
    return {**tables, "counts-alone": counts_alone(policy)}


def pooled(policy: Policy, parts: tuple[int, ...]) -> Policy:
    """The policy of a table whose cells do not know these parts of the state."""
    stats, cells = policy.stats, policy.cells
    assert stats is not None
    whole = Stats(cells, stats.beta, stats.reward_range, stats.centred)
    moments = stats.moments.view(cells.phases, cells.bins, *_PARTS, *stats.moments.shape[1:])
    whole.moments = moments.sum(parts, keepdim=True).expand_as(moments).reshape(stats.moments.shape)
    return _with(policy, estimate(whole, policy.baseline, shrunken=policy.shrunken))


def counts_alone(policy: Policy) -> Policy:
    """The policy with values in questions of how many."""
    grid = torch.zeros(policy.cells.phases, policy.cells.bins, *_PARTS)
    grid[:, :, COUNT] = 1.0
    asked = grid.flatten().double()
    return _with(policy, Table(policy.table.value * asked, policy.table.support * asked))


def _with(policy: Policy, table: Table) -> Policy:
    return replace(policy, table=table, stats=None)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", type=Path)
    parser.add_argument("--guidance", type=float, help="default that of the policy")
    asked = parser.parse_args()
    path: Path = asked.policy
    fitted = Policy.load(path)
    whole = replace(fitted, guidance=fitted.guidance if asked.guidance is None else asked.guidance)
    for name, policy in {"best-mean": whole, **poorer(whole)}.items():
        out = path.with_name(f"{path.stem}-{name}{path.suffix}")
        policy.save(out)
        if out.resolve().parent == committed.folder().resolve():
            command = f"python -m dprm.hosts.llada_v.tables {' '.join(sys.argv[1:])}"
            committed.record(out, command, {"guidance": policy.guidance})
        print(out)


if __name__ == "__main__":
    main()
