"""Answers of a host as a file that people of its field open: what `dprm generate HOST` does."""

from __future__ import annotations

from pathlib import Path

from dprm.cli.arguments import chosen_host, shipped_policy, writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def designs(
    host: str,
    out: Path,
    *,
    text: str | None,
    count: int,
    policy: Path | None,
    preference: str | None,
    difficulty: str | None,
    weights: Path | None,
    seed: int,
    rows: int,
    device: str,
) -> None:
    """Draw answers, keep what is valid, and write them; the best by the preference come first."""
    import dprm
    from dprm.cli.progress import bars
    from dprm.fit.purpose import misfits
    from dprm.host.decoded import decoded
    from dprm.host.rollout import Decode

    with clear_errors("generate"):
        writable(out)
        chosen = chosen_host(host, device=device, weights=weights, difficulty=difficulty, preference=preference)
        learned = shipped_policy(chosen) if policy is None else dprm.Policy.load(policy)
        for line in misfits(learned.notes, chosen) if learned is not None else ():
            say(f"{policy}: {line}", err=True)
        if learned is None and chosen.design is None:
            say("no policy for this preference comes with the host: the host's own order decides", err=True)
        if not chosen.endings:
            raise ValueError(f"host {chosen.name} makes nothing that is written as a file")
        if out.suffix not in chosen.endings:
            raise ValueError(f"--out is {out}: expected a file that ends in {', '.join(chosen.endings)}")
        problems = chosen.problems("test", count, seed) if text is None else chosen.read_one(text)
        count = len(problems)
        way = chosen.design if learned is None else Decode(dprm.Order.from_policy(learned))
        with bars() as on_progress:
            answers = decoded(
                chosen,
                problems,
                {"answers": way or Decode()},
                seed=seed,
                rows=rows,
                on_batch=lambda _, n: on_progress("made", n, count),
            )
        lines = chosen.write(out, problems, answers["answers"])
    for line in [*lines, str(out)]:
        say(line)
