"""Compare ways of answering on one host: the same problems, the same random streams, intervals as the host declares.

Finished batches are kept in a folder, so a comparison that is killed goes on where it was and ends in the same card,
but for the seconds, which are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dprm.evaluate.arms import Contender
from dprm.evaluate.audit import Means, means_of, summarised
from dprm.evaluate.card import Arm, Card
from dprm.evaluate.diagnostics import terminal_sensitivity
from dprm.evaluate.divergence import divergence
from dprm.evaluate.estimates import judged_again
from dprm.evaluate.measure import measured, set_estimates
from dprm.evaluate.mechanism import cases, mechanism
from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.parts import by_part
from dprm.evaluate.replays import partings, replays
from dprm.evaluate.verdict import CHOOSING
from dprm.fit.seen import FITTED, SELECTED, first_seen
from dprm.host.decoded import decoded, plain_name
from dprm.host.engine import Engine
from dprm.host.host import Host, Problems
from dprm.host.identity import model_word
from dprm.host.rollout import Rollout
from dprm.order import Order
from dprm.order.checks import check_count
from dprm.train.task import successes


@dataclass(frozen=True)
class Comparison:
    """What `compare` gives.

    Attributes:
        card: the result. outcomes: problem by problem. rollouts: by arm, one a decode seed.
    """

    card: Card
    outcomes: Outcomes
    rollouts: Mapping[str, Sequence[Rollout]]

    def save(self, path: Path) -> None:
        """The card, and beside it the outcomes that its intervals come from."""
        self.card.save(path, self.outcomes)

    def write_answers(self, host: Host, problems: Problems, folder: Path) -> list[Path]:
        """What every arm made under all decode seeds, a file an arm, as `Host.write` writes it; tables where it can."""
        ending = ".csv" if ".csv" in host.endings else next(iter(host.endings), "")
        paths = []
        for name, seeds in self.rollouts.items():
            rows = torch.arange(len(problems)).repeat(len(seeds))
            paths.append(folder / f"{plain_name(name)}{ending}")
            host.write(paths[-1], problems[rows], Rollout.joined(seeds))
        return paths


def compare(
    host: Host,
    problems: Problems,
    arms: Mapping[str, Contender],
    *,
    split: str = "select",
    seeds: Sequence[int] = (0,),
    rows: int = 64,
    resamples: int = 5000,
    folder: Path | None = None,
    on: Engine | None = None,
    command: str = "",
    notes: Mapping[str, Any] | None = None,
    on_batch: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Answer all problems in every way.

    Args:
        arms: by name, see `arms_of`; the first is the reference, with which the others are compared.
        split: where the problems come from, for the card.
        seeds: of decoding; each answers all problems once. The first is also that of the intervals.
        rows: problems decoded together; changes the time, not the result.
        folder: where finished batches are kept; None keeps none.
        on: the engine that does the work; None: this process.
        on_batch: called with (arm, answers done, all seeds together).
    """
    if not arms or not seeds:
        raise ValueError(f"{'seeds' if arms else 'arms'} is empty: there is nothing to compare")
    for each in seeds:
        check_count("seeds", each, 0)
    for name, contender in arms.items():
        _check_unseen(problems, split, name, contender.fit)
    reference = next(iter(arms))
    ways = {name: contender.way for name, contender in arms.items()}
    rollouts: dict[str, list[Rollout]] = {name: [] for name in arms}
    for turn, seed in enumerate(seeds):

        def on_part(name: str, done: int, before: int = turn * len(problems)) -> None:
            if on_batch is not None:
                on_batch(name, before + done)

        answers = decoded(host, problems, ways, seed=seed, rows=rows, folder=folder, on=on, on_batch=on_part)
        for name, rollout in answers.items():
            rollouts[name].append(rollout)
    control = rollouts[reference]
    by_name: dict[str, Arm] = {}
    for name, contender in arms.items():
        arm = measured(rollouts[name], control, contender.order)
        arm.fit = {note: text for note, text in contender.fit.items() if note not in (FITTED, SELECTED)}
        arm.ablates = contender.ablates
        arm.metrics = set_estimates(host, problems, rollouts[name], control)
        by_name[name] = arm
    _add_traces(host, problems, arms, rollouts, by_name, reference, resamples, seeds[0])
    first = {name: answers[0] for name, answers in rollouts.items()}
    parts = by_part(host, problems, rollouts, reference, resamples, seeds[0])
    learned = {name: order for name, contender in arms.items() if (order := _learned(contender)) is not None}
    explained = {
        name: mechanism(host, problems, order, first[name], first[reference], seeds[0])
        for name, order in learned.items()
        if parts
    }
    shown = {name: cases(host, problems, (name, first[name]), (reference, first[reference])) for name in learned}
    gallery = {name: each for name, each in shown.items() if each}
    examples = {name: lines for name, each in first.items() if (lines := host.examples(problems, each.tokens))}
    card = Card(
        host=host.name,
        variant=host.variant,
        split=split,
        problems=problems.digest,
        count=len(problems),
        groups=len(set(problems.groups.tolist())),
        decoding=host.decoding.words(),
        metrics=list(host.metrics),
        preference=host.preference,
        paired=host.paired,
        seeds=list(seeds),
        resamples=resamples,
        reference=reference,
        arms=by_name,
        command=command,
        weights=model_word(host),
        device=problems.canvas.device.type,
        notes={
            **(notes or {}),
            "outputs": terminal_sensitivity(first).facts(),
            **({"examples": examples} if examples else {}),
            **({"parts": parts} if parts else {}),
            **({"mechanism": explained} if explained else {}),
            **({"gallery": gallery} if gallery else {}),
        },
        replays=replays(host, first, reference),
        partings=partings(first, reference),
    )
    outcomes = Outcomes.of(problems, rollouts)
    return Comparison(judged_again(card, outcomes), outcomes, rollouts)


