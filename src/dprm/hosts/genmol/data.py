"""Molecules as training sequences: what is read of a file, what is left out, and in which order fragments come.

A file has one SMILES a line, in its first column or in the column SMILES. Molecules are told apart by their canonical
SMILES, whose hash says which split they belong to. Shapes: N molecules, L positions.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.cores import cores
from dprm.data.draws import Draws
from dprm.data.packages import DataSets, Source, cache
from dprm.data.splits import in_split
from dprm.host.progress import Progress
from dprm.hosts.genmol.canvas import BLANK, BRACKETS, MASK, NEXT, TOKEN_OF, padded, write
from dprm.order.files import read_tensors, write_tensors

KIND = "dprm.molecules"
# Of a large file; writing one takes two milliseconds.
MOST = 200_000
_PIECE = 500
# A file of fewer lines is done before further processes have started.
_FEW = 4_000


def prepare(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """The canvases of a file of SMILES, and what was left out and why (see `DataSets`)."""
    smiles = list(listed(path))
    if not smiles:
        raise ValueError(f"{path} has no SMILES: expected one a line, in the first column or in the column SMILES")
    total = len(smiles)
    if total > MOST:
        order = Draws("molecules", 0).permutations(total)[:MOST].sort().values
        smiles = [smiles[row] for row in order.tolist()]
    rows: dict[int, list[int]] = {}
    left_out: Counter[str] = Counter()
    example: dict[str, str] = {}
    for key, tokens, reason, said in _written(smiles):
        if not reason and key in rows:
            reason, said = "the same molecule again", ""
        if reason:
            left_out[reason] += 1
            example.setdefault(reason, said)
        else:
            rows[key] = tokens
    lines = [f"{len(rows):,} molecules of {len(smiles):,} lines" + (f" drawn from {total:,}" if total > MOST else "")]
    lines += [
        f"left out: {count:,}, {reason}{f' (such as: {example[reason]})' if example[reason] else ''}"
        for reason, count in left_out.most_common()
    ]
    if not rows:
        raise ValueError(f"{path} has no molecule that can be written: {'; '.join(lines[1:])}")
    prepared = folder / "molecules.safetensors"
    header = {"kind": KIND, "from": path.name, "lines": lines}
    write_tensors(prepared, {"tokens": padded(list(rows.values())), "key": torch.tensor(list(rows))}, header)
    return prepared, lines


def listed(path: Path) -> Iterator[str]:
    """The SMILES of a text file, packed or not."""
    column = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as packed:
        file = io.TextIOWrapper(packed, encoding="utf-8-sig")
        try:
            for number, line in enumerate(file):
                cells = line.strip().replace("\t", ",").replace(" ", ",").split(",")
                names = [cell.lower() for cell in cells]
                if not number and "smiles" in names:
                    column = names.index("smiles")
                elif line.strip():
                    yield cells[column] if column < len(cells) else ""
        except (UnicodeDecodeError, OSError) as error:
            raise ValueError(f"{path} is no text file of SMILES: {error}") from None


Written = tuple[int, list[int], str, str]


def _written(smiles: list[str]) -> Iterator[Written]:
    """What `written` gives for every SMILES, in order."""
    pieces = [smiles[first : first + _PIECE] for first in range(0, len(smiles), _PIECE)]
    workers = 1 if len(smiles) < _FEW else cores()
    with Progress("molecules") as progress:
        if workers == 1:
            for done, piece in enumerate(pieces, 1):
                yield from written(piece)
                progress.show(min(done * _PIECE, len(smiles)), len(smiles))
            return
        # Not a fork: where torch has started threads, a forked process can hang.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for done, rows in enumerate(pool.map(written, pieces), 1):
                yield from rows
                progress.show(min(done * _PIECE, len(smiles)), len(smiles))


def written(piece: list[str]) -> list[Written]:
    """Of every SMILES its key and tokens, or why it was left out, and what was said of it."""
    from rdkit import Chem

    from dprm.hosts.genmol.brackets import CHANGED, MoleculeError, decode, encode, molecule_of

    rows: list[Written] = []
    for smiles in piece:
        try:
            canonical = Chem.MolToSmiles(molecule_of(smiles))
            text = encode(canonical)
            if Chem.MolToSmiles(decode(text)) != canonical:
                raise MoleculeError(CHANGED, f"{canonical[:60]!r} became {text!r}")
            rows.append((key_of(canonical), write(text), "", ""))
        except MoleculeError as error:
            rows.append((0, [], error.reason, str(error)))
    return rows


def key_of(canonical: str) -> int:
    """The identity of a molecule, from its canonical SMILES."""
    return int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:8]) >> 2


MOSES = Source(
    package="molsets",
    archive="molsets-0.3.1-py3-none-any.whl",
    sha256="7f4450e3ebecebe79c3a2a55950c93daddee071120daf64a163d03481e811d34",
    inside="moses/dataset/data/train.csv.gz",
    licence="MIT",
    about="the MOSES training set, 1,584,663 drug-like molecules of ZINC",
)
DATA = DataSets({"moses": MOSES}, prepare, needs=("rdkit", "safe"))


def prepared(name: str = "moses") -> tuple[Tensor, Tensor]:
    """tokens [N,L] uint8 and key [N] int64 of prepared molecules.

    Raises:
        ValueError: they are not there; the message says how to get them.
    """
    path = cache() / "genmol" / name / "molecules.safetensors"
    if not path.is_file():
        raise ValueError(f"there are no molecules {path}; get them with: dprm data genmol")
    tensors, _ = read_tensors(path, KIND)
    return tensors["tokens"], tensors["key"]


class Molecules:
    """An endless supply of the training molecules, their fragments in random order (see `masks.Data`).

    Brackets are numbered anew as they appear, so that a text says no more than its order.
    """

    mask_id = MASK

    def __init__(self, tokens: Tensor, key: Tensor, seed: int, device: torch.device | str):
        self.tokens = tokens[in_split(key, "train")].to(device)
        self.seed, self.device = seed, device

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        draws = Draws("molecules", self.seed, step, device=self.device)
        clean = shuffled(self.tokens[draws.below(len(self.tokens), rows)].long(), draws)
        return clean, clean != BLANK


def shuffled(tokens: Tensor, draws: Draws) -> Tensor:
    """[B,L] the same molecules with their fragments in another order and their brackets numbered as they appear."""
    rows, length = tokens.shape
    blank = tokens == BLANK
    # A dot leads its fragment; the first fragment has one in an extra column, and the dot that comes first is dropped.
    led = torch.cat([torch.full_like(tokens[:, :1], TOKEN_OF[NEXT]), tokens], 1)
    fragment = (led == TOKEN_OF[NEXT]).cumsum(1) - 1
    rank = draws.permutations(rows, length + 1).gather(1, fragment)
    rank = torch.where(torch.nn.functional.pad(blank, (1, 0)), length + 2, rank)
    mixed = led.gather(1, rank.argsort(dim=1, stable=True))[:, 1:]
    first, last = TOKEN_OF[BRACKETS[0]], TOKEN_OF[BRACKETS[-1]]
    is_bracket = (mixed >= first) & (mixed <= last)
    number = torch.where(is_bracket, mixed - first, len(BRACKETS))
    place = torch.arange(length, device=tokens.device).expand(rows, -1)
    appeared = torch.full((rows, len(BRACKETS) + 1), length, device=tokens.device)
    appeared = appeared.scatter_reduce(1, number, torch.where(is_bracket, place, length), "amin")
    new = appeared.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    return torch.where(is_bracket, first + new.gather(1, number), mixed)
