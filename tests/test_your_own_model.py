"""The page of a stranger's model: every block and every command of it, and what it says comes out."""

import shlex
import sys

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.evaluate.card import Card
from tests.pages import blocks, run

PAGE = "docs/your-own-model.md"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the reader is: the host in a file, as the page says, and installed as a package with an entry point."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("reviews")
    code = blocks(PAGE)
    (harsh,) = [block for block in code if block.startswith("def harsh")]
    (folder / "reviews.py").write_text("\n".join([*code[:2], harsh]))
    (entry_point,) = blocks(PAGE, "toml")
    header, line = entry_point.strip().split("\n")
    group = header.removeprefix('[project.entry-points."').removesuffix('"]')
    installed = folder / "reviews-1.0.dist-info"
    installed.mkdir()
    (installed / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: reviews\nVersion: 1.0\n")
    return folder


@pytest.fixture(scope="module")
def shown(folder):
    """The names of the page after all its blocks were executed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run(PAGE, {"__name__": "page"})


def test_a_strangers_model_comes_to_policy_verdict_and_page_in_thirty_lines(shown, folder):
    lines = [line for code in blocks(PAGE)[1:3] for line in code.splitlines() if line.strip()]
    assert len(lines) <= 30
    card = shown["learned"].card
    assert (card.verdict["verdict"], card.split, card.count) == ("apply", "test", 48)
    assert dprm.Policy.load(folder / "reviews.dprm").digest == shown["learned"].policy.digest
    assert "<svg" in (folder / "reviews.html").read_text()


def test_the_orders_earn_what_the_page_says(shown):
    means = {name: arm.mean for name, arm in shown["learned"].card.arms.items()}
    assert means["dprm"] > 0.99
    assert max(means[name] for name in ("confidence", "entropy", "margin")) < 0.01
    assert 0.1 < means["random"] < 0.35
    assert max(means["dprm, shuffled values"], means["dprm, gate only"]) < 0.5
    assert {"dprm, shuffled values", "dprm, gate only", "dprm, reward only"} <= means.keys()


def test_the_learned_order_begins_with_the_music(shown):
    order = dprm.Order.from_policy(shown["learned"].policy)
    result = dprm.decode(shown["model"], shown["canvases"][120:], order, mask_id=shown["MASK"])
    assert (result.step_map[:, shown["SAID"][2]] == 1).all()


def test_the_host_that_is_a_class_earns_what_the_page_says(shown):
    arms = shown["bits"].card.arms
    assert (arms["confidence"].mean, arms["dprm"].mean) == (0.0, 1.0)


def test_every_command_of_the_page_works(shown, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "reviews", raising=False)
    lines = [line for code in blocks(PAGE, "shell") for line in code.splitlines()]
    assert len(lines) == 9
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "dprm"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    card = Card.load(folder / "reviews.json")
    assert (card.verdict["verdict"], card.arms["dprm"].mean) == ("apply", pytest.approx(1.0))
    # The look at the test split is written down.
    assert (folder / "reviews.looks.jsonl").read_text().count("\n") == 1
