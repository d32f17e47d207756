"""Pictures as files: PNG, or SVG with captions."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from html import escape
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.scenes import PALETTE, pixels
from dprm.hosts.omni import canvas
from dprm.order.files import write_whole

# Pixels of a code in a PNG, and of a picture in an SVG; pictures of a row of it.
SCALE, WIDE, ACROSS, GAP = 16, 128, 6, 14
_LINE = 20


def write(path: Path, captions: Sequence[str], pictures: Tensor) -> None:
    """Pictures [N,16,16], side by side in a PNG, or with their captions in an SVG."""
    if path.suffix == ".png":
        blank = torch.full((len(pictures), canvas.SIDE, 1), 0)
        strip = torch.cat([torch.cat([blank, pictures], 2)[row] for row in range(len(pictures))], 1)[:, 1:]
        write_whole(path, png(pixels(strip).repeat_interleave(SCALE, 0).repeat_interleave(SCALE, 1)))
    elif path.suffix == ".svg":
        letters = ["".join(canvas.LETTERS[code] for code in row.flatten().tolist()) for row in pictures]
        write_whole(path, sheet([f"{caption} {text}" for caption, text in zip(captions, letters)]).encode())
    else:
        raise ValueError(f"out is {path}: expected a file that ends in .png or .svg")


def png(image: Tensor) -> bytes:
    """A PNG file of an image [H,W,3] uint8."""
    height, width, _ = image.shape
    lines = b"".join(b"\0" + row.numpy().tobytes() for row in image.contiguous())

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def sheet(answers: Sequence[str], columns: int = ACROSS) -> str:
    """SVG of answers `CAPTION LETTERS`, captions below."""
    drawn = []
    for number, answer in enumerate(answers):
        caption, _, letters = answer.rpartition(" ")
        x, y = GAP + number % columns * (WIDE + GAP), GAP + number // columns * (WIDE + 3 * _LINE)
        drawn.append(picture(letters, x, y))
        for line, words in enumerate(lines_of(caption)):
            drawn.append(text(words, x, y + WIDE + 14 + 13 * line))
    across = min(columns, max(1, len(answers)))
    rows = -(-len(answers) // columns)
    return svg(GAP + across * (WIDE + GAP), GAP + rows * (WIDE + 3 * _LINE), drawn)


def picture(letters: str, x: float, y: float, wide: int = WIDE, marks: Sequence[tuple[int, int, str]] = ()) -> str:
    """A picture of 256 letters as SVG; masked codes are grey. Marks are (row, column, colour) of codes to be framed."""
    size = wide / canvas.SIDE
    parts = [f'<rect x="{x:g}" y="{y:g}" width="{wide}" height="{wide}" fill="#{_hex(0)}" stroke="#999"/>']
    for row in range(canvas.SIDE):
        line = letters[row * canvas.SIDE : (row + 1) * canvas.SIDE]
        start = 0
        for column in range(1, canvas.SIDE + 1):
            if column < canvas.SIDE and line[column] == line[start]:
                continue
            if line[start] != canvas.LETTERS[0]:
                colour = "c9c9c9" if line[start] == "·" else _hex(canvas.LETTERS.index(line[start]))
                left, wide_run = x + start * size, (column - start) * size
                at = f'x="{left:g}" y="{y + row * size:g}" width="{wide_run:g}" height="{size:g}"'
                parts.append(f'<rect {at} fill="#{colour}"/>')
            start = column
    for row, column, colour in marks:
        at = f'x="{x + column * size - 1:g}" y="{y + row * size - 1:g}" width="{size + 2:g}" height="{size + 2:g}"'
        parts.append(f'<rect {at} fill="none" stroke="{colour}" stroke-width="2.5"/>')
    return "".join(parts)


def text(words: str, x: float, y: float, weight: str = "normal") -> str:
    """A line of text as SVG."""
    face = f'font-size="11" font-family="sans-serif" font-weight="{weight}" fill="#555"'
    return f'<text x="{x:g}" y="{y:g}" {face}>{escape(words)}</text>'


def svg(wide: float, high: float, parts: Sequence[str]) -> str:
    """An SVG file."""
    size = f'viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    ground = f'<rect width="{wide:g}" height="{high:g}" fill="#fff"/>'
    return "\n".join([head, ground, *parts, "</svg>\n"])


def _hex(code: int) -> str:
    return "".join(f"{part:02x}" for part in PALETTE[code].tolist())


def lines_of(caption: str, most: int = 24) -> list[str]:
    """A caption in lines of at most so many letters."""
    lines = [""]
    for word in caption.split():
        if len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
