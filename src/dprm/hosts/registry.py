"""The hosts there are, by name. A host's own module is imported when it is asked for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import torch

from dprm.host import weights
from dprm.host.host import Host
from dprm.train.denoiser import Denoiser


@dataclass(frozen=True)
class Entry:
    """What is known of a host without loading it.

    Attributes:
        module: where its class `TheHost` is. weights: file of its small model. command: what makes that file.
    """

    name: str
    domain: str
    ordered: str
    module: str
    weights: str
    command: str

    @property
    def present(self) -> bool:
        """Whether its weights are there."""
        return weights.present(self.weights)


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry(
            "dmpo",
            "Countdown: reach a target from given numbers",
            "response positions",
            "dprm.hosts.dmpo.host",
            "dmpo.safetensors",
            "dprm train dmpo --law random --minutes 6 --device cuda --out weights/dmpo.safetensors",
        ),
        Entry(
            "puma",
            "Sudoku 9×9",
            "blank cells",
            "dprm.hosts.puma.host",
            "puma.safetensors",
            "dprm train puma --law random --steps 3000 --rows 256 --device cuda --out weights/puma.safetensors",
        ),
        Entry(
            "puma_words",
            "word problems with step-by-step answers",
            "answer positions",
            "dprm.hosts.puma_words.host",
            "puma_words.safetensors",
            "dprm train puma_words --law confidence --steps 3000 --rows 512 --device cuda"
            " --out weights/puma_words.safetensors",
        ),
    )
}


def load(name: str, device: torch.device | str = "cpu", compiled: bool = False) -> Host:
    """A host with its small model.

    Args:
        compiled: compile the model at its first call, see `Denoiser.compile`.

    Raises:
        ValueError: unknown host, missing or damaged weights, nothing to compile; the message says what to do.
    """
    if name not in ENTRIES:
        raise ValueError(f"there is no host {name!r}: expected one of {', '.join(ENTRIES)}")
    entry = ENTRIES[name]
    path = weights.checked(entry.weights, entry.command)
    host: Host = importlib.import_module(entry.module).load(path, device)
    if compiled:
        denoiser = host.denoiser()
        if not isinstance(denoiser, Denoiser):
            raise ValueError(f"host {name!r} has a model of its own that cannot be compiled: leave out --compile")
        denoiser.compile()
    return host
