"""Post-train Countdown weights in three arms on one GPU, and measure pass@K.

    PYTHONPATH=src OUT=results python recipes/dmpo.py --start countdown-progressive.safetensors --minutes 2.5

The dearest arm, `dprm-progressive`, comes first: the number of updates that fits into its minutes is that of all
others. All arms answer the same prompts. Writes to the folder OUT, each as soon as it is known:

    ARM.safetensors       the averaged weights in half precision, with plan, recipe and last scores in the header
    dprm.policy           the order that `dprm-progressive` learned
    success.safetensors   which samples solved their problem: for every arm and size [problems, samples]
    results.json          the log of every arm (loss, gradient norm, mean reward of the rollouts) and, at the end,
                          pass@K by size, `all` and `hard` (5 and 6 numbers), and paired differences with intervals

Checkpoints are kept under --work: a command that is killed goes on from there when it is run again.
`--tiny` runs everything end to end in seconds on a CPU, from weights that know nothing unless --start is given.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm import Order
from dprm.evaluate.passk import ESTIMATORS, KS, paired_pass_interval, pass_interval, pass_table
from dprm.hosts import checkpoint
from dprm.hosts.denoiser import Denoiser, load_weights, save_weights
from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.dmpo.posttraining import ARMS, PostTraining, deployed, order_of
from dprm.hosts.dmpo.prompts import HostPrompts
from dprm.hosts.dmpo.rollouts import Plan
from dprm.hosts.dmpo.sampling import success_matrix
from dprm.hosts.recipe import Recipe
from dprm.hosts.transformer import Config, Transformer

DPRM = "dprm-progressive"
# The same weights with the largest scores instead of shortlists, and without learned values: what training, values and
# exploration each contribute.
DPRM_BY_TOP_M, DPRM_BY_CONFIDENCE = f"{DPRM} by top_m", f"{DPRM} by confidence"
CONTRASTS = (
    *((arm, "start") for arm in ARMS),
    ("confidence-progressive", "random"),
    (DPRM, "random"),
    (DPRM, "confidence-progressive"),
    (DPRM_BY_CONFIDENCE, "confidence-progressive"),
    (DPRM, DPRM_BY_CONFIDENCE),
    (DPRM_BY_TOP_M, DPRM_BY_CONFIDENCE),
)


class Evaluation:
    """Success matrices of weights under orders, kept as they come, and what follows from them."""

    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.path = arguments.work / "success.safetensors"
        self.found: dict[str, Tensor] = checkpoint.load(self.path)[0] if self.path.is_file() else {}
        self.problems = {
            n: problems.generate("select", arguments.problems, n, seed=1, distinct=True).listed()
            for n in arguments.evaluate
        }

    def add(self, name: str, model: Transformer, order: Order) -> None:
        """Decode every size that is not there yet."""
        arguments = self.arguments
        for n, listed in self.problems.items():
            key = f"{name}|{n}"
            if key in self.found:
                continue
            start = time.monotonic()
            host = hosted(model)
            found = success_matrix(
                host,
                host.posed(listed),
                order,
                arguments.samples,
                budget=arguments.width,
                temperature=arguments.temperature,
                seed=arguments.seed,
                rows=arguments.rows,
            )
            self.found[key] = found.to(torch.uint8)
            for path in (self.path, arguments.out / self.path.name):
                checkpoint.save(path, self.found, {"problems": "select, seed 1", "samples": arguments.samples})
            share = found.double().mean().item()
            print(f"{name}: {n} numbers, pass@1 {share:.4f}, {time.monotonic() - start:.1f} s", flush=True)

    def of(self, name: str, which: str) -> Tensor | None:
        """[N,n] bool: the successes of some weights on a size, on `all` sizes or the `hard` ones, if they are known."""
        sizes = [n for n in self.problems if which in ("all", str(n)) or (which == "hard" and n >= 5)]
        parts = [self.found.get(f"{name}|{n}") for n in sizes]
        known = [part.bool() for part in parts if part is not None]
        return torch.cat(known) if known and len(known) == len(parts) else None

    def results(self) -> dict[str, Any]:
        """pass@K of everything known, and the paired differences."""
        ks = tuple(k for k in KS if k <= self.arguments.samples)
        which = [*(str(n) for n in self.problems), "all", "hard"]
        names = list(dict.fromkeys(key.split("|")[0] for key in self.found))
        tables: dict[str, Any] = {}
        for name in names:
            known = [(part, found) for part in which if (found := self.of(name, part)) is not None]
            tables[name] = {
                part: pass_table(found, ks)
                | {"interval": {kind: pass_interval(found, ks, kind)._asdict() for kind in ESTIMATORS}}
                for part, found in known
            }
        differences = []
        for one, other in CONTRASTS:
            for part in which:
                treated, control = self.of(one, part), self.of(other, part)
                if treated is not None and control is not None:
                    pair = {"treated": one, "control": other, "problems": part}
                    delta = {kind: paired_pass_interval(treated, control, ks, kind)._asdict() for kind in ESTIMATORS}
                    differences.append({**pair, **delta})
        return {"ks": ks, "pass": tables, "differences": differences}


def hosted(model: Transformer) -> Countdown:
    """The host with a model."""
    return Countdown(Denoiser(model), device=next(model.parameters()).device)


def train(arm: str, updates: int | None, start: Transformer, arguments: argparse.Namespace) -> PostTraining:
    """One arm, from the start weights to its own."""
    tiny, host = arguments.tiny, hosted(start)
    plan = Plan(
        prompts=2 if tiny else arguments.prompts,
        generations=4 if tiny else arguments.generations,
        width=arguments.width,
        temperature=arguments.temperature,
        bounds=1 if tiny else 4,
        sync=arguments.sync,
        seed=arguments.seed,
    )
    recipe = Recipe(
        rows=plan.prompts * plan.generations * plan.replicates,
        steps=updates,
        minutes=arguments.minutes if updates is None else None,
        rate=arguments.rate,
        # Whole refreshes, so that the speed measured meanwhile is that of the whole run.
        warm=6 * plan.reuse,
        decay=0.0,
        average=arguments.average,
        log_every=plan.reuse,
        evaluations=2 if tiny else 8,
        compiled=arguments.compiled,
        seed=arguments.seed,
    )
    # Another seed than that of the SFT data: of the same split, but hardly ever the same problems.
    stock = [problems.generate("train", count, n, arguments.seed + 1).listed() for n, count in arguments.sizes.items()]
    prompts = HostPrompts(host, host.posed([problem for part in stock for problem in part]), arguments.seed)
    warm, switch, ready = arguments.gate
    order = order_of(
        arm,
        warm=warm,
        switch=switch,
        ready=ready,
        rule=arguments.rule,
        beta=arguments.beta,
        guidance=arguments.guidance,
        aux=1 if arguments.paper_cells else host.aux_states,
    )
    folder = arguments.work / arm
    few = host.posed(problems.generate("select", 4 if tiny else 128, 4, seed=2, distinct=True).listed())

    def log() -> list[dict[str, float]]:
        return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]

    def evaluate(average: Transformer) -> dict[str, float]:
        earned = [line["reward"] for line in log() if "reward" in line][-20:]
        solved = success_matrix(hosted(average), few, Order(), 1, budget=plan.width, temperature=0.0)
        return {"reward_lately": sum(earned) / len(earned), "greedy_4": solved.double().mean().item()}

    run = PostTraining(start, prompts, arm, order, plan, recipe, folder, aux=host.aux, evaluate=evaluate)
    scores = run.run()
    facts = {"name": arm, "plan": asdict(plan), "recipe": asdict(recipe), "updates": run.step, "scores": scores}
    save_weights(arguments.out / f"{arm}.safetensors", run.average, facts)
    if arm == DPRM:
        order.policy(host="dmpo", arm=arm).save(arguments.out / "dprm.policy")
    write(arguments, {"arms": {arm: {**facts, "log": log()}}})
    return run


def write(arguments: argparse.Namespace, news: dict[str, Any]) -> None:
    """Add to results.json; a kill leaves the old file or the new one."""
    path = arguments.out / "results.json"
    results = json.loads(path.read_text()) if path.is_file() else {}
    arms = {**results.get("arms", {}), **news.pop("arms", {})}
    part = path.with_suffix(".part")
    part.write_text(json.dumps({**results, **news, "arms": arms}, indent=1))
    os.replace(part, path)


def same_settings(arguments: argparse.Namespace) -> None:
    """A work folder holds one experiment: refuse to go on in it with other settings."""
    free = ("out", "work", "rows")
    settings = {name: str(value) for name, value in sorted(vars(arguments).items()) if name not in free}
    path = arguments.work / "settings.json"
    if path.is_file() and json.loads(path.read_text()) != settings:
        raise SystemExit(f"{arguments.work} was begun with other settings, see {path}: choose another --work")
    arguments.work.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=1))


def size(text: str) -> tuple[int, int]:
    """NUMBERS:COUNT."""
    numbers, _, count = text.partition(":")
    return int(numbers), int(count)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--start", type=Path, help="SFT weights of the Countdown host, as `dprm train dmpo` writes them"
    )
    parser.add_argument("--minutes", type=float, default=2.5, help="time limit of the first arm, without pass@K")
    parser.add_argument("--updates", type=int, help="number of updates of every arm, instead of a time limit")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "results")))
    parser.add_argument("--work", type=Path, default=Path("runs/dmpo"), help="checkpoints")
    parser.add_argument("--prompts", type=int, default=32, help="prompts of a refresh")
    parser.add_argument("--generations", type=int, default=16, help="rollouts of a prompt")
    parser.add_argument(
        "--sizes",
        type=size,
        nargs="+",
        default=[(3, 2_000), (4, 14_000), (5, 4_000)],
        help="NUMBERS:COUNT, how many problems of each size prompts are drawn from",
    )
    parser.add_argument("--rate", type=float, default=3e-5, help="peak learning rate")
    parser.add_argument("--average", type=float, default=0.99, help="decay of the weight average")
    parser.add_argument("--sync", type=int, default=0, help="refreshes between references; 0: the start stays it")
    parser.add_argument("--width", type=int, default=2, help="positions a step")
    parser.add_argument("--temperature", type=float, default=1.0, help="of rollouts and of pass@K")
    parser.add_argument("--gate", type=float, nargs=3, default=(40, 160, 128), help="warm, switch (refreshes), ready")
    parser.add_argument("--rule", choices=["shortlist_top_m", "soft_bon"], default="shortlist_top_m")
    parser.add_argument("--beta", type=float, default=1.0)
    parser.add_argument("--guidance", type=float, default=1.0)
    parser.add_argument("--paper-cells", action="store_true", help="phase and confidence only, no token classes")
    parser.add_argument(
        "--evaluate", type=int, nargs="+", default=[3, 4, 5, 6], help="numbers of the problems of pass@K"
    )
    parser.add_argument("--problems", type=int, default=256, help="problems of each size")
    parser.add_argument("--samples", type=int, default=32, help="samples of each problem")
    parser.add_argument("--rows", type=int, default=4096, help="samples decoded at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="torch.compile the updates")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal in seconds")
    arguments = parser.parse_args()
    if arguments.start is None and not arguments.tiny:
        parser.error("--start is missing: the SFT weights to begin with")
    arguments.sizes = dict(arguments.sizes)
    if arguments.tiny:
        arguments.updates, arguments.problems, arguments.samples = arguments.updates or 10, 2, 4
        arguments.sizes = dict.fromkeys(arguments.sizes, 10)
        arguments.gate = (0, 1, 8)
    return arguments


def main() -> None:
    arguments = parsed()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    same_settings(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.start is None:
        start = Transformer(Config(canvas.VOCABULARY, 32, 1, 1, sides=canvas.SIDES)).to(device).requires_grad_(False)
    else:
        start = load_weights(arguments.start, device)[0]
    evaluation = Evaluation(arguments)
    evaluation.add("start", start, Order())
    updates = arguments.updates
    for arm in reversed(ARMS):
        run = train(arm, updates, start, arguments)
        updates = run.steps
        # What is measured is what was written.
        model = load_weights(arguments.out / f"{arm}.safetensors", device)[0]
        evaluation.add(arm, model, deployed(run.rollouts.order))
        if arm == DPRM:
            evaluation.add(DPRM_BY_TOP_M, model, deployed(run.rollouts.order, "top_m"))
            evaluation.add(DPRM_BY_CONFIDENCE, model, Order())
    results = evaluation.results()
    write(arguments, results)
    for difference in results["differences"]:
        if difference["problems"] in ("all", "hard"):
            names = f"{difference['treated']} − {difference['control']}, {difference['problems']}"
            found = difference["unbiased"]
            print(f"{names}: {found['estimate']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]", flush=True)


if __name__ == "__main__":
    main()
