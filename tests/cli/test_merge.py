"""`dprm merge`, as a person meets it."""

from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.fit.seen import FITTED, first_seen, sketch
from dprm.order.merging import Shards
from tests.draws import taught
from tests.order.test_merging import policy, shard

runner = CliRunner()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        shard(number).save(tmp_path / f"{number}.stats")
    policy(1).save(tmp_path / "a.dprm")
    policy(2).save(tmp_path / "b.dprm")
    return tmp_path


def merge(*arguments):
    return runner.invoke(app, ["merge", *arguments])


def test_shards_that_come_twice_and_late_are_counted_once(here):
    shown = merge("0.stats", "1.stats", "0.stats", "-o", "c")
    assert shown.exit_code == 0, shown.output
    assert "c: 2 shards, 1 of them delivered again, 40 events" in shown.output
    assert merge("c", "2.stats", "1.stats", "-o", "c").exit_code == 0
    assert dprm.Stats.load("c") == shard(0) + shard(1) + shard(2)
    assert Shards.load("c").names.keys() == {"0", "1", "2"}


def test_policies_become_one_that_decodes(here):
    shown = merge("a.dprm", "b.dprm", "-o", "c.dprm")
    assert shown.exit_code == 0, shown.output
    both = dprm.Policy.load("c.dprm")
    assert both.digest[:16] in shown.output
    assert both.stats == taught(taught(dprm.Order(phases=2, bins=3), 1), 2).stats


def test_a_merged_policy_knows_the_problems_of_all(here):
    groups = [torch.arange(number * 10, number * 10 + 10) for number in range(3)]
    for name, each in zip("ab", groups):
        known = dprm.Policy.load(f"{name}.dprm")
        replace(known, notes={**known.notes, FITTED: sketch(each)}).save(here / f"{name}.dprm")
    assert merge("a.dprm", "b.dprm", "-o", "c.dprm").exit_code == 0
    text = dprm.Policy.load("c.dprm").notes[FITTED]
    assert [first_seen(text, each) for each in groups] == [0, 0, None]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["0.stats", "a.dprm"], "files do not belong together: 0.stats is a dprm.stats, a.dprm is a dprm.policy"),
        (["0.stats", "missing"], "missing"),
        (["0.stats", "text"], "text is not a dprm file"),
    ],
)
def test_what_cannot_be_merged_is_named_and_nothing_is_written(here, files, message):
    (here / "text").write_text("nonsense that is long enough")
    (here / "c").write_text("mine")
    shown = merge(*files, "-o", "c")
    assert shown.exit_code == 2
    assert message in shown.output.replace("\n", " ")
    assert (here / "c").read_text() == "mine"
