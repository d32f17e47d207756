"""An environment of its own for packages that bring pickled models: made in the cache, once, when it is asked for.

What is installed there is seen there alone. Torch and whatever else fits is that of the environment that asks, so that
it is not downloaded twice. Nothing of these packages is imported here: they run in a process that is given a file and
leaves a file.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import torch

from dprm.data.packages import cache
from dprm.order.files import claim

_DONE = "complete"


def python_with(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment with these packages.

    Args:
        name: of the environment. requirements: as pip takes them; torch stays as it is here.

    Raises:
        ValueError: it could not be made; the message has what pip says.
    """
    here = sorted({sysconfig.get_path(kind) for kind in ("purelib", "platlib")})
    made_of = repr((list(requirements), sys.version, torch.__version__, here))
    folder = cache() / "environments" / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if (folder / _DONE).is_file():
        return python
    if folder.exists():
        shutil.rmtree(folder)  # What a killed installation has left.
    claim(folder.parent)
    venv.create(folder, with_pip=True, symlinks=True)
    own = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (own / "asking.pth").write_text("".join(f"{path}\n" for path in here))
    limits = folder / "constraints.txt"
    limits.write_text(f"torch=={torch.__version__}\n")
    install = [str(python), "-m", "pip", "install", "--quiet", "-c", str(limits), *requirements]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()
        remedy = f"try {' '.join(requirements)} with pip yourself, or try again with a network"
        raise ValueError(f"{name} could not be installed ({'; '.join(said[:2])}): {remedy}")
    (folder / _DONE).write_text("".join(f"{line}\n" for line in requirements))
    return python
