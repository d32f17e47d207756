"""What is kept of every caption: the shared canvas by its hash, the five positions, their scores, the path.

Of the first captions the canvases are kept as well, for pictures. `results/omni-paths-SPLIT.json` is written by

    python -m dprm.hosts.omni.records test 512
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from torch import Tensor

from dprm.host.host import Host, Problems
from dprm.hosts.omni import canvas
from dprm.hosts.omni.captions import LONGEST
from dprm.hosts.omni.gamma import decoded
from dprm.hosts.omni.intervention import QUANTILES, SCALE, STEP, Paths, chosen, chosen_gamma
from dprm.order.files import write_whole

COMMAND = "python -m dprm.hosts.omni.records"
KIND = "interventions"
# Captions whose canvases are kept: the first in which another path was chosen.
PICTURED = 4


def records(host: Host, problems: Problems, five: Paths, gamma: float) -> list[dict[str, Any]]:
    """One entry a caption."""
    scores = five.scores(host, problems)
    reward = host.reward(scores.flatten(0, 1)).view(len(five), -1)
    index = chosen(five.native, reward, gamma)
    names = [metric.name for metric in host.judged]
    entries, pictured = [], 0
    for row, caption in enumerate(problems.facts):
        best = int(index[row])
        entry: dict[str, Any] = {
            "caption": str(caption),
            "canvas": hashlib.sha256(five.canvas[row].numpy().tobytes()).hexdigest()[:16],
            "places": [place(position) for position in five.position[row].tolist()],
            "native": [round(value, 6) for value in five.native[row].tolist()],
            "chosen": best,
            **{
                name: [round(value, 4) for value in scores[row, :, column].tolist()]
                for column, name in enumerate(names)
            },
        }
        if best and pictured < PICTURED:
            pictured += 1
            ends = five.tokens[row]
            entry["pictures"] = [written(five.canvas[row]), written(ends[0]), written(ends[best])]
        entries.append(entry)
    return entries


def place(position: int) -> list[int] | int:
    """Row and column of a code; the slot of the template of a format token."""
    code = position - canvas.FIRST
    return [code // canvas.SIDE, code % canvas.SIDE] if 0 <= code < canvas.SIDE**2 else position - LONGEST


def written(tokens: Tensor) -> str:
    """The codes of a canvas [L] in letters, row by row; `·` where none is."""
    codes = tokens[canvas.FIRST : canvas.FIRST + canvas.SIDE**2].tolist()
    return "".join(canvas.LETTERS[code] if code < canvas.CODES else "·" for code in codes)


def main() -> None:
    """Decode a split, or take what is kept of it, and write."""
    from dprm.hosts import load

    split, count = sys.argv[1], int(sys.argv[2])
    host = load("omni", compiled="--compile" in sys.argv)
    problems = host.problems(split, count)
    facts: dict[str, Any] = {
        "kind": KIND,
        "host": host.name,
        "command": f"{COMMAND} {split} {count}",
        "split": split,
        "weights": host.weights,
    }
    facts |= {"problems": problems.digest, "step": STEP, "quantiles": list(QUANTILES), "scale": SCALE}
    gamma = chosen_gamma()
    entries = records(host, problems, decoded(host, problems), gamma)
    text = json.dumps({**facts, "gamma": gamma, "captions": []})[:-2]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    write_whole(Path(f"results/omni-paths-{split}.json"), f"{text}\n{lines}\n]}}\n".encode())


if __name__ == "__main__":
    main()
