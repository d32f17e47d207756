"""The DMPO study: three post-training arms from one SFT start at equal updates, judged by pass@K.

The dearest arm, `dprm-progressive`, comes first: where a time limit is given, the number of updates that fits into it
is that of all others. All arms answer the same prompts, and all samples of pass@K draw from the same random streams.
Everything that was made stays in a folder: a study that is killed goes on where it was and ends in the same card.

    ARM.safetensors       the averaged weights in half precision, with plan, recipe and last scores in the header
    dprm.policy           the order that `dprm-progressive` learned
    success.safetensors   which samples solved their problem: for every arm and size [problems, samples]
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from dprm.evaluate.study import Study
from dprm.host.weights import sha256
from dprm.hosts.dmpo import problems
from dprm.hosts.dmpo.host import SIZES, Countdown
from dprm.hosts.dmpo.passing import DPRM, DPRM_BY_CONFIDENCE, DPRM_BY_TOP_M, START, START_BY_SHORTLIST, Passing
from dprm.hosts.dmpo.sampling import success_matrix
from dprm.order import Order
from dprm.order.files import write_whole
from dprm.train.denoiser import Denoiser, load_weights, save_weights
from dprm.train.posttraining import ARMS, PostTraining, deployed, opened, order_of
from dprm.train.prompts import HostPrompts
from dprm.train.recipe import Recipe
from dprm.train.rollouts import Plan
from dprm.train.transformer import Transformer

# The gate of an arm whose number of updates is known: a tenth and four tenths of its refreshes, as in the paper.
WARM, SWITCH = 0.1, 0.4


@dataclass(frozen=True)
class Setting:
    """The numbers of a study; what is not here is settled in `Plan`, `Recipe` and `order_of`.

    Attributes:
        updates: of every arm; None: as many as the first arm makes in `minutes`.
        prompts, generations: prompts of a refresh, and rollouts of each.
        stock: how many training problems of each size prompts are drawn from. Sizes that are not in it are hard twice:
            larger, and outside of post-training.
        rate, average: peak learning rate, and decay of the weight average.
        negative: λ of the objective. sync: see `Plan`.
        width, temperature: positions a step, and temperature, of rollouts and of pass@K.
        ready: evidence that a cell needs. bounds: masks on which log_rnd is estimated.
        sizes, limit, samples: numbers given in the problems of pass@K, problems of each size, samples of each problem.
        checked: problems of the evaluations under way.
    """

    updates: int | None = None
    minutes: float | None = None
    prompts: int = 32
    generations: int = 16
    stock: dict[int, int] = field(default_factory=lambda: {3: 4_000, 4: 12_000})
    rate: float = 1e-5
    average: float = 0.99
    negative: float = 0.7
    sync: int = 8
    width: int = 2
    temperature: float = 1.0
    ready: float = 128
    bounds: int = 4
    sizes: tuple[int, ...] = SIZES
    limit: int = 256
    samples: int = 32
    checked: int = 128
    split: str = "test"
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.updates is None) == (self.minutes is None):
            raise ValueError(f"updates is {self.updates} and minutes is {self.minutes}: expected exactly one of them")

    def rehearsal(self) -> Setting:
        """The same in seconds; what comes out means nothing."""
        return replace(
            self,
            updates=10 if self.updates is None else self.updates,
            minutes=None,
            prompts=2,
            generations=4,
            stock=dict.fromkeys(self.stock, 10),
            ready=8,
            bounds=1,
            limit=2,
            samples=4,
            checked=4,
        )

    def plan(self) -> Plan:
        """How rollouts are made and used."""
        return Plan(
            prompts=self.prompts,
            generations=self.generations,
            width=self.width,
            temperature=self.temperature,
            bounds=self.bounds,
            sync=self.sync,
            negative=self.negative,
            seed=self.seed,
        )

    def recipe(self, updates: int | None) -> Recipe:
        """The optimiser's numbers for an arm of so many updates, or for the time limit."""
        plan = self.plan()
        return Recipe(
            rows=plan.prompts * plan.generations * plan.replicates,
            steps=updates,
            minutes=self.minutes if updates is None else None,
            rate=self.rate,
            # Whole refreshes, so that the speed measured meanwhile is that of the whole run.
            warm=6 * plan.reuse,
            decay=0.0,
            average=self.average,
            log_every=plan.reuse,
            evaluations=8,
            seed=self.seed,
        )

    def order(self, arm: str, aux: int) -> Order:
        """The order that an arm starts with."""
        if self.updates is None:
            return order_of(arm, ready=self.ready, aux=aux)
        refreshes = self.updates / self.plan().reuse
        return order_of(arm, warm=WARM * refreshes, switch=SWITCH * refreshes, ready=self.ready, aux=aux)

    def shortlists(self, aux: int) -> Order:
        """The order of `dprm-progressive` with its gate open and nothing learned: it explores, and has no values."""
        return opened(self.order(DPRM, aux))