def _check_unseen(problems: Problems, split: str, name: str, fit: Mapping[str, str]) -> None:
    """Refuse problems that a policy was learned or chosen on, unless the split says that they are such."""
    if split not in CHOOSING and fit.get("selected_on") == problems.digest:
        raise ValueError(f"problems are those of select on which {name} was chosen: they are no {split}")
    allowed = {SELECTED: CHOOSING, FITTED: ("train", "fit")}
    for note, how in ((FITTED, "was fitted"), (SELECTED, "was chosen")):
        row = None if split in allowed[note] else first_seen(fit.get(note, ""), problems.groups)
        if row is not None:
            raise ValueError(f"problems[row {row}] is one on which {name} {how}: they are no {split}")


def _learned(contender: Contender) -> Order | None:
    """The order of an arm that has values and is no control of another."""
    order = contender.order
    if order is None or contender.ablates is not None or not order.guidance or not contender.fit:
        return None
    return order


def _add_traces(
    host: Host,
    problems: Problems,
    contenders: Mapping[str, Contender],
    rollouts: Mapping[str, Sequence[Rollout]],
    arms: Mapping[str, Arm],
    reference: str,
    resamples: int,
    seed: int,
) -> None:
    """What reveals looked like: the order audit, and where each arm first parts from the reference."""
    how: dict[str, Any] = {"resamples": resamples, "seed": seed}
    rewards = {name: torch.stack([host.reward(run.scores) for run in runs]) for name, runs in rollouts.items()}
    audits: dict[str, list[Means]] = {}
    if host.audit is not None:
        for name, runs in rollouts.items():
            audits[name] = [
                means_of(run.step_map, run.tokens, successes(host, run.scores), **host.audit) for run in runs
            ]
    for name, arm in arms.items():
        if name in audits:
            usual = None if name == reference else audits[reference]
            arm.diagnostics["audit"] = _rounded(summarised(audits[name], usual, **how))
        if name != reference:
            arm.diagnostics["divergence"] = divergence(
                rollouts[name],
                rollouts[reference],
                rewards[name],
                rewards[reference],
                contenders[name].order,
                groups=problems.groups,
                **how,
            )


def _rounded(audit: dict[str, Any]) -> dict[str, Any]:
    """Five digits say all that an audit can."""
    return {name: {key: round(value, 5) for key, value in entry.items()} for name, entry in audit.items()}
