"""The command, as a person meets it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.host.variants import divided
from dprm.hosts import task_of
from tests.draws import taught
from tests.hosts.puma.arms import write_arm
from tests.toy_host import ToyHost

runner = CliRunner()
TOY = f"{Path(__file__).parents[1] / 'toy_host.py'}:ToyHost"


@pytest.mark.parametrize("command", [[], ["demo"], ["theory"], ["policy"], ["hosts"], ["train"], ["fit"], ["compare"]])
def test_help_teaches_every_command(command):
    shown = runner.invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Usage" in shown.output
    if not command:
        assert all(name in shown.output for name in ("demo", "hosts", "fit", "compare", "policy", "theory"))


def test_demo_shows_that_the_order_matters_at_equal_model_calls():
    shown = runner.invoke(app, ["demo", "--json"])
    assert shown.exit_code == 0
    orders = json.loads(shown.output)["orders"]
    assert orders["confidence"]["reward"] == 0.0
    assert orders["dprm"]["reward"] == 1.0
    assert len({numbers["model_calls"] for numbers in orders.values()}) == 1
    shown = runner.invoke(app, ["demo", "--problems", "0"])
    assert "DPRM earns +1.000 over confidence" in shown.output.replace("\n", " ")


def test_demo_says_so_when_nothing_was_learned():
    orders = json.loads(runner.invoke(app, ["demo", "--rounds", "1", "--rows", "8", "--json"]).output)["orders"]
    assert orders["dprm"]["reward"] in (0.0, 1.0)


@pytest.mark.slow
def test_demo_decodes_and_replays_the_trained_host():
    shown = runner.invoke(app, ["demo", "--problems", "2"])
    assert shown.exit_code == 0, shown.output
    assert "puma_words (4): 2 problems of test, budget 8" in shown.output
    said = shown.output.replace("\n", " ")
    assert "the order alone moves the share of solved" in said
    assert "2 problems are few" in said


def test_policy_shows_setting_values_and_digest(tmp_path):
    stored = taught(dprm.Order(phases=2, bins=3), 1).policy(host="[bold]not markup[/]")
    stored.save(tmp_path / "p")
    shown = runner.invoke(app, ["policy", str(tmp_path / "p")])
    assert shown.exit_code == 0
    assert "6 of 6 cells have evidence" in shown.output
    assert "[bold]not markup[/]" in shown.output
    header = json.loads(runner.invoke(app, ["policy", str(tmp_path / "p"), "--json"]).output)
    assert header["digest"] == stored.digest


def test_an_unreadable_policy_is_refused_with_exit_code_2(tmp_path):
    (tmp_path / "p").write_bytes(b"nonsense")
    for path in (tmp_path / "p", tmp_path / "missing"):
        shown = runner.invoke(app, ["policy", str(path)])
        assert shown.exit_code == 2
        assert "dprm policy:" in shown.output


def test_fit_and_compare_work_together_on_a_strangers_host(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ["fit", TOY, "--calls", "1200", "--estimator", "branched,head", "--select", "40", "--beta", "2"]
    refused = runner.invoke(app, how)
    assert refused.exit_code == 2
    assert "estimator head has no setting 'beta'" in refused.output
    fitted = runner.invoke(app, how[:-2])
    assert fitted.exit_code == 0, fitted.output
    assert "the choice took" in fitted.output
    assert (tmp_path / "runs" / "toy.account.json").is_file()
    how = ["compare", TOY, "--limit", "20", "--policy", "runs/toy.dprm", "--orders", "random", "--ablate"]
    compared = runner.invoke(app, [*how, "--out", "card.json"])
    assert compared.exit_code == 0, compared.output
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["split"] == "select"
    assert card["arms"]["dprm"]["mean"] == 1.0
    assert card["arms"]["confidence"]["mean"] == 0.0
    assert "paired, to confidence" in compared.output
    assert (tmp_path / "card.outcomes.npz").is_file()
    again = json.loads(runner.invoke(app, [*how, "--json"]).stdout)
    assert again["arms"].keys() == card["arms"].keys()


def test_a_look_at_the_test_split_is_written_down_beside_the_policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taught(dprm.Order(), 1).policy(host="toy").save(tmp_path / "mine.dprm")
    how = ["compare", TOY, "--policy", "mine.dprm", "--orders", "", "--limit", "4", "--json"]
    assert runner.invoke(app, how).exit_code == 0
    assert not (tmp_path / "mine.looks.jsonl").exists()
    looks = []
    for limit in ("5", "5", "6"):
        shown = runner.invoke(app, [*how[:-2], limit, "--json", "--split", "test"])
        looks.append(json.loads(shown.stdout)["notes"]["looks"])
    assert looks == [{"dprm": 0}, {"dprm": 0}, {"dprm": 1}]
    assert len((tmp_path / "mine.looks.jsonl").read_text().splitlines()) == 2


def test_two_policies_of_one_name_are_two_arms(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate(("mine", "yours")):
        (tmp_path / folder).mkdir()
        taught(dprm.Order(), number).policy().save(tmp_path / folder / "toy.dprm")
    how = ["compare", TOY, "--orders", "", "--limit", "4", "--json"]
    both = runner.invoke(app, [*how, "--policy", "mine/toy.dprm", "--policy", "yours/toy.dprm"])
    assert list(json.loads(both.stdout)["arms"]) == ["confidence", "dprm mine/toy", "dprm yours/toy"]
    twice = runner.invoke(app, [*how, "--policy", "mine/toy.dprm", "--policy", "mine/toy.dprm"])
    assert twice.exit_code == 2
    assert "two policies are called 'dprm mine/toy'" in twice.output


def test_own_problems_are_compared_and_lines_that_do_not_fit_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("ok\nbad line\nok\n")
    shown = runner.invoke(app, ["compare", TOY, "--problems", "mine.txt", "--orders", ""])
    assert shown.exit_code == 0, shown.output
    assert "left out: mine.txt, bad line" in shown.output
    assert "2 problems of mine.txt" in shown.output


def test_a_file_that_was_fitted_on_is_judged_on_what_neither_fitted_nor_chose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("ok\n" * 400)
    how = ["fit", TOY, "--calls", "1500", "--select", "100", "--problems", "mine.txt"]
    fitted = runner.invoke(app, how)
    assert fitted.exit_code == 0, fitted.output
    proposed = fitted.output.split("try it with `dprm ")[1].split("`")[0].split()
    assert proposed == ["compare", TOY, "--problems", "mine.txt", "--policy", "runs/toy.dprm"]
    stock = ToyHost().read_problems(Path("mine.txt"))[0]
    size = {split: len(rows) for split, rows in divided(stock).items()}
    # The file itself, and under another name, by which the policy does not know it.
    (tmp_path / "again.txt").write_text("ok\n" * 400)
    for name in ("mine.txt", "again.txt"):
        how = ["compare", TOY, "--problems", name, "--policy", "runs/toy.dprm", "--orders", "", "--limit", "400"]
        card = json.loads(runner.invoke(app, [*how, "--json"]).stdout)
        assert (card["split"], card["count"]) == ("select", size["select"])
        assert card["verdict"]["verdict"] == "fall back"
        assert card["variant"] == name
    assert not (tmp_path / "runs" / "toy.looks.jsonl").exists()
    how = [*how, "--split", "test", "--json"]
    card = json.loads(runner.invoke(app, how).stdout)
    assert (card["split"], card["count"], card["notes"]["looks"]) == ("test", size["test"], {"dprm": 0})
    assert len((tmp_path / "runs" / "toy.looks.jsonl").read_text().splitlines()) == 1


def test_a_file_that_nothing_was_fitted_on_is_taken_whole_and_its_look_is_written_down(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taught(dprm.Order(), 1).policy(host="toy").save(tmp_path / "mine.dprm")
    (tmp_path / "mine.txt").write_text("ok\n" * 6)
    how = ["compare", TOY, "--policy", "mine.dprm", "--orders", "", "--problems", "mine.txt", "--json"]
    card = json.loads(runner.invoke(app, how).stdout)
    assert (card["split"], card["count"], card["notes"]["looks"]) == ("mine.txt", 6, {"dprm": 0})
    assert len((tmp_path / "mine.looks.jsonl").read_text().splitlines()) == 1


def test_a_policy_says_what_it_was_fitted_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taught(dprm.Order(), 1).policy(host="toy", count="3", states="1").save(tmp_path / "three.dprm")
    shown = runner.invoke(app, ["compare", TOY, "--policy", "three.dprm", "--limit", "4"])
    assert shown.exit_code == 0, shown.output
    assert "three.dprm: count is '1' here, and the policy was fitted for '3'" in shown.output
    taught(dprm.Order(), 1).policy(host="toy", states="24").save(tmp_path / "states.dprm")
    shown = runner.invoke(app, ["compare", TOY, "--policy", "states.dprm", "--limit", "4"])
    assert shown.exit_code == 2
    assert "states is '1' here, and the policy was fitted for '24'" in shown.output


FITTED_FOR = """
import copy

