"""The Prism host: Countdown answered by search, judged on the way by the model's own verdict.

The Countdown model is trained on with a second skill: after a whole response there is one more position, where it says
whether the response is right. It learns that from its own samples, whole ones and what it would say in the middle of a
decoding, labelled by the exact verifier; half of every batch is Countdown as before. The search sees the verdicts only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.decode.counts import Fixed, Threshold
from dprm.decode.loop import Step, advance, begin
from dprm.host import weights
from dprm.host.host import Host, Problems
from dprm.hosts.dmpo import canvas
from dprm.hosts.dmpo.host import TASK as COUNTDOWN
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.dmpo.problems import CountdownData
from dprm.order.files import read_tensors, write_tensors
from dprm.order.noise import mix_rows
from dprm.search import Schedule, Search, VerdictSlot, searched
from dprm.search.around import fresh_order
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.transformer import Transformer

# What the model says at the slot behind the response: the digits 1 and 0.
YES, NO = 1, 0
# Everything surer than this is revealed at once, and at least one position a step.
SURE = 0.85
TEMPERATURE = 0.7
# Problems that are sampled for verdicts, the steps after which their fills are judged, and problems sampled together.
SAMPLED, FILLS, TOGETHER = 10_000, (2, 4, 8, 12), 500


def prism(model: Transformer, device: torch.device | str = "cpu") -> Host:
    """Countdown with a search around it, and the arms that the paper compares."""
    host = Countdown(Denoiser(model), device=device)
    host = host.with_decoding(count=Threshold(SURE))
    host.name, host.domain = "prism", "Countdown, answered by search with self-verification"
    host.ordered = "reveal positions in search"
    verifier = VerdictSlot(canvas.MASK, YES, NO)
    host = searched(host, verifier=verifier, answer_of=_response, temperature=TEMPERATURE)
    base = Search(verifier, answer_of=_response, temperature=TEMPERATURE)
    fresh = replace(base, order=fresh_order(), fresh=True)
    # The gate of the paper is in steps of its 32 a block; here it is at the same shares of a decoding.
    early = replace(base, order=fresh_order(warm=3, switch=10), fresh=True)
    wider = {f"confidence, {n} wide": replace(base, schedule=Schedule(width=n)) for n in (8, 24, 32)}
    singly = {"confidence, one a step": base, "dprm, fresh table, one a step": fresh}
    host.ways = {
        **host.ways,
        "dprm, fresh table, early gate": early,
        **wider,
        **{name: replace(way, count=Fixed(1)) for name, way in singly.items()},
    }
    return host


def _response(tokens: Tensor) -> str:
    return canvas.read_response(tokens.tolist())


# ---- the verdict skill -----------------------------------------------------------------------------------------------


def sampled(host: Countdown, problems: Problems, seed: int = 0) -> tuple[Tensor, Tensor]:
    """tokens [n,77] uint8 of the model's own answers, whole and filled in the middle, and whether each is right [n]."""
    decoding = replace(host.decoding, temperature=TEMPERATURE, count=Threshold(SURE))
    fills: list[Tensor] = []

    def seen(step: Step) -> None:
        if len(fills) < len(FILLS) and int(step.state.step.max()) + 1 == FILLS[len(fills)]:
            whole = torch.zeros_like(problems.canvas)
            whole[step.state.row] = step.reading.tokens
            fills.append(whole)

    state = begin(problems.canvas, decoding, mix_rows(problems.key, seed), problems.context)
    tokens = advance(host.model(), state, decoding.order(), decoding, on_step=seen).tokens
    answers, right = [], []
    for each in (*fills, tokens):
        # Rows that ended earlier have no fill.
        rows = each.any(1).nonzero().flatten().cpu()
        answers.append(each.cpu()[rows].to(torch.uint8))
        right.append(host.scores(problems[rows], each.cpu()[rows])[:, 1] > 0)
    return torch.cat(answers), torch.cat(right)


