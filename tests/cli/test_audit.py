"""`dprm audit`, as a person meets it."""

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from tests.draws import taught
from tests.toy_host import ToyHost

runner = CliRunner()
TOY = f"{Path(__file__).parents[1] / 'toy_host.py'}:ToyHost"


@pytest.fixture
def card(tmp_path):
    host = ToyHost()
    policy = taught(dprm.Order(phases=2, bins=4), 1).policy(estimator="onpolicy")
    arms = arms_of(host, (), {"learned": policy})
    made = compare(host, host.problems("test", 20), arms, split="test").card
    made.host = "dmpo"
    made.save(tmp_path / "card.json")
    return made


def test_a_card_is_judged_with_its_evidence(card, tmp_path):
    shown = runner.invoke(app, ["audit", str(tmp_path / "card.json")])
    assert shown.exit_code == 0, shown.output
    assert f"learned: {card.verdict['verdict']}, {card.verdict['reason']}" in shown.output
    assert "difference to confidence" in shown.output
    assert "late reveals in low-confidence bins: confidence" in shown.output
    assert "all orders end alike" in shown.output
    said = json.loads(runner.invoke(app, ["audit", str(tmp_path / "card.json"), "--json"]).stdout)
    assert said["verdict"] == card.verdict["verdict"]
    assert said["cards"]["card.json"]["evidence"] == card.verdict["evidence"]


def lines_of(path):
    return [line.strip(" ·") for line in runner.invoke(app, ["audit", str(path)]).output.splitlines() if line]


def test_many_orders_are_told_of_in_one_line(card, tmp_path):
    learned = card.arms["learned"]
    shares = {"sparse": (0.25, 1.0), "late": (0.5, 0.0)} | {f"seed {seed}": (0.25, 0.0) for seed in range(6)}
    for name, (late_low, unready_low) in shares.items():
        known = {**learned.diagnostics, "late_low": late_low, "unready_low": unready_low}
        card.arms[name] = dataclasses.replace(learned, diagnostics=known)
    card.arms["learned"].diagnostics.update(late_low=0.25, unready_low=0.0)
    card.arms["confidence"].diagnostics["late_low"] = 0.25
    card.save(tmp_path / "many.json")
    lines = lines_of(tmp_path / "many.json")
    assert "late reveals in low-confidence bins: confidence 25.0%, late 50.0%, 25.0% for the other 8" in lines
    assert [line for line in lines if "not ready" in line] == [
        "low-confidence reveals that are not ready: sparse 100.0%, 0.0% for the other 8"
    ]
    card.arms["sparse"].diagnostics["unready_low"] = 0.0
    card.save(tmp_path / "many.json")
    assert "low-confidence reveals that are not ready: 0.0% for all 9" in lines_of(tmp_path / "many.json")


def test_few_orders_are_named(card, tmp_path):
    card.arms["learned"].diagnostics["unready_low"] = 0.125
    card.save(tmp_path / "few.json")
    assert "low-confidence reveals that are not ready: learned 12.5%" in lines_of(tmp_path / "few.json")


def test_the_verdict_on_a_card_is_said_once(card, tmp_path):
    said = f"{card.verdict['verdict']}, {card.verdict['reason']}"
    assert sum(said in line for line in lines_of(tmp_path / "card.json")) == 1


def test_a_host_is_judged_by_its_cards(card, tmp_path):
    shown = runner.invoke(app, ["audit", "dmpo", "--results", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    assert f"dmpo: {card.verdict['verdict']}" in shown.output
    assert "card.json: 20 problems of test" in shown.output


def test_what_cannot_be_judged_ends_with_exit_code_2(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    for what, message in [
        (["nothing"], "'nothing' is no file, and"),
        ([], "expected a host"),
        ([str(tmp_path / "other.json")], "is not a result card"),
        (["dmpo", "--results", str(tmp_path)], "has cards of no host: make one with `dprm compare dmpo --out FILE`"),
    ]:
        shown = runner.invoke(app, ["audit", *what])
        assert shown.exit_code == 2, shown.output
        assert message in shown.output.replace("\n", " ")


def test_hosts_show_the_verdict_of_their_committed_cards():
    listed = {entry["name"]: entry["verdict"] for entry in json.loads(runner.invoke(app, ["hosts", "--json"]).stdout)}
    for name, verdict in listed.items():
        said = runner.invoke(app, ["audit", name, "--json"])
        assert verdict == (json.loads(said.stdout)["verdict"] if said.exit_code == 0 else None)


def test_a_calibration_writes_its_card_and_says_which_limits_hold(tmp_path, monkeypatch):
    from dprm.evaluate.calibration import World
    from dprm.evaluate.verdict import Verdict

    never = World("never", lambda seed: Verdict("fall back", ""), most=0.05)
    monkeypatch.setattr("dprm.cli.calibration.simulated_worlds", lambda: [never])
    monkeypatch.setattr("dprm.cli.calibration.chain_worlds", list)
    out = tmp_path / "calibration.json"
    shown = runner.invoke(app, ["audit", "--calibrate", "--studies", "1", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    assert json.loads(out.read_text())["worlds"][0]["studies"] == 10
    always = World("always", lambda seed: Verdict("apply", ""), most=0.05)
    monkeypatch.setattr("dprm.cli.calibration.simulated_worlds", lambda: [always])
    missed = runner.invoke(app, ["audit", "--calibrate", "--studies", "1", "--json"])
    assert missed.exit_code == 1
    assert json.loads(missed.stdout)["worlds"][0]["holds"] is False


def test_compare_adds_ablations_and_a_control(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taught(dprm.Order(phases=2, bins=4), 1).policy(host="toy", rollouts="12").save(tmp_path / "mine.dprm")
    how = ["compare", TOY, "--orders", "confidence", "--limit", "8", "--policy", "mine.dprm", "--ablate"]
    shown = runner.invoke(app, [*how, "--best-of", "3", "--out", "card.json"])
    assert shown.exit_code == 0, shown.output
    arms = json.loads((tmp_path / "card.json").read_text())["arms"]
    ablated = {name for name, arm in arms.items() if arm["ablates"] == "dprm"}
    assert ablated == {
        f"dprm, {what}" for what in ("shuffled values", "gate only", "reward only", "uniform", "no phases")
    }
    assert arms["dprm"]["fit"]["rollouts"] == "12"
    assert arms["confidence, best of 3"]["nfe"] == 3 * arms["confidence"]["nfe"]
    assert arms["confidence, best of 3"]["mean"] >= arms["confidence"]["mean"]
    again = runner.invoke(app, [*how, "--best-of", "3", "--json"])
    assert json.loads(again.stdout)["arms"].keys() == arms.keys()


def test_a_host_of_ones_own_is_audited_by_the_address_it_is_compared_by(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("from tests.toy_host import ToyHost\n\nhost = ToyHost()\n")
    how = ["compare", "mine.py:host", "--limit", "4", "--orders", "random", "--out", "results/toy.json", "--json"]
    assert runner.invoke(app, how).exit_code == 0
    for address in ("mine.py:host", "toy"):
        shown = runner.invoke(app, ["audit", address, "--results", "results", "--json"])
        assert shown.exit_code == 0, shown.output
        assert list(json.loads(shown.stdout)["cards"]) == ["toy.json"]
    other = runner.invoke(app, ["audit", "mine.py:nothing", "--results", "results"])
    assert other.exit_code == 2
    assert "mine.py has no 'nothing'" in " ".join(other.output.split())