from tests.toy_host import ToyHost


class Mine(ToyHost):
    def at(self, difficulty):
        other = copy.copy(self)
        other.variant = difficulty
        return other


class Sharper(Mine):
    def model(self):
        plain = super().model()
        return lambda tokens: 2.0 * plain(tokens)
"""


def test_a_fit_writes_what_it_was_for_and_whatever_differs_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FITTED_FOR)
    how = ["fit", "mine.py:Mine", "--calls", "300", "--select", "10", "--difficulty", "5"]
    fitted = runner.invoke(app, how)
    assert fitted.exit_code == 0, fitted.output
    proposed = fitted.output.split("try it with `dprm ")[1].split("`")[0].split()
    assert proposed == ["compare", "mine.py:Mine", "--difficulty", "5", "--policy", "runs/toy.dprm"]
    model = dprm.Policy.load(tmp_path / "runs/toy.dprm").notes["model"]
    how = [*proposed, "--limit", "4", "--orders", "", "--json"]
    same = json.loads(runner.invoke(app, how).stdout)
    assert same["weights"] == model
    assert "misfits" not in same["notes"]
    how[1:4] = ["mine.py:Sharper", "--difficulty", "6"]
    other = runner.invoke(app, [*how, "--temperature", "0.5", "--preference", "reward=1"])
    card = json.loads(other.stdout)
    assert card["weights"] != model
    said = card["notes"]["misfits"]["dprm"]
    assert [line.split()[0] for line in said] == ["variant", "temperature", "preference", "model"]
    assert "variant is '6' here, and the policy was fitted for '5'" in said
    assert "temperature is '0.5' here, and the policy was fitted for '0'" in said
    assert all(f"runs/toy.dprm: {line}" in other.stderr for line in said)


def test_the_settings_of_a_table_reach_the_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ["fit", TOY, "--estimator", "onpolicy", "--calls", "300", "--select", "10", "--beta", "2"]
    shown = runner.invoke(app, [*how, "--phases", "3", "--bins", "5", "--baseline", "none", "--gate", "1,2,7"])
    assert shown.exit_code == 0, shown.output
    policy = dprm.Policy.load(tmp_path / "runs" / "toy.dprm")
    assert (policy.cells.phases, policy.cells.bins, policy.baseline, policy.beta) == (3, 5, "none", 2.0)
    assert "gate=(1.0, 2.0, 7.0)" in policy.notes["setting"]
    assert policy.gate.ready == 7


def test_a_comparison_heeds_its_rule_its_seeds_and_its_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = taught(dprm.Order(rule="top_m"), 1).policy(host="toy")
    stored.save(tmp_path / "mine.dprm")
    how = ["compare", TOY, "--policy", "mine.dprm", "--orders", "random", "--limit", "4", "--json"]
    plain = json.loads(runner.invoke(app, how).stdout)
    assert (plain["arms"]["dprm"]["policy"], plain["seeds"]) == (stored.digest, [0])
    ruled = json.loads(runner.invoke(app, [*how, "--rule", "soft_bon"]).stdout)
    assert ruled["arms"]["dprm"]["policy"] == replace(stored, rule="soft_bon").digest != stored.digest
    seeded = json.loads(runner.invoke(app, [*how, "--seed", "3", "--seeds", "2"]).stdout)
    assert seeded["seeds"] == [3, 4]
    assert seeded["arms"]["random"]["spread"] is not None
    weights = []
    for seed in (0, 1):
        write_arm(tmp_path / f"{seed}.safetensors", "random", seed=seed)
        how = ["compare", "puma", "--weights", f"{seed}.safetensors", "--difficulty", "77-78", "--orders", ""]
        shown = runner.invoke(app, [*how, "--limit", "2", "--json"])
        assert shown.exit_code == 0, shown.output
        weights.append(json.loads(shown.stdout)["weights"])
    assert weights[0] != weights[1]


def test_bad_requests_end_with_exit_code_2_and_change_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taught(dprm.Order(), 1).policy(host="other").save(tmp_path / "other.dprm")
    (tmp_path / "card.json").write_text("mine")
    for how, message in [
        (["--policy", "other.dprm"], "host is 'toy' here, and the policy was fitted for 'other'"),
        (["--orders", "certainty"], "signal is 'certainty'"),
        (["--problems", "missing.txt"], "missing.txt"),
        (["--policy", "missing.dprm"], "missing.dprm"),
        (["--ablate"], "--ablate takes something away from a policy"),
        (["--split", "all"], "split is 'all'"),
        (["--device", "cuda"], "there is no CUDA device here"),
        (["--preference", "quality=x"], "expected BENEFIT=WEIGHT"),
        (["--reward", "nowhere"], "expected package.module:attribute"),
        (["--out", "."], "a folder, expected a file"),
    ]:
        shown = runner.invoke(app, ["compare", TOY, "--out", "card.json", *how])
        assert shown.exit_code == 2, (how, shown.output)
        assert message in shown.output.replace("\n", " ")
    for host, message in [("toy", "there is no host 'toy'"), ("nothing:here", "there is no module 'nothing'")]:
        shown = runner.invoke(app, ["compare", host])
        assert shown.exit_code == 2
        assert message in shown.output
    assert (tmp_path / "card.json").read_text() == "mine"


def test_hosts_lists_what_is_there():
    listed = json.loads(runner.invoke(app, ["hosts", "--json"]).output)
    assert {entry["name"] for entry in listed} >= {"dmpo", "puma"}
    assert "Countdown" in runner.invoke(app, ["hosts"]).output


def test_train_writes_weights_and_enters_them_where_weights_live(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path / "weights"))
    trained = []

    def pretend(task, law, recipe, *, out, **rest):
        trained.append((task.config.vocabulary, law, recipe.steps))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(b"weights")
        return {"solved": 0.5}

    monkeypatch.setattr("dprm.train.train.train", pretend)
    shown = runner.invoke(app, ["train", "puma", "--law", "dprm", "--steps", "5", "--out", "weights/puma.safetensors"])
    assert shown.exit_code == 0, shown.output
    assert trained == [(task_of("puma").config.vocabulary, "dprm", 5)]
    listed = json.loads((tmp_path / "weights" / "manifest.json").read_text())
    assert listed["puma.safetensors"]["metrics"] == {"solved": 0.5}
    assert json.loads(runner.invoke(app, ["train", "puma", "--json"]).stdout)["solved"] == 0.5
    shown = runner.invoke(app, ["train", "puma", "--steps", "5", "--minutes", "1"])
    assert shown.exit_code == 2
    assert "expected exactly one of them" in shown.output
