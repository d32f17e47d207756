"""Finding a host by what a person writes: a name, `package.module:attr`, `path.py:attr`, or an installed entry point.

An attribute may be a Host, a class of hosts, or a function that returns one. `hf:PATH` is a checkpoint: a scheme is a
function of what stands behind the colon and of settings.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType
from typing import Any

from dprm.host.host import Host

GROUP = "dprm.hosts"
# By scheme, what opens it; named and not imported: these rooms lie farther down.
SCHEMES = {"hf": "dprm.contrib.hf:opened"}
# Modules of files that were run, by path and time of the last change.
_FILES: dict[tuple[Path, int], Any] = {}


def attribute(where: str) -> Any:
    """What `package.module:attr` or `path.py:attr` names."""
    source, _, name = where.rpartition(":")
    if not source or not name:
        raise ValueError(f"{where!r}: expected package.module:attribute or path.py:attribute")
    try:
        module = _from_file(Path(source)) if source.endswith(".py") else _imported(source, Path.cwd())
    except ModuleNotFoundError as error:
        if error.name is not None and source.split(".")[0] == error.name.split(".")[0]:
            raise ValueError(f"{where!r}: there is no module {source!r} to import from here") from None
        raise
    try:
        return getattr(module, name)
    except AttributeError:
        raise ValueError(f"{where!r}: {source} has no {name!r}") from None


class _Source(SourceFileLoader):
    """Runs what the file says now: bytecode is told from stale one by whole seconds and size."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _from_file(path: Path) -> Any:
    """The module of a file; it is run once, until the file changes: a model may be loaded there."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    path = path.resolve()
    key = path, path.stat().st_mtime_ns
    if key not in _FILES:
        name = f"dprm_user_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path, loader=_Source(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        # What stands beside the file can be imported by it.
        with _also(path.parent):
            spec.loader.exec_module(module)
        _FILES[key] = module
    return _FILES[key]


def _imported(name: str, here: Path) -> Any:
    """A module by name; an installed command does not look into the current folder by itself."""
    with _also(here, first=False):
        return importlib.import_module(name)


@contextmanager
def _also(folder: Path, first: bool = True) -> Iterator[None]:
    """Modules are looked for in this folder as well."""
    sys.path.insert(0 if first else len(sys.path), str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def installed() -> list[str]:
    """The names of hosts that other packages bring."""
    return sorted(point.name for point in entry_points(group=GROUP))


def scheme_of(name: str) -> str | None:
    """The scheme of `hf:PATH`; None for other names."""
    scheme, colon, _ = name.partition(":")
    return scheme if colon and scheme in SCHEMES else None


def find(name: str, **settings: Any) -> Host:
    """A host that is not one of ours.

    Args:
        settings: of a host with a scheme.

    Raises:
        ValueError: nothing of that name, or something that is no host; the message says what to write.
    """
    scheme = scheme_of(name)
    if scheme is not None:
        return _as_host(name, attribute(SCHEMES[scheme])(name.partition(":")[2], **settings))
    if ":" in name:
        return _as_host(name, attribute(name))
    for point in entry_points(group=GROUP):
        if point.name == name:
            return _as_host(name, point.load())
    raise ValueError(f"there is no host {name!r}")


def _as_host(name: str, value: Any) -> Host:
    host = value if isinstance(value, Host) else value() if callable(value) else value
    if not isinstance(host, Host):
        raise ValueError(f"{name!r} is {type(host).__name__}: expected a dprm host, such as `dprm.make_host` gives")
    return host
