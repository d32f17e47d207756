"""What an actor of Ray holds: a host and its model, loaded once, and pieces of work done with them."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from typing import Any

from dprm.host.engine import Load, Result, Work
from dprm.host.host import Host, Problems
from dprm.host.identity import written_word


class Worker:
    """What an actor holds: the host and its model, loaded once."""

    def __init__(self, load: Load, folder: str, threads: int):
        import torch

        torch.set_num_threads(threads)
        if os.path.isdir(folder):  # Names of files mean there what they mean to whoever started the work.
            os.chdir(folder)
        self.host = load()
        self.model = self.host.model()

    def word(self) -> str:
        """What identifies the host here."""
        return written_word(self.host)

    def do(self, change: tuple[Any, Any], work: Work[Result], problems: Problems) -> Result:
        """One piece, for the host with another decoding and preference."""
        host = copy.copy(self.host)
        host.decoding, host.preference = change
        return work(host, self.model, problems)


@dataclass(frozen=True)
class Sent:
    """The host that is here, as `load` of an actor."""

    host: Host

    def __call__(self) -> Host:
        return self.host
