"""Protein domains of SCOPe with their sequence, their DSSP states and their superfamily.

They come with the package `sidechainnet`. A superfamily is in one split: no relative of a training domain is judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.packages import DataSets, Source
from dprm.data.splits import in_split
from dprm.hosts.dplm.tokens import LENGTH, MASK, PAD, RESIDUES, STATES, STRUCTURE, encoded
from dprm.order.files import read_tensors, write_tensors

DOMAINS = Source(
    package="sidechainnet",
    archive="sidechainnet-1.0.1-py2.py3-none-any.whl",
    sha256="604f57ffb2ae35e293aaf2cdb3e5bbb79907930dddf963da602d4f9445429d78",
    inside="sidechainnet/resources/single_domain_dssp_annotations.json",
    licence="BSD-3 (package)",
    about="93,212 domains of SCOPe: sequence, secondary structure, class",
)
_KIND, _FILE = "dprm.domains", "domains.safetensors"


@dataclass(frozen=True)
class Domains:
    """N domains: canvas [N,L] uint8, family [N] int64 hash of the superfamily."""

    canvas: Tensor
    family: Tensor

    def __len__(self) -> int:
        return len(self.canvas)

    def split(self, name: str) -> Domains:
        """Those of a split."""
        rows = in_split(self.family, name)
        return Domains(self.canvas[rows], self.family[rows])


def domains() -> Domains:
    """The prepared domains; obtained and prepared where they are not yet."""
    tensors, _ = read_tensors(DATA.prepared("dplm", "domains", _FILE), _KIND)
    return Domains(**tensors)


def prepare(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """Domains of a file of sidechainnet (JSON: name → Sequence, DSSP, SCCS), each sequence once."""
    listed: dict[str, tuple[str, str]] = {}
    left_out = 0
    for entry in json.loads(path.read_text()).values():
        letters, states, classes = entry["Sequence"], entry["DSSP"], entry["SCCS"].split(".")
        try:
            RESIDUES.check(letters)
            if len(letters) != len(states) or not set(states) <= set(STATES) or len(classes) != 4:
                raise ValueError("sequence, structure and class do not fit together")
        except ValueError:
            left_out += 1
            continue
        listed.setdefault(letters, (states, ".".join(classes[:3])))
    if not listed:
        raise ValueError(f"{path} holds no domain that can be used: {left_out:,} are left out")
    structures, families = zip(*listed.values(), strict=True)
    tensors = {"canvas": encoded(list(listed), list(structures)).to(torch.uint8), "family": family_hash(families)}
    write_tensors(folder / _FILE, tensors, {"kind": _KIND})
    counts = f"{len(listed):,} domains of {len(set(families)):,} superfamilies"
    return folder / _FILE, [f"{counts}; {left_out:,} left out, most of them too short or too long"]


def family_hash(families: tuple[str, ...]) -> Tensor:
    """[N] int64 ≥ 0, of names such as `b.1.1`."""
    letters = [[ord(letter) for letter in name.ljust(16)] for name in families]
    return row_hash(torch.tensor(letters))


class DomainData:
    """Endless training canvases in four equal parts: folding, inverse folding, both, and one stream alone.

    Of a stream alone nothing is seen of the other one: it is masked, and not to be predicted.
    """

    mask_id = MASK

    def __init__(self, seed: int, device: torch.device):
        self.canvas = domains().split("train").canvas.to(device)
        self.seed, self.device = seed, device

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        draws = Draws("domains", self.seed, step, device=self.device)
        clean = self.canvas[draws.below(len(self.canvas), rows)].long()
        task, side = draws.below(4, rows).unsqueeze(1), draws.below(2, rows).unsqueeze(1).bool()
        structure = STRUCTURE.to(self.device).expand(rows, LENGTH)
        residue = clean != PAD
        # Folding predicts structure, inverse folding sequence, and of one alone a coin says which.
        answer = torch.where(task == 0, structure, torch.where(task == 1, ~structure, torch.ones_like(structure)))
        alone = task == 3
        answer = residue & torch.where(alone, structure == side, answer)
        return clean.masked_fill(alone & residue & ~answer, MASK), answer


DATA = DataSets({"domains": DOMAINS}, prepare)
