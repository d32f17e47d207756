"""`dprm audit`: what a result allows to be done, with the evidence; and how often that verdict is right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprm.cli.arguments import writable
from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say_json, terminal

if TYPE_CHECKING:
    from dprm.evaluate.card import Card
    from dprm.evaluate.verdict import Verdict

_COLOURS = {"apply": "green", "fall back": "yellow", "do not promote": "red", "report rollout cost": "cyan"}

# More orders than this are not named one by one.
_LISTED = 5


def audit(
    what: Annotated[
        str | None, typer.Argument(metavar="HOST|CARD", help="A host that has cards, or the file of a result card.")
    ] = None,
    results: Annotated[Path | None, typer.Option(help="Where the cards of a host are; default the committed.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Instead: simulate whole studies and count the verdicts.")
    ] = False,
    studies: Annotated[
        int, typer.Option(min=1, help="With --calibrate: studies on chains; ten times simulated.")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="With --calibrate: seed of all studies.")] = 0,
    out: Annotated[Path | None, typer.Option(help="With --calibrate: write the card here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say of a learned order **apply**, **fall back**, **do not promote** or **report rollout cost**, and why.

    A card is judged by its own numbers; a host by all its cards, those of the test split first. The rules are in
    docs/verdict.md. With `--calibrate` the verdict itself is judged: the exit code is 1 if a limit is missed.
    """
    import json

    from dprm.evaluate.verdict import judge_cards
    from dprm.host.weights import shipped

    if calibrate:
        from dprm.cli.calibration import calibrated, show_calibration

        with clear_errors("audit"):
            writable(out)
            card = calibrated(studies, seed, out)
        if as_json:
            say_json(json.dumps(card, indent=2, ensure_ascii=False))
        else:
            show_calibration(card)
        if any(world["holds"] is False for world in card["worlds"]):
            raise typer.Exit(1)
        return
    with clear_errors("audit"):
        if what is None:
            raise ValueError("expected a host that has cards, or the file of a result card")
        cards = _cards(what, results or shipped("results"))
        verdict, each = judge_cards(cards)
    if as_json:
        shown = {"audited": what, **verdict.facts(), "cards": {name: one.facts() for name, one in each.items()}}
        say_json(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        _show(what, cards, verdict, each)


def _cards(what: str, results: Path) -> dict[str, Card]:
    from dprm.evaluate.card import Card
    from dprm.evaluate.cards import cards_in
    from dprm.host.finding import find, scheme_of

    if Path(what).is_file():
        return {Path(what).name: Card.load(Path(what))}
    cards = cards_in(results)
    if scheme_of(what) is not None:
        host = Path(what.partition(":")[2]).name
    else:
        host = find(what).name if ":" in what else what
    if chosen := {name: card for name, card in cards.items() if card.host == host}:
        return chosen
    hosts = ", ".join(sorted({card.host for card in cards.values()})) or "no host"
    raise ValueError(
        f"{what!r} is no file, and {results} has cards of {hosts}: make one with `dprm compare {what} --out FILE`"
    )


def _show(what: str, cards: dict[str, Card], verdict: Verdict, each: dict[str, Verdict]) -> None:
    from rich.markup import escape

    console = terminal(soft_wrap=True, highlight=False)
    for place, (name, one) in enumerate(each.items()):
        card = cards[name]
        if place:
            console.print()
        console.print(f"[bold]{escape(name)}[/]: {card.count:,} problems of {card.split}, budget {escape(card.budget)}")
        about = "" if one.arm is None else f"{escape(one.arm)}: "
        console.print(f"  {about}[{_COLOURS[one.verdict]}]{one.verdict}[/], {escape(one.reason)}")
        for line in [*one.evidence, *_diagnostics(card)]:
            console.print(f"  · {escape(line)}")
    if list(each) != [Path(what).name]:  # A card alone has said it already.
        colour = _COLOURS[verdict.verdict]
        console.print(f"\n[bold]{escape(what)}: [{colour}]{verdict.verdict}[/][/], {escape(verdict.reason)}")


def _diagnostics(card: Card) -> list[str]:
    """What the card knows about selections and outputs, a line each."""
    lines = []
    whole = {name: arm.diagnostics for name, arm in card.arms.items() if arm.ablates is None}
    late = {name: known["late_low"] for name, known in whole.items() if "late_low" in known}
    unready = {name: known["unready_low"] for name, known in whole.items() if known.get("unready_low") is not None}
    if late:
        lines.append(f"late reveals in low-confidence bins: {_named(late, card.reference)}")
    if unready:
        lines.append(f"low-confidence reveals that are not ready: {_named(unready, card.reference)}")
    if outputs := card.notes.get("outputs"):
        same, distinct = outputs["identical"], outputs["distinct"]
        lines.append(f"all orders end alike in {same:.1%} of the problems; {distinct:.2f} different outputs a problem")
    return lines


def _named(shares: dict[str, float], reference: str) -> str:
    """Every order's share in one line; of many orders, those with the most frequent share are counted, not named."""
    shown = {name: f"{share:.1%}" for name, share in shares.items()}
    counts = Counter(share for name, share in shown.items() if name != reference)
    if len(shown) <= _LISTED or len(counts) == len(shown):
        return ", ".join(f"{name} {share}" for name, share in shown.items())
    frequent, count = counts.most_common(1)[0]
    named = [f"{name} {share}" for name, share in shown.items() if name == reference or share != frequent]
    return ", ".join([*named, f"{frequent} for {'the other' if named else 'all'} {count}"])