class VerdictData:
    """Training sequences [B,78]: every other one is Countdown, the others are answers with the verdict to predict.

    Args:
        countdown: sequences of 77 positions. answers: [N,77] uint8. right: [N] bool.
    """

    mask_id = canvas.MASK

    def __init__(self, countdown: CountdownData, answers: Tensor, right: Tensor, seed: int, device: torch.device):
        self.countdown, self.seed, self.device = countdown, seed, device
        verdict = torch.where(right, YES, NO).to(torch.uint8)
        self.judged = torch.cat([answers, verdict.unsqueeze(1)], dim=1).to(device)

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        index = Draws("verdicts", self.seed, step, device=self.device).below(len(self.judged), rows // 2)
        judged = self.judged[index].long()
        clean, answer = self.countdown.batch(step, rows - rows // 2)
        clean = torch.cat([clean, torch.full_like(clean[:, :1], canvas.BLANK)], dim=1)
        asked = torch.zeros_like(judged, dtype=torch.bool)
        asked[:, -1] = True
        answer = torch.cat([answer, torch.zeros_like(answer[:, :1])], dim=1)
        return torch.cat([clean, judged]), torch.cat([answer, asked])


def _base(device: torch.device) -> Countdown:
    """The Countdown host with its committed weights."""
    path = weights.checked("dmpo.safetensors", "dprm train dmpo")
    host = COUNTDOWN.load(path, device)
    assert isinstance(host, Countdown)
    return host


def _data(seed: int, device: torch.device, work: Path) -> VerdictData:
    file = work / f"verdicts-{seed}-{SAMPLED}.safetensors"
    if not file.is_file():
        host, parts = _base(device), []
        model = host.model()
        if isinstance(model, Denoiser) and model.compilable:
            model.compile()
        for first in range(0, SAMPLED, TOGETHER):
            problems = host.problems("train", TOGETHER, seed=seed * SAMPLED + first + 1)
            parts.append(sampled(host, problems, seed))
        answers, right = (torch.cat(column) for column in zip(*parts, strict=True))
        write_tensors(file, {"answers": answers, "right": right}, {"kind": "dprm.verdicts"})
    tensors, _ = read_tensors(file, "dprm.verdicts")
    stock = CountdownData(dict.fromkeys((2, 3, 4, 5, 6), 100_000), seed, device)
    return VerdictData(stock, tensors["answers"], tensors["right"], seed, device)


def auc(host: Host, problems: Problems) -> dict[str, float]:
    """How well the verdict tells right answers from wrong ones: P(score of a right one > score of a wrong one)."""
    assert isinstance(host, Countdown)
    answers, right = sampled(host, problems)
    slot = VerdictSlot(canvas.MASK, YES, NO)
    tokens = answers.long().to(problems.canvas.device)
    parts = [tokens[first : first + TOGETHER] for first in range(0, len(tokens), TOGETHER)]
    scores = torch.cat([slot(problems, part, host.model()) for part in parts]).cpu()
    return {"verifier_auc": area(scores, right)}


def area(scores: Tensor, right: Tensor) -> float:
    """The area under the ROC curve of scores [n]; ties count half; NaN where only one kind is there."""
    values, member = torch.unique(scores, return_inverse=True)
    wrong_at = torch.bincount(member[~right], minlength=len(values)).double()
    right_at = torch.bincount(member[right], minlength=len(values)).double()
    below = wrong_at.cumsum(0) - wrong_at
    return float((right_at * (below + 0.5 * wrong_at)).sum() / (right_at.sum() * wrong_at.sum()))


_SIDES = tuple((*side, 0) for side in canvas.SIDES)
TASK = Task(
    config=replace(COUNTDOWN.config, sides=_SIDES),
    data=_data,
    wrap=prism,
    start=lambda: weights.checked("dmpo.safetensors", "dprm train dmpo"),
    measured=auc,
)
