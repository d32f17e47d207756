"""What several tests of reports look at."""

import pytest

from dprm.report.page import page
from dprm.report.runs import read_run
from tests.report.hostile import hostile_runs


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    """The file of a page about hostile runs."""
    folder = tmp_path_factory.mktemp("hostile")
    runs = [read_run(path) for path in hostile_runs(folder)]
    (folder / "report.html").write_text(page(runs, "plain"))
    return folder / "report.html"
