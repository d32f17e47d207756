"""Every number of the README's table comes from a committed card."""

import dataclasses
import json
from pathlib import Path

from dprm.evaluate.arms import arms_of
from dprm.evaluate.cards import cards_in
from dprm.evaluate.compare import compare
from dprm.evaluate.estimates import judged_again
from dprm.evaluate.outcomes import Outcomes, beside
from dprm.evaluate.study import Study
from dprm.report.readme import main

ROOT = Path(__file__).parents[2]


def study(**more):
    results = [
        {"arm": "random", "order": "entropy", "width": m, "part": part, "solved": share / m}
        for m in (1, 2)
        for part, share in (("all", 0.25), ("hard", 0.125))
    ]
    return Study(
        host="toy",
        split="test",
        problems={},
        count=40,
        seed=0,
        resamples=5000,
        arms={"random": {}},
        results=results,
        differences=[],
        command="dprm study toy",
        **more,
    )


def test_the_readme_shows_the_committed_cards():
    assert main(ROOT, check=True) == 0


def test_every_committed_card_is_that_of_its_command():
    """Of one command, never gathered by hand; one of today's has its outcomes beside it, and they make its numbers."""
    for name, card in cards_in(ROOT / "results").items():
        assert card.command.startswith("dprm compare "), name
        assert f"--out results/{name}" in card.command, name
        assert "gathered" not in card.notes, name
        data = json.loads((ROOT / "results" / name).read_text())
        if data.get("schema") != 1:
            again = judged_again(card, Outcomes.load(beside(ROOT / "results" / name)))
            assert again.to_json() == card.to_json(), name


def test_a_number_that_is_not_the_cards_is_noticed(tmp_path, host):
    card = compare(host, host.problems("test", 40), arms_of(host, ("random",)), split="test").card
    card.save(tmp_path / "results" / "toy.json")
    (tmp_path / "results" / "other.json").write_text(json.dumps({"rows": []}))
    study().save(tmp_path / "results" / "study.json")
    curves = {"unbiased": {"1": 0.25, "mean": 0.375}}
    study(passk={"random by entropy": {"all": curves}}, variant="4").save(tmp_path / "results" / "study-passing.json")
    fits = dataclasses.replace(card, arms={"confidence": card.arms["confidence"]}, variant="hard")
    for calls in (300, 5_000):
        spent = {"estimator": "head", "rollouts": "64", "calls": str(calls)}
        fits.arms[f"head-{calls}"] = dataclasses.replace(card.arms["random"], fit=spent, guidance=30.0)
    fits.save(tmp_path / "results" / "toy-fits.json")
    marks = [f"<!-- {name} -->\n<!-- /{name} -->" for name in ("headline", "results", "fits", "studies")]
    (tmp_path / "README.md").write_text("\n".join(["# Toy", *marks, "End.", ""]))
    assert list(cards_in(tmp_path / "results")) == ["toy-fits.json", "toy.json"]
    assert main(tmp_path, check=True) == 1
    assert main(tmp_path, check=False) == 0
    assert main(tmp_path, check=True) == 0
    text = (tmp_path / "README.md").read_text()
    assert "| [toy](results/toy.json) | 1 | 40 test | confidence | 0.0% |  |  | 4 |" in text
    random = card.arms["random"]
    assert f"| random | {random.solved:.1%} | {random.delta:+.3f} [{random.delta_low:+.3f}, " in text
    assert "| [toy, hard](results/toy-fits.json) | 1 | 40 test | head | 5,000 | 30 |" in text
    assert "| head | 300 | 30 |" in text
    assert text.count("toy-fits.json") == 2  # The reference has no line: every fit is compared with it.
    assert "| [toy](results/study.json) | 40 test | random | entropy | 25.0% at 1, 12.5% at 2 |" in text
    passing = (
        "| [toy, 4](results/study-passing.json) | 40 test | random by entropy | samples | mean pass@K: all 0.375 |"
    )
    assert passing in text
    (tmp_path / "README.md").write_text(text.replace("0.0%", "9.0%"))
    assert main(tmp_path, check=True) == 1


def test_a_host_where_nothing_is_solved_shows_its_mean_reward(tmp_path, card):
    arms = {
        name: dataclasses.replace(arm, metrics={"reward": arm.metrics["reward"]}) for name, arm in card.arms.items()
    }
    dataclasses.replace(card, arms=arms).save(tmp_path / "results" / "toy.json")
    (tmp_path / "README.md").write_text("<!-- results -->\n<!-- /results -->\n")
    assert main(tmp_path, check=False) == 0
    assert f"| random | {card.arms['random'].mean:.3f} |" in (tmp_path / "README.md").read_text()


def test_the_page_of_a_host_shows_every_metric_of_its_cards(tmp_path, host):
    card = compare(host, host.problems("test", 40), arms_of(host, ("random",)), split="test", seeds=(0, 1)).card
    dataclasses.replace(card, host="dcm").save(tmp_path / "results" / "cells.json")
    dataclasses.replace(card, host="genmol").save(tmp_path / "results" / "mols.json")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "dcm.md").write_text("<!-- metrics dcm -->\n<!-- /metrics dcm -->\n")
    assert main(tmp_path, check=True) == 1
    main(tmp_path, check=False)
    text = (tmp_path / "docs" / "dcm.md").read_text()
    assert "[dcm](../results/cells.json): 40 of test, 2 decode seeds" in text
    assert "mols.json" not in text
    for name, arm in card.arms.items():
        mean = arm.metrics[host.metrics[0].name].mean
        assert f"| {name} | {mean:.3f}" in text
