"""The AntiBERTy host, made through the public door as a stranger would: a model, problems, a reward.

A problem is the three loops of an antibody, which say what it binds; all that holds them is to be written. The reward
is how sure the model is that the whole is a human heavy chain: an antibody of a mouse is to be given a human frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

import dprm
from dprm.hosts.antiberty import network as bert
from dprm.hosts.antiberty.antibodies import METRICS, Posed, antibodies, framed, read, write

# Residues revealed a step, and where the framework regions begin, in tokens.
WIDTH, REGIONS = 12, torch.tensor([30, 55, 102])


def load(device: str | torch.device = "cpu") -> dprm.Host:
    """The host with its weights and its antibodies."""
    return host_of(bert.load(device), {split: framed(records) for split, records in antibodies().items()})


def host_of(model: bert.AntiBERTy, problems: Mapping[str, list[Posed]]) -> dprm.Host:
    """The host of a model and (tokens, name) by split."""

    def reward(tokens: Tensor, names: Sequence[str]) -> Tensor:
        tokens = tokens.to(model.species.weight.device)
        species, chain = model.classes(tokens)
        human_heavy = species[:, bert.SPECIES.index("human")] * chain[:, bert.CHAINS.index("heavy")]
        return torch.stack([human_heavy, model.pseudo_likelihood(tokens).float()], dim=1).clamp(0, 1)

    host = dprm.make_host(
        "antiberty",
        model,
        mask_id=bert.MASK,
        problems=problems,
        reward=reward,
        metrics=METRICS,
        batched=True,
        pad=bert.PAD,
        forbid=(bert.UNKNOWN, bert.START, bert.END),
        budget=WIDTH,
        states=len(REGIONS) + 1,
        state_of=region,
        show=lambda token: "·" if token == bert.MASK else bert.TOKENS[token] if token >= bert.FIRST else " ",
        read=read,
        write=write,
    )
    host.domain, host.ordered = "antibody heavy chains", "residues"
    return host


def region(canvas: Tensor, reading: dprm.Reading) -> Tensor:
    """[B,L] the framework region of every position, about."""
    return torch.bucketize(torch.arange(canvas.shape[1]), REGIONS).to(canvas.device).expand_as(canvas)
