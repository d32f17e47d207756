"""The files of a person's own that a file imports, and those that these import: what a host's code rests on.

Files of this package and of installed ones are left out: their versions are not the host's own code.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

_OURS = Path(__file__).resolve().parents[1]
_INSTALLED = ("site-packages", "dist-packages")


def imported_files(files: set[Path]) -> set[Path]:
    """All that the files import, directly or not, without themselves."""
    found: set[Path] = set()
    left = [file.resolve() for file in files]
    while left:
        file = left.pop()
        if not _own(file):
            continue
        new = {other for name in _names(file) for other in _files(name, file)} - found
        found |= new
        left += new
    return found - {file.resolve() for file in files}


def _own(file: Path) -> bool:
    """Whether a person has written it."""
    installed = file.is_relative_to(_OURS) or any(part in _INSTALLED for part in file.parts)
    return not installed and not file.is_relative_to(Path(ast.__file__).resolve().parent)


def _names(file: Path) -> Iterator[str]:
    """The modules that a file imports, at whatever depth; what `from a import b` names may be a module or not."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(_package(file, node.level)) if node.level else ""
            base = ".".join(part for part in (package, node.module or "") if part)
            yield from (part for part in (base, *(f"{base}.{alias.name}" for alias in node.names)) if part)


def _package(file: Path, level: int) -> list[str]:
    """The package that so many dots stand for."""
    folders = [file.parent]
    while (folders[-1] / "__init__.py").is_file() and folders[-1].parent != folders[-1]:
        folders.append(folders[-1].parent)
    names = [folder.name for folder in reversed(folders[:-1])]
    return names[: len(names) - level + 1]


def _files(name: str, importer: Path) -> Iterator[Path]:
    """The file of a module: beside the importer, where its package stands, or where it was imported from."""
    root = importer.parent
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    path = Path(*name.split("."))
    loaded = getattr(sys.modules.get(name), "__file__", None)
    known = [Path(loaded)] if loaded else []
    beside = [place for base in (importer.parent, root) for place in (base / f"{path}.py", base / path / "__init__.py")]
    for file in (*beside, *known):
        if file.suffix == ".py" and file.is_file() and _own(file.resolve()):
            yield file.resolve()
            return
