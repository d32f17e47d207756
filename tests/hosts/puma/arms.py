"""Weights that know nothing, with the header of a training: what a study is given, in milliseconds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dprm.hosts import task_of
from dprm.order import Order
from dprm.train.denoiser import save_weights
from dprm.train.recipe import Recipe
from dprm.train.train import LAWS
from dprm.train.transformer import Transformer
from tests.draws import taught


def write_arm(
    path: Path,
    law: str,
    host: str = "puma",
    steps: int = 5,
    recipe: Recipe | None = None,
    depth: int = 1,
    seed: int | None = None,
) -> None:
    """The weights of one law, and for the one that learns an order what it learned."""
    recipe = recipe or Recipe(rows=16, steps=5, seed=3)
    shape = task_of("puma" if host == "dmpo" else host).shaped(32, depth)
    facts = {"host": host, "law": law, "steps": steps, "recipe": asdict(recipe), "scores": {}}
    path.parent.mkdir(parents=True, exist_ok=True)
    save_weights(path, Transformer(shape, list(LAWS).index(law) if seed is None else seed), facts)
    if law == "dprm":
        taught(Order(), 1).policy(host=host, estimator="training").save(path.with_suffix(".dprm"))


def arm_files(folder: Path, host: str = "puma") -> dict[str, Path]:
    files = {law: folder / f"{law}.safetensors" for law in LAWS}
    for law, path in files.items():
        write_arm(path, law, host)
    return files
