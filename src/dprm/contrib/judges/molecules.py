"""What models that nobody optimised say of generated molecules: how they differ from real ones, and what is wrong with
them.

    dprm compare genmol … --answers arms
    python -m dprm.contrib.judges.molecules arms/*.csv --out results/genmol-judges.json

FCD is the distance to held-out molecules of MOSES, by ChemNet; properties are probabilities of ADMET-AI. Each generated
molecule counts as often as it was made. The first file is what the others are compared with; samples are independent.
Both models are pickles inside their packages: they run in a process of their own. Shapes: n molecules.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from dprm.contrib.judges import inside
from dprm.contrib.judges.environment import python_with
from dprm.contrib.judges.frechet import LEAST, Reference
from dprm.evaluate.bootstrap import independent_interval, mean_interval
from dprm.evaluate.card import Estimate
from dprm.host.progress import Progress
from dprm.order.files import write_whole

KIND = "judges"
PACKAGES = ("fcd==1.2.2", "admet-ai==2.0.1")
# Chosen before anything was judged. Probabilities: of blocking the heart's potassium channel, of mutations, of damage
# to the liver, of failing a trial for toxicity; and of being available when swallowed.
LOWER, HIGHER = ("hERG", "AMES", "DILI", "ClinTox"), ("Bioavailability_Ma",)
PROPERTIES = (*LOWER, *HIGHER)
REAL = "held-out molecules"
_NORMAL = 1.96


def judged(smiles: list[str]) -> tuple[Tensor, Tensor]:
    """What the models say of n molecules: activations [n,512] and properties [n,5]."""
    python = python_with("molecule-judges", PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        asked, answer, errors = (Path(folder) / name for name in ("asked.json", "answer.npz", "errors.txt"))
        asked.write_text(json.dumps({"smiles": smiles, "properties": PROPERTIES}))
        command = [str(python), inside.__file__, str(asked), str(answer)]
        with (
            errors.open("w") as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as work,
            Progress("molecules judged") as progress,
        ):
            assert work.stdout is not None
            for line in work.stdout:
                done, total = line.split()
                progress.show(int(done), int(total))
        if work.returncode:
            raise ValueError(f"the judges failed: {'; '.join(errors.read_text().splitlines()[-2:])}")
        with numpy.load(answer, allow_pickle=False) as made:
            return torch.from_numpy(made["activations"]), torch.from_numpy(made["properties"])


def judge(files: dict[str, Path], count: int = 5000, seed: int = 0) -> dict[str, Any]:
    """The card of some sets of molecules, by name; the first is what the others are compared with.

    Args:
        count: held-out molecules of the reference; as many more stand beside the sets as the smallest of these has.
    """
    from dprm.contrib.judges.sets import held_out, molecules_of

    sets, left_out = {}, {}
    for name, path in files.items():
        sets[name], left_out[name] = molecules_of(path)
        if sets[name].total() < LEAST:
            raise ValueError(f"{path} has {sets[name].total()} molecules: a distance of sets needs at least {LEAST}")
    real = held_out(count + min(made.total() for made in sets.values()), seed)
    sets[REAL] = Counter(real[count:])
    different = list(dict.fromkeys([*real, *(smiles for made in sets.values() for smiles in made)]))
    activations, properties = judged(different)
    row = {smiles: index for index, smiles in enumerate(different)}
    reference = Reference(activations[[row[smiles] for smiles in real[:count]]])
    first = next(iter(files))
    arms: dict[str, Any] = {}
    errors: dict[str, float] = {}
    drawn = {name: torch.tensor([row[smiles] for smiles in made.elements()]) for name, made in sets.items()}
    # Small sets are farther away than large ones of the same kind: all are measured at the size of the smallest.
    least = min(map(len, drawn.values()))
    for name, rows in drawn.items():
        some = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:least]]
        distance, errors[name] = reference.interval(activations[some], seed)
        metrics = {"FCD": Estimate(*distance)}
        for column, key in enumerate(PROPERTIES):
            metrics[key] = Estimate(*mean_interval(properties[rows, column], seed=seed))
            if name != first:
                delta = independent_interval(properties[rows, column], properties[drawn[first], column], seed=seed)
                metrics[key] = _against(metrics[key], *delta)
        if name != first:
            delta = distance.estimate - arms[first]["metrics"]["FCD"]["mean"]
            half = _NORMAL * (errors[name] ** 2 + errors[first] ** 2) ** 0.5
            metrics["FCD"] = _against(metrics["FCD"], delta, delta - half, delta + half)
        arms[name] = {
            "molecules": len(rows),
            "different": len(sets[name]),
            "left out": left_out.get(name, 0),
            "metrics": {key: asdict(estimate) for key, estimate in metrics.items()},
        }
    return {
        "kind": KIND,
        "judges": list(PACKAGES),
        "reference": first,
        "held out": count,
        "molecules of a distance": least,
        "seed": seed,
        "the lower the better": ["FCD", *LOWER],
        "arms": arms,
    }


def _against(estimate: Estimate, delta: float, low: float, high: float) -> Estimate:
    return replace(estimate, delta=delta, delta_low=low, delta_high=high)


def table(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    names = ["FCD", *PROPERTIES]
    lines = [["set", "molecules", *(f"{name} ↓" if name in card["the lower the better"] else name for name in names)]]
    lines.append(["---"] * len(lines[0]))
    for arm, known in card["arms"].items():
        cells = []
        for name in names:
            each = known["metrics"][name]
            between = f"[{each['low']:.3f}, {each['high']:.3f}]"
            if each["delta"] is not None:
                between = f"({each['delta']:+.3f} [{each['delta_low']:+.3f}, {each['delta_high']:+.3f}])"
            cells.append(f"{each['mean']:.3f} {between}")
        lines.append([arm, f"{known['molecules']:,}", *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="sets of molecules: .csv or .smi; the first is compared to")
    parser.add_argument("--held-out", type=int, default=5000, help="molecules of MOSES to measure the distance to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    try:
        card = judge({path.stem: path for path in asked.files}, asked.held_out, asked.seed)
    except ModuleNotFoundError as error:
        sys.exit(f"molecules need {error.name}: pip install 'dprm[genmol]'")
    except (ValueError, OSError) as error:
        sys.exit(f"{error}")
    words = [*map(str, asked.files), f"--held-out {asked.held_out}", f"--seed {asked.seed}"]
    card["command"] = " ".join(["python -m dprm.contrib.judges.molecules", *words])
    if asked.out is not None:
        write_whole(asked.out, (json.dumps(card, indent=2) + "\n").encode())
    print(table(card))


if __name__ == "__main__":
    main()
