"""The page says what the runs say, and nothing that a host writes becomes markup."""

import dataclasses
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.evaluate.card import Estimate
from dprm.evaluate.verdict import judge
from dprm.fit import MonteCarlo, OnPolicy, fit
from dprm.fit.tracking import Tracking
from dprm.host.metrics import HELD_OUT, SET, Metric, Preference
from dprm.order.features import names
from dprm.order.files import read_tensors, write_tensors
from dprm.order.head import Head
from dprm.report.page import LARGEST, page
from dprm.report.pareto import front, pareto
from dprm.report.readme import cards_in, studies_in
from dprm.report.runs import Learned, Run, read_run, read_runs
from dprm.report.visible import all_visible, visible
from tests.draws import taught
from tests.toy_host import ToyHost

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def html(card) -> str:
    return page([Run("toy", card)])


class Elements(HTMLParser):
    """Every element that a page opens, and its headings."""

    def __init__(self, html):
        super().__init__()
        self.opened, self.headings, self._inside = [], [], False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.opened.append((tag, dict(attributes)))
        self._inside = tag == "h3"

    def handle_data(self, data):
        if self._inside:
            self.headings.append(data)
            self._inside = False


def headings(*contents):
    return Elements(page([Run("run", content) for content in contents])).headings


def test_a_comparison_shows_the_numbers_of_its_card(card, html):
    arm = card.arms["random"]
    assert 0 < arm.solved < 1
    assert f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]" in html
    assert f"<bdi>{arm.solved:.3f}</bdi>" in html
    assert "dprm compare toy" in html
    assert Elements(html).headings == ["Comparison", "Replay", "Which decisions changed"]


def test_what_was_decoded_and_rewarded_is_said(card):
    decoding = {"count": "Threshold(tau=0.9)", "signal": "margin", "temperature": "0.7"}
    changed = {"variant": "hard", "decoding": decoding, "groups": 6, "seeds": [3, 4], "device": "abacus"}
    html = page([Run("run", dataclasses.replace(card, **changed, preference=Preference({"reward": 1.0})))])
    for text in ("hard", "24 of test in 6 groups", "Threshold(tau=0.9)", "0.7", "3, 4", "reward=1", "abacus"):
        assert f"<bdi>{text}</bdi>" in html, text


def test_the_verdict_of_a_page_is_that_of_todays_rules(card, learned_card):
    stale = {"verdict": "apply", "reason": "older rules", "arm": "dprm", "evidence": ["hearsay"]}
    html = unescape(page([Run("run", dataclasses.replace(learned_card, verdict=stale))]))
    said = judge(learned_card)
    assert said.verdict != "apply"
    assert f"<strong>{said.verdict}</strong> for <bdi>dprm</bdi>: <bdi>{said.reason}</bdi>" in html
    assert "older rules" not in html
    assert "hearsay" not in html
    # A card that passes no verdict gets none.
    assert 'class="verdict"' not in page([Run("run", dataclasses.replace(card, verdict=None))])


def test_sections_appear_only_where_there_is_something_to_show(card):
    bare = dataclasses.replace(card, replays=None, partings={})
    assert headings(bare) == ["Comparison"]
    # What is held out is never wished for.
    assert headings(dataclasses.replace(bare, metrics=[Metric("reward"), Metric("solved", role=HELD_OUT)])) == [
        "Comparison"
    ]
    benefits = [Metric("reward"), Metric("solved")]
    assert headings(dataclasses.replace(bare, metrics=benefits)) == ["Comparison", "Preferences"]


def test_what_is_of_all_answers_together_stands_against_the_reward(card):
    """An order that pays for its reward with variety must be seen to."""
    metrics = [Metric("reward"), Metric("solved"), Metric("uniqueness", role=SET)]
    arms = {name: dataclasses.replace(arm, metrics={**arm.metrics}) for name, arm in card.arms.items()}
    for number, arm in enumerate(arms.values()):
        arm.metrics["uniqueness"] = Estimate(0.5 + 0.125 * number)
    section = pareto(dataclasses.replace(card, metrics=metrics, arms=arms), dict.fromkeys(arms, "#000"))
    assert [figure.caption for figure in section.figures] == ["solved against reward.", "uniqueness against reward."]
    assert section.tables[0].columns == ["order", "reward", "solved", "uniqueness"]
    assert [row[3] for row in section.tables[0].rows][:2] == ["0.500", "0.625"]
    assert "uniqueness of all answers together" in section.lead


def test_a_head_is_shown_by_its_weights(tmp_path):
    weight = torch.zeros(len(names(1, 4)))
    weight[names(1, 4).index("entropy -1")] = -0.0125
    dprm.Order(head=Head(weight, support=1234), signal="odds").policy(host="toy").save(tmp_path / "head.dprm")
    run = read_run(tmp_path / "head.dprm")
    assert headings(run.content) == ["What the head has learned"]
    html = page([run])
    assert "entropy -1" in html
    assert "-1.25" in html
    shown = CliRunner().invoke(app, ["policy", str(tmp_path / "head.dprm")]).output
    assert "taught by 1,234 comparisons" in shown
    assert "entropy -1" in shown


