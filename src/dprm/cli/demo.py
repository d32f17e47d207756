"""`dprm demo`: in a few seconds, that the order of tokens matters, on a host small enough to see through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say_json, terminal

if TYPE_CHECKING:
    from dprm.evaluate.card import Card
    from dprm.theory import Chain

# tokens and step map of one row
Path = tuple[list[int], list[int]]
ORDERS = ("random", "confidence", "entropy", "dprm")
# Of the trained model: positions a step, and how many of the answer's characters fit beside each other.
WIDTH = 8
SHOWN = 35


def demo(
    problems: Annotated[int, typer.Option(min=0, help="Word problems to decode; 0 for none.")] = 128,
    rows: Annotated[int, typer.Option(min=1, help="Canvases to decode under each order.")] = 512,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of online learning, 16 trajectories each.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of learning and decoding.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as one JSON object.")] = False,
) -> None:
    """Show that **the order of tokens matters**: one host, four orders, the same number of model calls.

    The host is an exactly known distribution over four bits, `dprm.theory.myopic`. Its surest position is the wrong
    one to begin with: confidence order always ends in 0000 and earns nothing. DPRM starts from an empty table, learns
    online from terminal reward alone, and is then frozen to a policy. Then a trained model: word problems under
    the signals that people use and under a fitted policy, with one problem replayed step by step.
    """
    import json
    import time

    import torch

    import dprm
    from dprm.order.noise import mix
    from dprm.theory import myopic

    chain = myopic(beta=2.0)
    mask = chain.vocab
    learner = dprm.Order(phases=4, beta=2.0, ready=8, rule="soft_bon", explore=True, shortlist=(3, 64, 3))
    for turn in range(rounds):
        canvas = torch.full((16, chain.length), mask)
        result = dprm.decode(chain.denoiser(), canvas, learner, mask_id=mask, seed=mix(seed, turn))
        learner.observe(result.trace, chain.reward_of(result.tokens), group=torch.zeros(16, dtype=torch.int64))
    policy = learner.policy(host="myopic", estimator="onpolicy")

    found: dict[str, dict[str, float]] = {}
    paths: dict[str, Path] = {}
    for name in ORDERS:
        order = dprm.Order.from_policy(policy, rule="top_m") if name == "dprm" else dprm.Order(signal=name)
        began = time.perf_counter()
        canvas = torch.full((rows, chain.length), mask)
        result = dprm.decode(chain.denoiser(), canvas, order, mask_id=mask, seed=seed)
        seconds = time.perf_counter() - began
        reward = chain.reward_of(result.tokens)
        changed = result.trace.changed.sum() / result.trace.decisions.sum()
        found[name] = {
            "reward": float(reward.mean()),
            "standard_error": float(reward.std(correction=0)) / rows**0.5,
            "model_calls": result.nfe,
            "order_changed": float(changed),
            "milliseconds": 1000 * seconds,
        }
        paths[name] = (result.tokens[0].tolist(), result.step_map[0].tolist())
    if as_json:
        say_json(json.dumps({"orders": found, "policy": policy.digest, "rows": rows, "seed": seed}, indent=2))
        return
    _print(found, paths, chain, rounds)
    if problems:
        with clear_errors("demo"):
            _word_problems(problems, seed)


def _word_problems(problems: int, seed: int) -> None:
    """The trained word-problem host under five orders, and the first problem on which the learned one parts from it."""
    import dprm
    from dprm.cli.compare import show
    from dprm.cli.progress import bars
    from dprm.cli.replay import replay
    from dprm.decode.counts import Fixed
    from dprm.evaluate.arms import arms_of
    from dprm.evaluate.compare import compare
    from dprm.host import weights
    from dprm.hosts import load
    from dprm.train.task import successes

    console = terminal()
    console.print(f"\nNow a trained model: word problems of four steps, {WIDTH} positions revealed a step.\n")
    host = load("puma_words").at("4").with_decoding(count=Fixed(WIDTH))
    fitted = dprm.Policy.load(weights.checked("puma_words.dprm", "dprm fit puma_words --out weights/puma_words.dprm"))
    posed = host.problems("test", problems, seed)
    arms = arms_of(host, ("random", "entropy"), {"dprm": fitted})
    with bars() as on_progress:
        comparison = compare(
            host,
            posed,
            arms,
            split="test",
            seeds=(seed,),
            rows=32,
            on_batch=lambda name, done: on_progress(name, done, problems),
        )
    card = comparison.card
    card.verdict = None  # A hundred problems are for looking at.
    show(card)
    runs = {name: comparison.rollouts[name][0] for name in ("confidence", "dprm")}
    solved = {name: successes(host, run.scores) for name, run in runs.items()}
    parted = (solved["confidence"] != solved["dprm"]).nonzero().flatten().tolist()
    row = next((row for row in parted if bool(solved["dprm"][row])), parted[0] if parted else 0)
    first = int((posed.canvas[row] == host.decoding.mask_id).nonzero()[0])
    story = " ".join(shown for token in posed.canvas[row, :first].tolist() if (shown := host.show(token)).strip())
    console.print(f"\n{story}\n\nThe end of the answer, step by step (what is new stands out):\n")
    # Answers are filled up at their end; what does not fit is cut from their beginning.
    written = [int((run.tokens[row] != run.tokens[row, -1]).nonzero()[-1]) + 1 for run in runs.values()]
    begin = max(first, max(written) - SHOWN)
    console.print(replay(host, row, runs, begin, begin + SHOWN))
    for name in runs:
        console.print(f"{name}: {'solved' if bool(solved[name][row]) else 'not solved'}")
    console.print(f"\n{_in_a_sentence(card)}")


def _in_a_sentence(card: Card) -> str:
    """What was learned; for what these few problems cannot show, what the committed card says."""
    from dprm.evaluate.card import Card
    from dprm.host.weights import shipped

    arm = card.arms["dprm"]
    solved = {name: other.solved or 0.0 for name, other in card.arms.items()}
    low, high = min(solved, key=lambda name: solved[name]), max(solved, key=lambda name: solved[name])
    said = (
        f"The same model, the same {arm.nfe:.0f} calls: the order alone moves the share of solved problems between "
        f"{solved[low]:.0%} ({low}) and {solved[high]:.0%} ({high}). "
        f"DPRM decides otherwise than confidence in {arm.changed:.0%} of the steps."
    )
    kept = shipped("results") / "puma_words-width8-test.json"
    if not kept.is_file():
        return said
    whole = Card.load(kept)
    learned, host = whole.arms["dprm"], whole.arms["confidence"]
    return (
        f"{said} {card.count} problems are few; on {whole.count:,} of the test split confidence solves "
        f"{host.solved:.1%} and DPRM {learned.solved:.1%}, a difference in reward of {learned.delta:+.3f} "
        f"[{learned.delta_low:+.3f}, {learned.delta_high:+.3f}]."
    )


def _print(found: dict[str, dict[str, float]], paths: dict[str, Path], chain: Chain, rounds: int) -> None:
    from rich.table import Table

    console = terminal()
    console.print("One host, four orders, the same tokens and model calls. Reward 1 for 1111, else 0.\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("order", "reward", "± s.e.", "model calls", "decisions changed", "ms"):
        table.add_column(name, justify="left" if name == "order" else "right")
    for name, numbers in found.items():
        style = "green" if name == "dprm" else "red" if name == "confidence" else ""
        table.add_row(
            name,
            f"{numbers['reward']:.3f}",
            f"{numbers['standard_error']:.3f}",
            str(numbers["model_calls"]),
            f"{numbers['order_changed']:.0%}" if name == "dprm" else "",
            f"{numbers['milliseconds']:.1f}",
            style=style,
        )
    console.print(table)
    console.print("\nThe same canvas, step by step (confidence of each position; [bold]bold[/] = revealed now)\n")
    steps = Table(box=None, pad_edge=False, header_style="bold")
    steps.add_column("step")
    for name in ("confidence", "dprm"):
        steps.add_column(name)
    for step in range(chain.length + 1):
        steps.add_row(str(step), *(_canvas(chain, *paths[name], step) for name in ("confidence", "dprm")))
    console.print(steps)
    gain = found["dprm"]["reward"] - found["confidence"]["reward"]
    first = paths["dprm"][1].index(1), paths["confidence"][1].index(1)
    learned = (
        f"the table begins with position {first[0]} where confidence begins with position {first[1]}"
        if first[0] != first[1]
        else "the table still begins where confidence does: it has not seen enough"
    )
    console.print(
        f"\nAfter {rounds} rounds of 16 trajectories {learned}. "
        f"DPRM earns {gain:+.3f} over confidence at the same number of model calls."
    )


def _canvas(chain: Chain, tokens: list[int], step_map: list[int], step: int) -> str:
    """One canvas after `step` reveals: tokens where visible, confidence where masked."""
    import torch

    import dprm

    canvas = torch.tensor([[t if s <= step else chain.vocab for t, s in zip(tokens, step_map, strict=True)]])
    confidence = dprm.read(chain.denoiser()(canvas)).confidence[0]
    parts = []
    for position, (token, revealed) in enumerate(zip(tokens, step_map, strict=True)):
        if revealed > step:
            parts.append(f"[dim]{float(confidence[position]):.2f}[/]")
        else:
            colour = "bold reverse" if revealed == step else "default"
            parts.append(f"[{colour}] {token}  [/]")
    return " ".join(parts)
