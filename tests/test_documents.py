"""What the documents show runs as it stands, and links lead somewhere."""

import dataclasses
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.hosts import ENTRIES
from dprm.order import choice
from dprm.order.features import names as features
from dprm.order.head import Head
from tests.draws import taught
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas
from tests.pages import ROOT, blocks, run

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
HOSTS = {path.parent.name for path in (ROOT / "src" / "dprm" / "hosts").glob("*/__init__.py")}
# Each of these is executed by a test of its own name in `tests/contrib/test_pages.py`.
ENGINES = sorted((ROOT / "docs" / "engines").glob("*.md"))
DOCUMENTS += ENGINES


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What a reader has: a model, canvases, a reward, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    canvas = masked_canvas(4, 10)
    canvas[3] = 1  # A row that has nothing left to reveal.
    return {"MASK": MASK, "model": MockDenoiser(), "canvas": canvas, "tokens": canvas.clone()}


def head() -> Head:
    weight = torch.randn(len(features(1, 4)), generator=torch.Generator().manual_seed(0))
    return Head(weight, support=1000)


POLICIES = {
    "an empty order": lambda: dprm.Order(),
    "a table": lambda: taught(dprm.Order(ready=1), 1),
    "a head": lambda: dprm.Order(signal="odds", head=head(), ready=1),
}


@pytest.mark.parametrize("order", POLICIES.values(), ids=POLICIES)
def test_the_ten_lines_of_the_readme_run_with_every_kind_of_policy(names, order):
    order().policy(host="my-model").save("my-model.dprm")
    before = names["tokens"].clone()
    run("README.md", names, last=1)
    assert not (names["tokens"] == MASK).any()
    assert torch.equal(names["tokens"][before != MASK], before[before != MASK])
    expected = dprm.decode(names["model"], names["canvas"], order(), mask_id=MASK, budget=2).tokens
    assert torch.equal(names["tokens"], expected)


def test_the_lines_of_the_readme_from_a_model_to_a_policy_run(names):
    canvases = masked_canvas(40, 8, prompt=3)
    canvases[:, :3] = torch.randint(MASK, (40, 3), generator=torch.Generator().manual_seed(0))
    canvases = canvases.unique(dim=0)[:30]
    names["problems"] = {"fit": canvases[:10], "select": canvases[10:20], "test": canvases[20:]}
    names["reward"] = lambda tokens, facts: float(tokens[-1] == 0)
    names["dprm"] = dprm
    run("README.md", names, first=1)
    assert names["learned"].card.split == "select"
    assert dprm.Policy.load("my-model.dprm").digest == names["learned"].policy.digest


def test_the_steps_of_the_decoder_page_run(names, tmp_path):
    names |= {
        "EOS": 0,
        "score": lambda tokens: (tokens == 1).double().mean(1),
        "prompt_id": torch.tensor([0, 0, 1, 1]),
        "batches": [masked_canvas(4, 10)] * 2,
        "canvas": masked_canvas(4, 10),
        "row_seeds": torch.arange(4),
        "position": torch.full((16,), 9),
        "token": torch.arange(16) % MASK,
    }
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        run("docs/your-own-decoder.md", names)
    finally:
        torch.distributed.destroy_process_group()
    assert dprm.Policy.load("my-model.dprm").step == 2
    assert torch.equal(names["other"].stats.count, names["worker"].stats.count)
    assert names["result"].tokens.shape == (16, 10)


def test_the_blocks_of_the_theory_page_run():
    shown = run("docs/theory.md", {})
    assert shown["chain"].expected_reward(shown["chain"].confidence) == 0.0
    assert shown["chain"].expected_reward(shown["chain"].hard) == pytest.approx(1.0)


def test_the_page_on_search_runs():
    shown = run(
        "docs/search.md",
        {"model": MockDenoiser(), "MASK": MASK, "canvases": masked_canvas(3, 10), "reward": lambda tokens, facts: 0.5},
    )
    assert shown["rollout"].tokens.shape == (3, 10)
    assert int(shown["rollout"].calls["denoiser"].min()) > 2 * 8


def test_every_page_with_code_is_executed_by_a_test():
    """A page that is new here, or whose first code is new, needs a test of its own."""
    told = (ROOT / "tests" / "contrib" / "test_pages.py").read_text()
    for path in ENGINES:
        assert f"docs/engines/{path.name}" in told, f"no test runs {path.name}"
    run_here = {"README.md", "your-own-decoder.md", "theory.md", "speed.md", "search.md"}
    executed = {path.name for path in ENGINES} | run_here | {"your-own-model.md", "huggingface.md"}
    assert {path.name for path in DOCUMENTS if blocks(path)} == executed


