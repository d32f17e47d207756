"""A host and runs whose every text tries to be something else."""

from __future__ import annotations

from pathlib import Path

import dprm
from dprm.evaluate.compare import compare
from dprm.evaluate.study import Study
from tests.draws import taught
from tests.toy_host import ToyHost

SCRIPT = "<script>window.hacked = 1</script>"
UNCLOSED = "</script></td><b><img src=x onerror='window.hacked = 1'>"
TURNED = "abc\u202edef\u2067\u200f"
NAME = f'"{UNCLOSED}'


class HostileHost(ToyHost):
    """Its tokens are markup and direction marks; its canvas is two by two."""

    columns = 2

    def show(self, token: int) -> str:
        return [SCRIPT, TURNED, "·"][token]


def hostile_runs(folder: Path) -> list[Path]:
    """A card, a study and a policy, saved."""
    host = HostileHost()
    orders = {"confidence": dprm.Order(), NAME: dprm.Order(signal="random"), TURNED: taught(dprm.Order(), 1)}
    card, _ = compare(host, host.problems("test", 24), orders, split=UNCLOSED, command=SCRIPT)
    card.notes["objectives"] = {NAME: {SCRIPT: 0.1, TURNED: 0.9}, "confidence": {SCRIPT: 0.5, TURNED: 0.2}}
    card.save(folder / f"card {UNCLOSED.replace('/', '')}.json")
    curve = {"1": 0.2, "4": 0.5}
    Study(
        host=SCRIPT,
        split=UNCLOSED,
        problems={TURNED: "0"},
        count=3,
        seed=0,
        resamples=10,
        arms={NAME: {"law": SCRIPT}},
        results=[{"arm": NAME, "solved": 0.5, "low": 0.4, "high": 0.6, SCRIPT: UNCLOSED}],
        differences=[],
        command=UNCLOSED,
        passk={NAME: {TURNED: {"unbiased": curve, "first": curve}}},
    ).save(folder / "study.json")
    taught(dprm.Order(phases=2, bins=3), 1).policy(host=SCRIPT, estimator=TURNED).save(folder / "learned.dprm")
    return sorted(folder.iterdir())
