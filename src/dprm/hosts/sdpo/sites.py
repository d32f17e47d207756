"""Real regulatory sites: 200 bases that are open in one of four cell lines, with their chromosome.

Sites come with the source package `dnadiffusion` (Meuleman et al. 2020). Its licence is for academic and non-profit
use, so they are downloaded and not shipped. Chromosomes divide them, so that no neighbour of a training site is judged:

    chromosome 1    test        chromosome 2    select
    odd             the generator trains on them
    even, X, Y      the classifier that judges it does
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.fasta import read_fasta
from dprm.data.packages import DataSets, Source
from dprm.data.stock import Stock
from dprm.hosts.sdpo.bases import DNA, LENGTH, MASK, encoded
from dprm.hosts.sdpo.matrices import MATRICES
from dprm.order.files import read_tensors, write_tensors

SITES = Source(
    package="dnadiffusion",
    archive="dnadiffusion-0.0.0.dev0.tar.gz",
    sha256="db4b6e17d9efbc77d5091fe697343043be132582e6ef69f659af6d97ac65a580",
    inside="src/dnadiffusion/data/K562_hESCT0_HepG2_GM12878_12k_sequences_per_group.txt",
    licence="Apache-2.0 for academic and non-profit use",
    about="47,872 DNase-hypersensitive sites of 200 bases in four cell lines",
)
CELLS = ("HepG2", "K562", "GM12878", "hESCT0")
_KIND, _FILE = "dprm.sites", "sites.safetensors"
_OTHERS = {"X": 23, "Y": 24}


@dataclass(frozen=True)
class Sites:
    """N sites.

    Attributes:
        bases: [N,200] uint8. cell: [N] uint8, index of CELLS. chromosome: [N] uint8, X is 23. signal: [N] float32.
    """

    bases: Tensor
    cell: Tensor
    chromosome: Tensor
    signal: Tensor

    def __len__(self) -> int:
        return len(self.bases)

    def __getitem__(self, rows: Tensor) -> Sites:
        return Sites(self.bases[rows], self.cell[rows], self.chromosome[rows], self.signal[rows])

    def part(self, name: str) -> Sites:
        """The sites of a part: generator, classifier, select or test."""
        number = self.chromosome
        odd = (number % 2 == 1) & (number < 23)
        rows = {
            "test": number == 1,
            "select": number == 2,
            "generator": odd & (number > 1),
            "classifier": ~odd & (number > 2) | (number >= 23),
        }[name]
        return self[rows]


def sites() -> Sites:
    """The prepared sites; obtained and prepared where they are not yet."""
    tensors, _ = read_tensors(DATA.prepared("sdpo", "sites", _FILE), _KIND)
    return Sites(**tensors)


def prepare(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """Sites of a table (TSV with sequence, chr, TAG, total_signal), or a person's own FASTA, taken for HepG2."""
    if path.suffix == ".sqlite":
        return path, []
    out = folder / _FILE
    if path.suffix in (".fa", ".fasta"):
        records, left_out = read_fasta(path, DNA)
        rows = [(record.letters, "HepG2", "3", 1.0) for record in records]
    else:
        rows, left_out = _table(path)
    if not rows:
        raise ValueError(f"{path} holds no site that can be used: {'; '.join(left_out[:5]) or 'it is empty'}")
    tensors = {
        "bases": encoded([row[0] for row in rows]).to(torch.uint8),
        "cell": torch.tensor([CELLS.index(row[1]) for row in rows], dtype=torch.uint8),
        "chromosome": torch.tensor([int(_OTHERS.get(row[2], row[2])) for row in rows], dtype=torch.uint8),
        "signal": torch.tensor([row[3] for row in rows], dtype=torch.float32),
    }
    write_tensors(out, tensors, {"kind": _KIND})
    every = Sites(**tensors)
    parts = (f"{len(every.part(name)):,} {name}" for name in ("generator", "classifier", "select", "test"))
    return out, [*left_out[:5], f"{len(rows):,} sites: {', '.join(parts)}; {len(left_out):,} left out"]


def _table(path: Path) -> tuple[list[tuple[str, str, str, float]], list[str]]:
    """(sequence, cell, chromosome, signal) of every line that fits, each sequence once."""
    listed: dict[str, tuple[str, str, str, float]] = {}
    left_out = []
    with path.open(newline="") as file:
        for number, line in enumerate(csv.DictReader(file, delimiter="\t"), 2):
            try:
                letters, cell = line["sequence"].upper(), line["TAG"].partition("_")[0]
                DNA.check(letters)
                chromosome = line["chr"].removeprefix("chr")
                if cell not in CELLS or not (chromosome in _OTHERS or 1 <= int(chromosome) <= 22):
                    raise ValueError(f"cell {cell!r} on chromosome {chromosome!r} is none of ours")
                listed.setdefault(letters, (letters, cell, chromosome, float(line["total_signal"])))
            except (ValueError, KeyError, TypeError) as error:
                said = f"there is no column {error}" if isinstance(error, KeyError) else str(error)
                left_out.append(f"line {number}: {said}")
    return list(listed.values()), left_out


class SiteData(Stock):
    """Endless training sequences of the generator: all bases are to be predicted."""

    def __init__(self, seed: int, device: torch.device):
        bases = sites().part("generator").bases.to(device)
        super().__init__(bases, torch.ones(LENGTH, dtype=torch.bool), MASK, seed, device)


DATA = DataSets({"sites": SITES, "matrices": MATRICES}, prepare)