COMMAND = re.compile(r"^\s*dprm ([a-z]+)(.*)$")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def told() -> list[tuple[str, str]]:
    """Every command with options that a document shows in a block or between backticks, with where it does."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text()
        listed = [
            line for code in re.findall(r"```(?:shell|bash)?\n(.*?)```", text, re.S) for line in code.splitlines()
        ]
        listed += re.findall(r"`(dprm [^`]+)`", text)
        found += [(path.name, line.split("#")[0]) for line in listed if COMMAND.match(line)]
    return found


@pytest.mark.parametrize(("page", "line"), told(), ids=lambda part: part[:60])
def test_commands_that_are_shown_exist_with_their_options(page, line):
    name, rest = COMMAND.match(line).groups()
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0, f"{page}: {line}"
    for option in OPTION.findall(rest):
        assert re.search(rf"{option}\b", shown.output), f"{page}: dprm {name} has no {option}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target, _, section in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", path.read_text()):
        if target.startswith("http"):
            continue
        file = path.parent / target if target else path
        assert file.exists(), f"{path.name} links to {target}"
        if section:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in anchors, f"{path.name} links to {target}#{section}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_are_there(path):
    """Between backticks: `tests/order/test_stats.py`, `fit/branched.py`; those of the library from src/dprm."""
    for file in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|json|md))`", path.read_text()):
        places = (ROOT / file, ROOT / "src" / "dprm" / file, ROOT / "src" / file)
        assert any(place.exists() for place in places), f"{path.name} names {file}"


def test_the_walk_of_the_architecture_page_is_the_one_a_comparison_takes(names, monkeypatch):
    """The files between `dprm compare dmpo` and the line that computes a score, in their order."""
    dprm.Order(aux=10, signal="odds", head=dataclasses.replace(head10(), support=9), ready=1).policy().save("p.dprm")
    stacks = []

    def noted(self, *arguments):
        stacks.append([Path(frame.filename) for frame in traceback.extract_stack()])
        return rank(self, *arguments)

    rank = choice.Decision.rank
    monkeypatch.setattr(choice.Decision, "rank", noted)
    arguments = "compare dmpo --limit 1 --width 28 --orders confidence --policy p.dprm"
    result = CliRunner().invoke(app, arguments.split())
    assert result.exit_code == 0, result.output
    source = Path(dprm.__file__).parent
    passed = [path.relative_to(source).as_posix() for path in stacks[0] if path.is_relative_to(source)]
    text = (ROOT / "docs" / "architecture.md").read_text()
    walk = text.split("## From the command to the score")[1].split("\n## ")[0]
    listed = re.findall(r"^\d\. .*?\]\(\.\./src/dprm/([\w/]+\.py)\)", walk, re.M)
    assert listed == [*dict.fromkeys(passed), "order/choice.py"]
    assert len(listed) <= 8


def head10() -> Head:
    weight = torch.randn(len(features(10, 4)), generator=torch.Generator().manual_seed(0))
    return Head(weight, aux=10)


def test_the_rooms_of_the_architecture_page_are_the_folders_of_the_library():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = re.findall(r"^\| `(\w+)/` \|", text, re.M)
    folders = [path.parent.name for path in (ROOT / "src" / "dprm").glob("*/__init__.py")]
    assert sorted(rooms) == sorted(folders)


def test_the_cost_table_is_that_of_the_committed_run():
    checked = subprocess.run([sys.executable, "-m", "benchmarks.table", "--check"], cwd=ROOT, check=False)
    assert checked.returncode == 0, "run `python -m benchmarks.table`"


def test_the_picture_of_the_speed_is_drawn_from_the_committed_run(tmp_path):
    script, card = tmp_path / "make_speed.py", ROOT / "results" / "bench.json"
    script.write_text((ROOT / "docs" / "pictures" / "make_speed.py").read_text())
    subprocess.run([sys.executable, str(script), str(card)], check=True)
    assert (tmp_path / "speed.svg").read_text() == (ROOT / "docs" / "pictures" / "speed.svg").read_text()


def test_the_page_on_speed_runs():
    shown = run("docs/speed.md", {})
    assert (shown["result"].step_map > 0).all()


@pytest.mark.parametrize("measured", ["benchmarks.scaling", "benchmarks.checkpoint"])
def test_the_table_of_a_page_on_cost_is_that_of_its_file(measured):
    checked = subprocess.run([sys.executable, "-m", measured, "--check"], cwd=ROOT, check=False)
    assert checked.returncode == 0, f"run `python -m {measured}`"


def test_the_picture_is_the_one_its_script_draws(tmp_path):
    drawn = (ROOT / "docs" / "pictures" / "idea.svg").read_text()
    script = tmp_path / "make_idea.py"
    script.write_text((ROOT / "docs" / "pictures" / "make_idea.py").read_text())
    subprocess.run([sys.executable, str(script)], check=True)
    assert (tmp_path / "idea.svg").read_text() == drawn


def test_the_readme_is_one_screen_for_people():
    """Prose, two commands, one picture, one table of one line a host, ten lines of use."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 90
    assert text.count("![") == 1
    table = text.split("<!-- headline -->")[1].split("<!-- /headline -->")[0].strip().splitlines()
    hosts = [re.match(r"\| \[?`(\w+)`", line)[1] for line in table[2:]]
    assert len(set(hosts)) == len(hosts) >= len(ENTRIES)


def test_every_page_is_in_the_navigation_of_the_site():
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert f": {name}\n" in listed or page.stem in ENTRIES or page.stem in HOSTS, f"mkdocs.yml does not list {name}"


@pytest.mark.slow
def test_the_site_is_built_and_a_link_that_leads_nowhere_is_an_error(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install dprm[docs]")
    how = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d"]
    built = subprocess.run([*how, str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    for page in ("index.html", "api/index.html", "code/src/dprm/order/order.py/index.html", "engines/index.html"):
        assert (tmp_path / "site" / page).is_file(), page
    for part in ("docs", "examples", "src", "results", "README.md", "CONTRIBUTING.md", "mkdocs.yml"):
        (tmp_path / "copy").mkdir(exist_ok=True)
        (tmp_path / "copy" / part).symlink_to(ROOT / part)
    (tmp_path / "copy" / "docs").unlink()
    shutil.copytree(ROOT / "docs", tmp_path / "copy" / "docs")
    with (tmp_path / "copy" / "docs" / "idea.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    broken = subprocess.run([*how, str(tmp_path / "b")], cwd=tmp_path / "copy", capture_output=True, check=False)
    assert broken.returncode != 0
    assert b"nowhere.md" in broken.stdout + broken.stderr
