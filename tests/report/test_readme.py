"""Every number of the README's table comes from a committed card."""

import dataclasses
import json
from pathlib import Path

import dprm
from dprm.evaluate.compare import compare
from dprm.evaluate.study import Study
from dprm.report.readme import END, FITS_END, FITS_START, START, STUDIES_END, STUDIES_START, cards_in, main
from tests.toy_host import ToyHost

ROOT = Path(__file__).parents[2]


def study():
    results = [{"arm": "random", "order": "entropy", "width": m, "solved": 0.25 / m} for m in (1, 2)]
    return Study("toy", "test", {}, 40, 0, 5000, {"random": {}}, results, [], "dprm study toy")


def test_the_readme_shows_the_committed_cards():
    assert main(ROOT, check=True) == 0


def test_a_number_that_is_not_the_cards_is_noticed(tmp_path):
    orders = {"confidence": dprm.Order(), "random": dprm.Order(signal="random")}
    card, _ = compare(ToyHost(), ToyHost().problems("test", 40), orders)
    card.save(tmp_path / "results" / "toy.json")
    (tmp_path / "results" / "other.json").write_text(json.dumps({"rows": []}))
    study().save(tmp_path / "results" / "study.json")
    fits = dataclasses.replace(card, arms={"confidence": card.arms["confidence"]})
    for paths in (300, 5_000):
        spent = {"estimator": "head", "rollouts": "64", "branches": str(paths), "rejoined": str(paths - 300)}
        fits.arms[f"head-{paths}"] = dataclasses.replace(card.arms["random"], fit=spent, guidance=30.0)
    fits.notes["difficulty"] = "hard"
    fits.save(tmp_path / "results" / "toy-fits.json")
    marks = (START, END, FITS_START, FITS_END, STUDIES_START, STUDIES_END)
    (tmp_path / "README.md").write_text("\n".join(["# Toy", *marks, "End.", ""]))
    assert list(cards_in(tmp_path / "results")) == ["toy-fits.json", "toy.json"]
    assert main(tmp_path, check=True) == 1
    assert main(tmp_path, check=False) == 0
    assert main(tmp_path, check=True) == 0
    text = (tmp_path / "README.md").read_text()
    assert "| [toy](results/toy.json) | 1 | 40 test | confidence | 0.0% |  |  | 4 |" in text
    assert "| [toy, hard](results/toy-fits.json) | 1 | 40 test | head | 5,000 | 4,700 | 30 |" in text
    assert "| head | 300 |  | 30 |" in text
    assert text.count("toy-fits.json") == 2  # The reference has no line: every fit is compared with it.
    assert "| [toy](results/study.json) | 40 test | random masks | entropy | 25.0% at 1, 12.5% at 2 |" in text
    (tmp_path / "README.md").write_text(text.replace("0.0%", "9.0%"))
    assert main(tmp_path, check=True) == 1
