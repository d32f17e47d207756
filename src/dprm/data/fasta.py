"""FASTA files: named sequences of letters, read with what is wrong said by record, and written with scores.

>name anything else
EVQLVES…
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dprm.order.files import read_whole, write_whole

# Letters of a sequence on one line.
_WIDTH = 60
_NUCLEOTIDES = frozenset("ACGTUN")


@dataclass(frozen=True)
class Record:
    """A named sequence. scores: for its header, by name."""

    name: str
    letters: str
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Alphabet:
    """Which sequences can be read.

    Attributes:
        letters: those there are. masks: letters that stand for a position to be filled; empty: there are none.
        unknown: letters that other tools write for "any", with what to do about them.
        shortest, longest: lengths.
        kind: for messages, such as "amino acids".
    """

    letters: str
    kind: str
    shortest: int
    longest: int
    masks: str = ""
    unknown: Mapping[str, str] = field(default_factory=dict)

    def check(self, letters: str) -> None:
        """Raise ValueError with what is wrong with a sequence, by position."""
        for position, letter in enumerate(letters, 1):
            if letter not in self.letters and letter not in self.masks:
                remedy = self.unknown.get(letter, f"expected {self.kind} {self.letters}")
                if self.masks:
                    remedy += f"; {' or '.join(self.masks)} where a position is to be filled"
                raise ValueError(f"position {position} is {letter!r}: {remedy}")
        if not self.shortest <= len(letters) <= self.longest:
            length = str(self.shortest) if self.shortest == self.longest else f"{self.shortest} to {self.longest}"
            raise ValueError(f"it has {len(letters)} letters: expected {length}")
        bases = set(letters) - set(self.masks)
        if not set(self.letters) <= _NUCLEOTIDES and bases and bases <= _NUCLEOTIDES and len(letters) > 20:
            raise ValueError(f"it has the letters {''.join(sorted(bases))} alone, as DNA has: expected {self.kind}")


def read_fasta(path: Path, alphabet: Alphabet) -> tuple[list[Record], list[str]]:
    """The records that fit the alphabet, in upper case, and one line for each that is left out.

    Raises:
        ValueError: no FASTA file, or an empty one.
    """
    try:
        lines = read_whole(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None
    records, left_out = list[Record](), list[str]()
    for number, (name, letters) in enumerate(_entries(path, lines), 1):
        title = f"record {number}{f' ({name})' if name else ''}"
        try:
            if not letters:
                raise ValueError("it holds no sequence")
            alphabet.check(letters)
            records.append(Record(name or f"record-{number}", letters))
        except ValueError as error:
            left_out.append(f"{title}: {error}")
    if not records and not left_out:
        raise ValueError(f"{path} is empty: expected records such as `>name` and a line of letters")
    return records, left_out


def _entries(path: Path, lines: Iterable[str]) -> list[tuple[str, str]]:
    """(name, letters) of every record."""
    entries: list[tuple[str, list[str]]] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith(">"):
            entries.append((next(iter(text[1:].split()), ""), []))
        elif text and not text.startswith(";"):
            if not entries:
                raise ValueError(f"{path} is no FASTA file: line {number} is {text[:40]!r}, expected >name before it")
            entries[-1][1].append("".join(text.split()).upper())
    return [(name, "".join(parts)) for name, parts in entries]


def write_fasta(path: Path, records: Iterable[Record]) -> None:
    """Write records, their scores in the headers: `>name reward=0.913 likelihood=0.871`."""
    lines = []
    for record in records:
        scores = "".join(f" {name.replace(' ', '_')}={score:.6g}" for name, score in record.scores.items())
        lines.append(f">{record.name}{scores}")
        lines += [record.letters[start : start + _WIDTH] for start in range(0, len(record.letters), _WIDTH)]
    write_whole(path, ("\n".join(lines) + "\n").encode())
