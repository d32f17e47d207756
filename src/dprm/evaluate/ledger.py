"""The ledger: how often a policy has been looked at on the test split.

A test split looked at again and again chooses. Every look is a line of the file beside the policy, `NAME.looks.jsonl`.
"""

from __future__ import annotations

import json
from pathlib import Path

from dprm.order.files import write_whole

SUFFIX = ".looks.jsonl"


def look(policy: Path, digest: str, problems: str, command: str) -> int:
    """Write a look down, and say how many other sets of problems or settings this policy was looked at with before.

    Args:
        policy: its file. digest: of the policy as it is used. problems: digest of the problems.
    """
    path = policy.with_suffix(SUFFIX)
    lines = path.read_text().splitlines() if path.is_file() else []
    looks = [json.loads(line) for line in lines]
    now = {"policy": digest, "problems": problems, "command": command}
    before = [each for each in looks if (each["policy"], each["problems"]) != (digest, problems)]
    if len(before) == len(looks):
        write_whole(path, "".join(line + "\n" for line in [*lines, json.dumps(now)]).encode())
    return len(before)
