"""What several tests of reports look at."""

import pytest

import dprm
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from dprm.report.page import page
from dprm.report.runs import read_run
from tests.report.hostile import hostile_runs
from tests.toy_host import ToyHost


@pytest.fixture(scope="session")
def card() -> Card:
    """A comparison of two orders; tests replace what they want to be different, and leave it as it is."""
    orders = {"confidence": dprm.Order(), "random": dprm.Order(signal="random")}
    return compare(ToyHost(), ToyHost().problems("test", 24), orders, command="dprm compare toy")[0]


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    """The file of a page about hostile runs."""
    folder = tmp_path_factory.mktemp("hostile")
    runs = [read_run(path) for path in hostile_runs(folder)]
    (folder / "report.html").write_text(page(runs, "plain"))
    return folder / "report.html"