def study(
    start: Path | Transformer,
    setting: Setting,
    *,
    folder: Path,
    device: torch.device | str = "cpu",
    rows: int = 4096,
    resamples: int = 5000,
    command: str = "",
) -> Study:
    """Post-train every arm from the start and measure pass@K of all of them.

    Args:
        start: SFT weights, a file or, for a rehearsal, a model. rows: samples decoded at a time.
        folder: checkpoints, weights and successes.
    """
    digest = sha256(start)[:16] if isinstance(start, Path) else "untrained"
    _same_study(folder, setting, digest)
    model = (load_weights(start, device)[0] if isinstance(start, Path) else start.to(device)).requires_grad_(False)
    passing = Passing(setting, folder, rows)
    passing.measure(START, hosted(model), Order())
    passing.measure(START_BY_SHORTLIST, hosted(model), setting.shortlists(Countdown.aux_states))
    arms: dict[str, dict[str, Any]] = {name: {"updates": 0, "weights": digest} for name in (START, START_BY_SHORTLIST)}
    updates = setting.updates
    for arm in reversed(ARMS):
        trained, order, arms[arm] = _arm(arm, updates, model, setting, folder)
        updates = arms[arm]["updates"]
        passing.measure(arm, hosted(trained), deployed(order))
        if arm == DPRM:
            others = {DPRM_BY_TOP_M: deployed(order, "top_m"), DPRM_BY_CONFIDENCE: Order()}
            for name, other in others.items():
                passing.measure(name, hosted(trained), other)
                arms[name] = {fact: arms[arm][fact] for fact in ("updates", "weights")}
    listed = passing.listed
    return Study(
        host="dmpo",
        split=setting.split,
        problems={str(size): hosted(model).posed(listed[size]).digest for size in listed},
        count=sum(map(len, listed.values())),
        seed=setting.seed,
        resamples=resamples,
        arms=arms,
        results=passing.results(resamples),
        differences=passing.differences(resamples),
        passk=passing.tables(),
        command=command,
        notes={
            "difference": "mean pass@K over K",
            "ks": list(passing.ks),
            "setting": asdict(setting),
            "plan": asdict(setting.plan()),
            "recipe": asdict(setting.recipe(setting.updates)),
        },
    )


def hosted(model: Transformer) -> Countdown:
    """The host with a model."""
    return Countdown(Denoiser(model), device=next(model.parameters()).device)


def _arm(
    arm: str, updates: int | None, start: Transformer, setting: Setting, folder: Path
) -> tuple[Transformer, Order, dict[str, Any]]:
    """One arm from the start weights to its own: the weights as they were written, its order, and its account."""
    host, own = hosted(start), folder / arm
    plan, recipe = setting.plan(), setting.recipe(updates)
    # Another seed than that of the SFT data: of the same split, but hardly ever the same problems.
    stock = [problems.generate("train", count, n, setting.seed + 1).listed() for n, count in setting.stock.items()]
    prompts = HostPrompts(host, host.posed([problem for part in stock for problem in part]), setting.seed)
    order = setting.order(arm, host.aux_states)
    evaluate = _checks(host, own / "log.jsonl", setting)
    run = PostTraining(start, prompts, arm, order, plan, recipe, own, aux=host.aux, evaluate=evaluate)
    scores = run.run()
    account: dict[str, Any] = {"updates": run.step, "scores": scores}
    path = folder / f"{arm}.safetensors"
    save_weights(path, run.average, {"name": arm, "plan": asdict(plan), "recipe": asdict(recipe), **account})
    account |= {"rewards": _by_tenths(own / "log.jsonl", run.step), "weights": sha256(path)[:16]}
    if arm == DPRM:
        policy = order.policy(host="dmpo", arm=arm)
        policy.save(folder / "dprm.policy")
        account["policy"] = policy.digest
    # What is measured is what was written.
    return load_weights(path, run.device)[0], order, account


def _checks(host: Countdown, log: Path, setting: Setting) -> Callable[[Transformer], dict[str, float]]:
    """What is looked at under way: the reward of recent rollouts, and greedy decoding of held-out problems."""
    made = problems.generate("select", setting.checked, 4, seed=2, distinct=True)
    few = host.posed(made.listed())

    def evaluate(average: Transformer) -> dict[str, float]:
        earned = [entry["reward"] for entry in _entries(log) if "reward" in entry][-20:]
        solved = success_matrix(hosted(average), few, Order(), 1, budget=setting.width, temperature=0.0)
        return {"reward_lately": sum(earned) / len(earned), "greedy_4": solved.double().mean().item()}

    return evaluate


def _entries(log: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def _by_tenths(log: Path, updates: int) -> list[float | None]:
    """Mean reward of the rollouts in every tenth of a training; None where a short one has no refresh."""
    parts: list[list[float]] = [[] for _ in range(10)]
    for entry in _entries(log):
        if "reward" in entry:
            parts[min(9, int(10 * (entry["step"] - 1) / updates))].append(entry["reward"])
    return [sum(part) / len(part) if part else None for part in parts]


def _same_study(folder: Path, setting: Setting, start: str) -> None:
    """A folder holds one study: refuse to go on in it with another setting."""
    path = folder / "setting.json"
    text = json.dumps({**asdict(setting), "start": start}, indent=1)
    if path.is_file() and path.read_text() != text:
        raise ValueError(f"{folder} was begun with another setting, see {path}: choose another folder")
    write_whole(path, text.encode())
