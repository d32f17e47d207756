"""pass@K of post-trained weights: successes kept as they come, and the tables and differences that follow from them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dprm.evaluate.passk import ESTIMATORS, KS, paired_pass_interval, pass_interval, pass_table
from dprm.host.progress import Progress
from dprm.hosts.dmpo import problems
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.dmpo.sampling import success_matrix
from dprm.order import Order
from dprm.train import checkpoint
from dprm.train.posttraining import ARMS

if TYPE_CHECKING:
    from dprm.hosts.dmpo.study import Setting

START, DPRM = "start", "dprm-progressive"
# The same weights with the largest scores instead of shortlists, and without learned values: what training, values and
# exploration each contribute.
DPRM_BY_TOP_M, DPRM_BY_CONFIDENCE = f"{DPRM} by top_m", f"{DPRM} by confidence"
# Shortlists are drawn, which makes samples more varied whatever the values: the start with shortlists and no values.
START_BY_SHORTLIST = f"{START} by shortlist"
CONTRASTS = (
    *((arm, START) for arm in ARMS),
    ("confidence-progressive", "random"),
    (DPRM, "random"),
    (DPRM, "confidence-progressive"),
    (DPRM, START_BY_SHORTLIST),
    (START_BY_SHORTLIST, START),
    (DPRM_BY_CONFIDENCE, "confidence-progressive"),
    (DPRM, DPRM_BY_CONFIDENCE),
    (DPRM_BY_TOP_M, DPRM_BY_CONFIDENCE),
)
# Problems with at least so many numbers are hard.
HARD = 5


class Passing:
    """Success matrices of weights under orders.

    Args:
        setting: sizes, problems and samples. folder: keeps the successes. rows: samples decoded at a time.

    Attributes:
        listed: the problems of every size. ks: the K of pass@K, as far as there are samples.
    """

    def __init__(self, setting: Setting, folder: Path, rows: int):
        self.setting, self.rows = setting, rows
        self.path = folder / "success.safetensors"
        self.found: dict[str, Tensor] = checkpoint.load(self.path)[0] if self.path.is_file() else {}
        self.ks = tuple(k for k in KS if k <= setting.samples)
        self.listed = {
            size: problems.generate(setting.split, setting.limit, size, setting.seed, distinct=True).listed()
            for size in setting.sizes
        }

    def measure(self, name: str, host: Countdown, order: Order) -> None:
        """Decode every size that is not there yet."""
        setting = self.setting
        with Progress(f"pass@K of {name}") as progress:
            for place, (size, listed) in enumerate(self.listed.items(), 1):
                key = f"{name}|{size}"
                if key not in self.found:
                    began = time.monotonic()
                    found = success_matrix(
                        host,
                        host.posed(listed),
                        order,
                        setting.samples,
                        budget=setting.width,
                        temperature=setting.temperature,
                        seed=setting.seed,
                        rows=self.rows,
                    )
                    self.found[key] = found.to(torch.uint8)
                    checkpoint.save(self.path, self.found, {"split": setting.split, "samples": setting.samples})
                    seconds = time.monotonic() - began
                    progress.say(f"{size} numbers: pass@1 {found.double().mean().item():.4f}, {seconds:.1f} s")
                progress.show(place, len(self.listed))

    @property
    def names(self) -> list[str]:
        """What was measured."""
        return list(dict.fromkeys(key.split("|")[0] for key in sorted(self.found, key=_place)))

    @property
    def parts(self) -> dict[str, list[int]]:
        """The sizes of every part of the problems."""
        hard = [size for size in self.listed if size >= HARD]
        parts = {**{str(size): [size] for size in self.listed}, "all": list(self.listed)}
        return {**parts, "hard": hard} if hard else parts

    def of(self, name: str, part: str) -> Tensor:
        """[N,n] bool: the successes of some weights on a part of the problems."""
        return torch.cat([self.found[f"{name}|{size}"].bool() for size in self.parts[part]])

    def tables(self) -> dict[str, dict[str, Any]]:
        """pass@K: name → part → estimator → K, and their mean."""
        return {name: {part: pass_table(self.of(name, part), self.ks) for part in self.parts} for name in self.names}

    def results(self, resamples: int) -> list[dict[str, Any]]:
        """Mean pass@K with its interval over problems, of everything measured."""
        found = []
        for name in self.names:
            for part in self.parts:
                success = self.of(name, part)
                means = {e: pass_interval(success, self.ks, e, resamples)._asdict() for e in ESTIMATORS}
                found.append({"arm": name, "part": part, "problems": len(success), **means})
        return found

    def differences(self, resamples: int) -> list[dict[str, Any]]:
        """Paired differences of mean pass@K, of every contrast on every part."""
        found = []
        for treated, control in CONTRASTS:
            for part in self.parts:
                pair = self.of(treated, part), self.of(control, part)
                deltas = {e: paired_pass_interval(*pair, self.ks, e, resamples)._asdict() for e in ESTIMATORS}
                found.append({"treated": treated, "control": control, "part": part, **deltas})
        return found


def _place(key: str) -> int:
    """Where a name stands in tables: the start, the arms, then variants."""
    return (START, START_BY_SHORTLIST, *ARMS, DPRM_BY_TOP_M, DPRM_BY_CONFIDENCE).index(key.split("|")[0])
