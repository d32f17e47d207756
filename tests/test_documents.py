"""What the documents show works as shown, and links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import dprm
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.S)


def test_the_ten_lines_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dprm.Order(rule="soft_bon").policy().save("my-model.dprm")
    tokens = masked_canvas(4, 10)
    names = {
        "MASK": MASK,
        "model": MockDenoiser(),
        "tokens": tokens,
        "masked_at_start": (tokens == MASK).sum(1),
        "choices": [],
        "reward": torch.rand(4),
        "prompt_id": torch.tensor([0, 0, 1, 1]),
        "torch": torch,
    }
    (code,) = blocks(ROOT / "README.md")
    exec(code, names)
    assert not (names["tokens"] == MASK).any()
    assert dprm.Policy.load("my-model.dprm").step == 1


def test_the_steps_of_the_decoder_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act, learn, deploy, workers, loop = blocks(ROOT / "docs" / "your-own-decoder.md")
    start = masked_canvas(4, 10)
    names = {
        "MASK": MASK,
        "EOS": 0,
        "model": MockDenoiser(),
        "masked_at_start": (start == MASK).sum(1),
        "torch": torch,
        "reward": torch.rand(4),
        "prompt_id": torch.tensor([0, 0, 1, 1]),
        "data": [start, start],
        "canvas": start,
        "row_seeds": torch.arange(4),
        "group": None,
        "position": torch.full((16,), 9),
        "token": torch.arange(16) % MASK,
    }

    def decode(prompts):
        names.update(tokens=prompts.clone(), choices=[])
        exec(act, names)
        return names["choices"]

    decode(start)
    exec(learn, {**names, "decode": decode, "dprm": dprm})
    choices = decode(start)
    exec(deploy, names)
    names["order"].observe(choices, names["reward"], group=names["prompt_id"])
    other = dprm.Order(rule="soft_bon")
    exec(workers.replace("delta.all_reduce(group)", "pass  #"), {**names, "other_order": other})
    names["order"] = dprm.Order()
    exec(loop.replace("until=8", "until=4"), {**names, "dprm": dprm})


def test_the_host_of_the_host_page_works(tmp_path):
    parts = blocks(ROOT / "docs" / "your-own-host.md")
    names = {"torch": torch, "path": tmp_path / "p.dprm"}
    exec("\n".join(parts), names)
    assert names["card"].arms["confidence"].mean == 0.0
    assert names["card"].arms["dprm"].mean == 1.0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_cost_table_is_that_of_the_committed_run():
    checked = subprocess.run([sys.executable, "-m", "benchmarks.table", "--check"], cwd=ROOT, check=False)
    assert checked.returncode == 0, "run `python -m benchmarks.table`"


def test_the_picture_is_the_one_its_script_draws(tmp_path, monkeypatch):
    drawn = (ROOT / "docs" / "pictures" / "idea.svg").read_text()
    script = tmp_path / "make_idea.py"
    script.write_text((ROOT / "docs" / "pictures" / "make_idea.py").read_text())
    subprocess.run([sys.executable, str(script)], check=True)
    assert (tmp_path / "idea.svg").read_text() == drawn
