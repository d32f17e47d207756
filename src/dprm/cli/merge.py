"""`dprm merge`: evidence that was gathered in several places, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def merge(
    files: Annotated[list[Path], typer.Argument(help="Stats of shards (`Stats.save`, `Shards.save`), or policies.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The merged file.")],
) -> None:
    """Merge **shards** or **policies** that were made anywhere, in any order, into one file.

    A shard counts once, however often it is delivered; the merged file lists the shards in it and can be merged on.
    Policies are tables that keep their evidence. What does not belong together (other cells, beta, reward range, host)
    is refused, and so is a name that comes with two contents.
    """
    from dprm.cli.arguments import writable
    from dprm.fit.seen import FITTED, SELECTED
    from dprm.order import Policy
    from dprm.order.files import kind_of
    from dprm.order.merging import Shards, merged, merged_policies

    with clear_errors("merge"):
        writable(out)
        kinds = {str(path): kind_of(path) for path in files}
        if len(set(kinds.values())) > 1:
            listed = ", ".join(f"{path} is a {kind}" for path, kind in kinds.items())
            raise ValueError(f"files do not belong together: {listed}")
        if set(kinds.values()) == {"dprm.policy"}:
            policies = {str(path): Policy.load(path) for path in dict.fromkeys(files)}
            policy = merged_policies(policies)
            for note in (FITTED, SELECTED):
                sketches = dict.fromkeys(text for each in policies.values() if (text := each.notes.get(note)))
                policy.notes.update({note: " ".join(sketches)} if sketches else {})
            policy.save(out)
            assert policy.stats is not None
            events = int(policy.stats.count.sum())
            say(f"{out}: {len(set(files))} policies, {events:,} events; digest {policy.digest[:16]}")
            return
        shards = [Shards.load(path) for path in files]
        total = merged(shards)
        total.save(out)
    twice = sum(len(each.names) for each in shards) - len(total.names)
    again = f", {twice} of them delivered again" if twice else ""
    say(f"{out}: {len(total.names):,} shards{again}, {int(total.stats.count.sum()):,} events")
