"""A host and runs whose every text tries to be something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

import dprm
from dprm.evaluate.arms import Contender, arms_of
from dprm.evaluate.compare import compare
from dprm.evaluate.study import Study
from dprm.host.metrics import Metric
from dprm.host.rollout import Decode
from tests.draws import taught
from tests.toy_host import ToyHost

SCRIPT = "<script>window.hacked = 1</script>"
UNCLOSED = "</script></td><b><img src=x onerror='window.hacked = 1'>"
TURNED = "abc\u202edef\u2067\u200f"
NAME = f'"{UNCLOSED}'


class HostileHost(ToyHost):
    """Its tokens are markup and direction marks; its canvas is two by two; so are its benefits named."""

    columns = 2
    variant = UNCLOSED
    metrics = (Metric(SCRIPT), Metric(TURNED))

    def judge(self, problems, tokens):
        return torch.stack([super().judge(problems, tokens).double(), (tokens == 0).double().mean(1)], dim=1)

    def show(self, token: int) -> str:
        return [SCRIPT, TURNED, "·"][token]


def hostile_runs(folder: Path) -> list[Path]:
    """A card, a study and a policy, saved."""
    host = HostileHost()
    learned = Contender(Decode(taught(dprm.Order(), 1)), {"estimator": SCRIPT, "calls": "700"})
    other = Contender(Decode(dprm.Order(signal="random")), {"estimator": UNCLOSED, "calls": "90"})
    arms = {**arms_of(host, ()), NAME: other, TURNED: learned}
    card = compare(host, host.problems("test", 24), arms, split=UNCLOSED, command=SCRIPT).card
    # A card may come from anywhere, and so may the words of its verdict.
    card = replace(card, verdict={"verdict": SCRIPT, "reason": UNCLOSED, "arm": NAME, "evidence": [SCRIPT]})
    card.save(folder / f"card {UNCLOSED.replace('/', '')}.json")
    curve = {"1": 0.2, "4": 0.5}
    condition = {"arm": NAME, "order": SCRIPT, "width": 1}
    Study(
        host=SCRIPT,
        split=UNCLOSED,
        problems={TURNED: "0"},
        count=3,
        seed=0,
        resamples=10,
        arms={NAME: {"law": SCRIPT}},
        results=[{**condition, "solved": 0.5, "low": 0.4, "high": 0.6, SCRIPT: UNCLOSED}],
        differences=[],
        audit=[{**condition, SCRIPT: {"mean": 0.5, UNCLOSED: SCRIPT}}],
        command=UNCLOSED,
        passk={
            f"{NAME} by {SCRIPT}": {TURNED: {"unbiased": curve, "first": curve}},
            TURNED: {SCRIPT: {"first": curve}},
        },
    ).save(folder / "study.json")
    taught(dprm.Order(phases=2, bins=3), 1).policy(host=SCRIPT, estimator=TURNED).save(folder / "learned.dprm")
    return sorted(folder.iterdir())
