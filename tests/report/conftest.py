"""What several tests of reports look at."""

import pytest
import torch

import dprm
from dprm.evaluate.arms import Contender, arms_of
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from dprm.host.metrics import HELD_OUT, Metric
from dprm.host.rollout import Decode
from dprm.report.page import page
from dprm.report.runs import read_runs
from tests.draws import taught
from tests.report.hostile import hostile_runs
from tests.toy_host import ToyHost


class JudgedHost(ToyHost):
    """Four bits that are rewarded for being all 1, and counted as solved where most are."""

    metrics = (Metric("reward"), Metric("solved", role=HELD_OUT))

    def judge(self, problems, tokens):
        return torch.stack([super().judge(problems, tokens).double(), (tokens == 1).double().mean(1) > 0.5], dim=1)


@pytest.fixture(scope="session")
def host() -> JudgedHost:
    return JudgedHost()


@pytest.fixture(scope="session")
def card(host) -> Card:
    """A comparison of two orders; tests replace what they want to be different, and leave it as it is."""
    return compare(
        host, host.problems("test", 24), arms_of(host, ("random",)), split="test", command="dprm compare toy"
    ).card


@pytest.fixture(scope="session")
def learned_card(host) -> Card:
    """A comparison with a learned order in it, so that there is a verdict, under two decode seeds."""
    order = taught(dprm.Order(phases=2, bins=4, ready=1), 1)
    arms = {**arms_of(host, ("random",)), "dprm": Contender(Decode(order), {"estimator": "onpolicy"})}
    return compare(host, host.problems("test", 24), arms, split="test", seeds=(0, 1)).card


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    """The file of a page about hostile runs."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "report.html").write_text(page(read_runs(hostile_runs(folder))[0], "plain"))
    return folder / "report.html"
