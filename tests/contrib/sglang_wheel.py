"""The algorithm and plug-in files of a released SGLang, with all that is heavy about it replaced by empty shells.

The wheel is fetched from the package registry into the folder for temporary files, and stays there for the next run.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import subprocess
import sys
import tempfile
import types
import zipfile
from pathlib import Path

VERSION = "0.5.23"
_REAL = ("sglang/srt/dllm/", "sglang/srt/plugins/")


def unpacked_wheel() -> Path | None:
    """The folder with the real files; None where the wheel cannot be had."""
    home = Path(tempfile.gettempdir()) / f"dprm-sglang-{VERSION}"
    if not (home / "done").is_file():
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                f"sglang=={VERSION}",
                "-d",
                folder,
            ]
            if subprocess.run(command, check=False, capture_output=True, timeout=300).returncode != 0:
                return None
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                wheel.extractall(home, [name for name in wheel.namelist() if name.startswith(_REAL)])
        (home / "done").touch()
    return home


class Shells(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds an empty shell for every module of SGLang that is not among the real files."""

    def __init__(self, home: Path):
        self.home = home

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name.split(".")[0] != "sglang":
            return None
        place = self.home / name.replace(".", "/")
        if f"{name.replace('.', '/')}/".startswith(_REAL):
            file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            if file.is_file():
                found = [str(place)] if place.is_dir() else None
                return importlib.util.spec_from_file_location(name, file, submodule_search_locations=found)
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [str(place)]
        return spec

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        module = types.ModuleType(spec.name)
        settings = {"sglang.srt.utils": {"is_npu": lambda: False}, "sglang.srt.environ": {"envs": _NothingSet()}}
        for name, value in settings.get(spec.name, {}).items():
            setattr(module, name, value)
        module.__getattr__ = lambda name: _shell(name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        pass


class _NothingSet:
    """Environment variables of SGLang, none of which is set."""

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        return types.SimpleNamespace(get=lambda: None)


def _shell(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
