"""Heavy chains of antibodies whose structure is known, where their loops are, and how they are read and written.

Chains of the Protein Data Bank come with the package `sidechainnet`. A chain is taken where the conserved residues of
a heavy chain's variable domain stand where they must, by the usual rules for the three loops (CDRs) of a sequence:

    loop 1   begins 4 after the first cysteine, ends before W·[RKQ]
    loop 3   begins 3 after the second cysteine, ends before WG·G
    loop 2   begins 15 after loop 1, ends 33 before loop 3

Antibodies with the same third loop are kept together: they are mostly one antibody under several names. What
`dprm data antiberty` makes is shipped as `heavy.fa`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.draws import row_hash
from dprm.data.fasta import Alphabet, Record, read_fasta, write_fasta
from dprm.data.packages import DataSets, Source
from dprm.hosts.antiberty.network import END, FIRST, MASK, START, TOKENS, WEIGHTS

RESIDUES = Alphabet("ACDEFGHIKLMNPQRSTVWY", "amino acids", shortest=20, longest=200, masks="X_")
CHAINS = Source(
    package="sidechainnet",
    archive="sidechainnet-1.0.1-py2.py3-none-any.whl",
    sha256="604f57ffb2ae35e293aaf2cdb3e5bbb79907930dddf963da602d4f9445429d78",
    inside="sidechainnet/resources/full_protein_dssp_annotations.json",
    licence="BSD-3 (package); sequences of the Protein Data Bank, CC0",
    about="sequences of 159,026 chains of the Protein Data Bank",
)

_FIRST = re.compile(r"C.{3}(.{6,12}?)W[A-Z][RKQ]")
_THIRD = re.compile(r"C..(.{2,30}?)WG.G")
# Residues before the first cysteine; where it may stand; after the third loop.
_BEFORE, _CYSTEINE, _AFTER = 21, range(18, 27), 11
_SECOND = range(14, 22)

METRICS = ("human_heavy", "pseudo_likelihood")
# The tokens of a canvas, and its name.
Posed = tuple[list[int], str]
Loops = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def loops(chain: str) -> Loops | None:
    """(begin, end) of the three loops of a heavy chain; None where it does not look like one."""
    for first in _FIRST.finditer(chain):
        if first.start() not in _CYSTEINE:
            continue
        begin = first.end(1) + 14
        for third in _THIRD.finditer(chain, begin + 46):
            end = third.start(1) - 32
            if end - begin in _SECOND and len(chain) >= third.end(1) + _AFTER - 2:
                return first.span(1), (begin, end), third.span(1)
    return None


def heavy_chains(path: Path) -> list[Record]:
    """The variable domains among the chains of a file, every sequence once."""
    domains: dict[str, str] = {}
    for name, entry in json.loads(path.read_text()).items():
        placed = loops(entry["Sequence"])
        if placed is not None:
            first = max(0, placed[0][0] - 4 - _BEFORE)
            domain = entry["Sequence"][first : placed[2][1] + _AFTER]
            if set(domain) <= set(RESIDUES.letters) and loops(domain) is not None:
                domains.setdefault(domain, name)
    return [Record(name, domain) for domain, name in domains.items()]


def split_of(chain: str) -> str:
    """Half fit, a quarter each select and test: by the third loop."""
    placed = loops(chain)
    assert placed is not None
    begin, end = placed[2]
    key = row_hash(torch.tensor([[ord(letter) for letter in chain[begin:end].ljust(32)]]))
    return ("fit", "fit", "select", "test")[int(key) % 4]


def antibodies() -> dict[str, list[Record]]:
    """The antibodies by split."""
    records, _ = read_fasta(Path(__file__).with_name("heavy.fa"), RESIDUES)
    splits: dict[str, list[Record]] = {"fit": [], "select": [], "test": []}
    for record in records:
        splits[split_of(record.letters)].append(record)
    return splits


def framed(records: Sequence[Record]) -> list[Posed]:
    """Antibodies with nothing but their loops left, each set of loops once."""
    shown: dict[str, str] = {}
    for record in records:
        inside = {place for begin, end in loops(record.letters) or () for place in range(begin, end)}
        letters = "".join(letter if place in inside else "X" for place, letter in enumerate(record.letters))
        shown.setdefault(letters, record.name)
    return [(encoded(letters), name) for letters, name in shown.items()]


def encoded(letters: str) -> list[int]:
    """The tokens of a sequence; X and _ are masks."""
    return [START, *(MASK if x in RESIDUES.masks else TOKENS.index(x) for x in letters), END]


def read(path: Path) -> tuple[list[Posed], list[str]]:
    """A person's FASTA file with X or _ where a residue is to be filled."""
    records, left_out = read_fasta(path, RESIDUES)
    complete = [record.name for record in records if not set(RESIDUES.masks) & set(record.letters)]
    left_out += [f"{name}: it has no X or _ that could be filled" for name in complete]
    return [(encoded(each.letters), each.name) for each in records if each.name not in complete], left_out


def write(path: Path, tokens: Tensor, names: Sequence[str], scores: Tensor) -> None:
    """The finished sequences as FASTA, their scores in the headers."""
    letters = ["".join(TOKENS[token] for token in row if token >= FIRST) for row in tokens.tolist()]
    told = [dict(zip(METRICS, row, strict=True)) for row in scores.tolist()]
    write_fasta(path, map(Record, names, letters, told))


def prepare(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """Heavy chains of a file of chains (JSON of sidechainnet, or FASTA) as FASTA; weights need nothing."""
    if path.suffix == ".bin":
        return path, []
    left_out: list[str] = []
    if path.suffix == ".json":
        records = heavy_chains(path)
    else:
        records, left_out = read_fasta(path, RESIDUES)
        left_out += [f"{record.name}: no heavy chain" for record in records if loops(record.letters) is None]
        records = [record for record in records if loops(record.letters) is not None]
    write_fasta(folder / "heavy.fa", records)
    return folder / "heavy.fa", [*left_out, f"{len(records):,} heavy chains of antibodies"]


DATA = DataSets({"sequences": CHAINS, "weights": WEIGHTS}, prepare)
