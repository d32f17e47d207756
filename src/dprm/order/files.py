"""Files: named tensors with one readable JSON header, in safetensors; nothing that could run code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Put a file in place in one move: a reader, or a kill in the middle, sees the old one or the new one."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            # A name must not come before what it names, also where the power goes.
            os.fsync(file.fileno())
        os.replace(part, target)
        if os.name == "posix":  # Nor may the new name be lost with the power, once this has returned.
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        part.unlink(missing_ok=True)


# Bytes of a header: of thousands of names at most.
_LARGEST_HEADER = 1 << 24
_OWNED: dict[Path, Any] = {}


def claim(folder: Path) -> None:
    """Make a folder this process's own until it ends; ValueError where another process is at work in it.

    The operating system holds the lock, so that of a process that died is gone with it.
    """
    home = folder.resolve()
    if home in _OWNED:
        return
    home.mkdir(parents=True, exist_ok=True)
    lock = (home / ".lock").open("w")
    try:
        _lock(lock)
    except OSError:
        lock.close()
        raise ValueError(f"{folder} is in use by another process: wait for it, or choose another folder") from None
    _OWNED[home] = lock


def _lock(file: Any) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file: a device such as /dev/zero has no end."""
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path} is no regular file")
    return Path(path).read_bytes()


def write_tensors(path: str | os.PathLike[str], tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """One safetensors file with a readable JSON header, whole or not at all."""
    # Copies, because safetensors refuses tensors that share memory, as tied weights do.
    packed = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_whole(path, safetensors.torch.save(packed, metadata={"dprm": json.dumps(header, sort_keys=True)}))


def kind_of(path: str | os.PathLike[str]) -> str:
    """What such a file says it is; its tensors are not read. ValueError: it is none."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > min(_LARGEST_HEADER, os.fstat(file.fileno()).st_size):
                raise ValueError(f"its header should have {size:,} bytes")
            kind = json.loads(json.loads(file.read(size))["__metadata__"]["dprm"])["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a dprm file: {error}") from error
    return str(kind)


def read_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of such a file; ValueError says what is wrong with any other."""
    data = read_whole(path)
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        kind_of = "text" if data[:1] in (b"{", b"[") or data[:64].isascii() else "data of another kind, or truncated"
        raise ValueError(f"{path} is not a readable dprm file: it holds {kind_of if data else 'nothing'}")
    try:
        tensors = safetensors.torch.load(data)
        header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["dprm"])
    except Exception as error:
        raise ValueError(
            f"{path} is not a readable dprm file (truncated, damaged, or of another kind): {error}"
        ) from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        header = header if isinstance(header, dict) else {}
        raise ValueError(f"{path} holds a {header.get('kind')!r}: expected a {kind!r}")
    return tensors, header