def test_fits_are_shown_over_what_they_took(card):
    arms, random = dict(card.arms), card.arms["random"]
    for branches in (1_000, 30_000):
        spent = {"estimator": "head", "rollouts": "700", "branches": str(branches), "calls": str(20 * branches)}
        arms[f"head-{branches}"] = dataclasses.replace(random, fit=spent, guidance=30.0)
    drawn = {"estimator": "policy_gradient", "rollouts": "12345", "branches": "0", "calls": "98760"}
    arms["peer"] = dataclasses.replace(random, fit=drawn, guidance=0.0)
    arms["head-1000, shuffled"] = dataclasses.replace(arms["head-1000"], ablates="head-1000")
    several = dataclasses.replace(card, arms=arms, replays=None, partings={})
    assert headings(several) == ["Comparison", "What fits cost"]
    html = page([Run("run", several)])
    assert html.count("600,000") == 1
    assert "12,345" in html
    assert "98,760" in html
    one = {name: arm for name, arm in arms.items() if name != "peer" and "30" not in name}
    assert headings(dataclasses.replace(several, arms=one)) == ["Comparison"]


def test_the_page_needs_nothing_from_outside(html):
    assert len(html) < 3_000_000
    for tag, attributes in Elements(html).opened:
        assert tag not in ("iframe", "img", "object", "embed")
        for name in ("src", "href", "xlink:href", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:,")), (tag, attributes)
    assert "@import" not in html
    assert "url(" not in html


def test_a_page_that_would_be_too_large_is_refused(card, monkeypatch):
    monkeypatch.setitem(page.__globals__, "LARGEST", 10_000)
    with pytest.raises(ValueError, match=r"1 runs has [\d,]+ bytes, more than 10,000"):
        page([Run("toy", card)])


@pytest.mark.slow
def test_all_committed_results_and_policies_fit_on_one_page_with_room_to_spare():
    names = [*cards_in(ROOT / "results"), *studies_in(ROOT / "results")]
    policies = [*(ROOT / "weights").glob("*.dprm")]
    assert names
    assert policies
    paths = [*(ROOT / "results").glob("*.json"), *policies]
    runs, left_out = read_runs(paths)
    assert len(runs) == len(names) + len(policies)
    assert len(left_out) == len(paths) - len(runs)
    assert len(page(runs).encode()) < 0.8 * LARGEST


def test_nothing_a_host_writes_becomes_markup(hostile_page):
    html = hostile_page.read_text()
    opened = Elements(html).opened
    # One script of the page, one block of data for the one replay.
    assert [attributes.get("type") for tag, attributes in opened if tag == "script"] == ["application/json", None]
    assert not [tag for tag, _ in opened if tag in ("img", "b", "u")]
    assert not [name for _, attributes in opened for name in attributes if name.startswith("on")]
    assert "&lt;script&gt;" in html
    assert not re.search("[\u200f\u202e\u2067]|\\\\u20(0f|2e|67)", html)
    assert "⟨U+202E⟩" in html


@pytest.mark.parametrize("text", ["plain ä 漢 שלום", "", " ", "a<b&c"])
def test_text_that_only_shows_is_left_alone(text):
    assert visible(text) == text


def test_marks_that_act_are_written_out_in_keys_and_values():
    assert visible("a\u202eb\x00\n\ud800") == "a⟨U+202E⟩b⟨U+0000⟩⏎⟨U+D800⟩"
    assert all_visible({"\u200f": ["\x07", 1, None]}) == {"⟨U+200F⟩": ["⟨U+0007⟩", 1, None]}


def learned(policy):
    return Run("policy", Learned({**policy.header, "digest": policy.digest}, policy))


def test_what_is_said_of_a_policy_file_is_its_header_without_its_checksum(tmp_path):
    taught(dprm.Order(), 1).policy(host="toy", variant="hard", estimator="onpolicy").save(tmp_path / "table.dprm")
    html = page([read_run(tmp_path / "table.dprm")])
    assert dprm.Policy.load(tmp_path / "table.dprm").digest in html
    assert "checksum" not in html
    for text in ("hard", "onpolicy", "8 × 16 × 1"):
        assert f"<bdi>{text}</bdi>" in html


def test_the_map_of_a_policy_with_several_tables_is_their_average_by_evidence():
    order = dprm.Order(phases=2, bins=3, tables=2)
    stats = dprm.Stats(cells=order.cells, beta=1.0)
    cell = torch.arange(order.cells.count)[::2].repeat_interleave(torch.arange(1, 7))
    stats.add(cell, torch.rand(len(cell), generator=torch.Generator().manual_seed(0)))
    order.merge(stats)
    policy = order.policy(host="toy")
    html = page([learned(policy)])
    assert "averaged over 2 tables by their evidence" in html
    value, events = policy.table.value.view(2, 2, 3), policy.table.support.view(2, 2, 3)
    mean = (value * events).sum(0) / events.sum(0).clamp(min=1)
    for phase, level in (events.sum(0) > 0).nonzero().tolist():
        shown = f"<td><bdi>{mean[phase, level]:+.4f}</bdi></td><td><bdi>{events.sum(0)[phase, level]:.0f}</bdi></td>"
        assert shown in html


def test_a_policy_shows_its_cells_and_how_sure_its_values_are():
    first = taught(dprm.Order(phases=2, bins=3, aux=2, ready=400), 1).policy(host="toy")
    html = page([learned(first)])
    assert Elements(html).headings == ["Values and readiness", "Radius"]
    assert "over time" not in html
    assert html.count(">state ") == 2
    events = [
        int(n) for n in re.findall(r"<td><bdi>([+-]\d\.\d{4})</bdi></td><td><bdi>(\d+)</bdi>", html) for n in n[1:]
    ]
    assert sum(events) == int(first.table.support.sum())
    # Numbers that people read are not shortened with the coordinates.
    assert ">0.001</text>" in html


def test_the_policy_of_a_fit_shows_radius_and_drift_over_time():
    host = ToyHost()
    policy = fit(OnPolicy(prompts=4, samples=4, phases=2), host, calls=64 * 3 + 32).policy
    assert len(Tracking.of_notes(policy.notes)) == 3
    html = page([learned(policy)])
    assert "Median radius over time" in html
    assert "Drift:" in html
    tracking = Tracking.of_notes(policy.notes)
    for events, wide in zip(tracking.events, tracking.radius, strict=True):
        assert f'<td class="name"><bdi>{events:,.0f}</bdi></td>' in html
        assert f"<td><bdi>{wide:.3f}</bdi></td>" in html


def test_a_policy_that_asks_every_prompt_says_what_and_shows_no_empty_map():
    host = ToyHost()
    policy = fit(MonteCarlo(moments=(0.0, 0.5), candidates=3), host, calls=64).policy
    html = page([learned(policy)])
    assert Elements(html).headings == ["What is asked of every prompt"]
    assert "After 0%, 50% of a decoding the 3 surest candidates" in html
    assert "<svg" not in html


def test_an_edited_policy_is_refused(tmp_path):
    taught(dprm.Order(), 1).policy(host="toy").save(tmp_path / "table.dprm")
    tensors, header = read_tensors(tmp_path / "table.dprm", "dprm.policy")
    write_tensors(tmp_path / "edited.dprm", tensors, {**header, "guidance": 2.0})
    with pytest.raises(ValueError, match="damaged or edited"):
        read_run(tmp_path / "edited.dprm")


def test_orders_of_different_cost_are_shown_against_it(card, html):
    assert "cost in model calls" not in html
    dear = {**card.arms, "random": dataclasses.replace(card.arms["random"], nfe=8.0)}
    assert "cost in model calls" in page([Run("toy", dataclasses.replace(card, arms=dear))])


def test_the_front_holds_what_no_other_point_reaches_in_both():
    assert front([(0, 3), (1, 2), (1, 1), (2, 2), (3, 0), (0, 3)]) == [(0, 3), (2, 2), (3, 0)]
    assert front([(1, 1)]) == [(1, 1)]


def test_the_command_writes_one_file_and_says_what_it_cannot_read(card, tmp_path):
    runner = CliRunner()
    card.save(tmp_path / "toy.json")
    out = tmp_path / "report.html"
    shown = runner.invoke(app, ["report", str(tmp_path / "toy.json"), "--out", str(out), "--title", "A <title>"])
    assert shown.exit_code == 0, shown.output
    assert "<h1>A &lt;title&gt;</h1>" in out.read_text()
    for name, content in {"other.json": json.dumps({"rows": []}), "broken.json": "{", "noise.dprm": "zzz"}.items():
        (tmp_path / name).write_text(content)
        shown = runner.invoke(app, ["report", str(tmp_path / name), "--out", str(tmp_path / "no.html")])
        assert shown.exit_code == 2
        assert name in shown.output
    assert runner.invoke(app, ["report", str(tmp_path / "missing.json")]).exit_code == 2
    # A file of another kind among others is left out, and named; a broken one is not passed over.
    shown = runner.invoke(app, ["report", str(tmp_path / "toy.json"), str(tmp_path / "other.json"), "--out", str(out)])
    assert shown.exit_code == 0
    assert "left out: " in shown.output
    assert "other.json is neither" in shown.output
    assert "1 run\n" in shown.output
    shown = runner.invoke(app, ["report", str(tmp_path / "toy.json"), str(tmp_path / "broken.json")])
    assert shown.exit_code == 2
    assert "self-contained" in runner.invoke(app, ["report", "--help"]).output
    assert not (tmp_path / "no.html").exists()
