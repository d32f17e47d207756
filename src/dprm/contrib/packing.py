"""A policy as text, byte for byte its file, for engines that keep their settings in JSON."""

from __future__ import annotations

import base64
import binascii
import os
import tempfile
from pathlib import Path

from dprm.order.policy import Policy, PolicyError


def packed(policy: Policy | str | os.PathLike[str]) -> str:
    """A policy, or its file, as text."""
    if not isinstance(policy, Policy):
        Policy.load(policy)
        return base64.b64encode(Path(policy).read_bytes()).decode()
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy.dprm")
        return base64.b64encode((Path(folder) / "policy.dprm").read_bytes()).decode()


def unpacked(text: str) -> Policy:
    """The policy of such a text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PolicyError("the text of this policy is damaged") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.dprm"
        path.write_bytes(data)
        return Policy.load(path)
