"""Both hosts are trained by the one loop, from prepared data, and come back from their weights."""

import pytest
import torch

from dprm.hosts import task_of
from dprm.order.files import write_tensors
from dprm.train import checkpoint
from dprm.train.recipe import Recipe
from dprm.train.train import train
from tests.hosts.dcm.cells import counts, host, names


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """Prepared cells in a cache of their own."""
    from dprm.hosts.dcm.bins import Bins
    from dprm.hosts.dcm.data import KIND, key_of

    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    raw = counts(120)
    bins = Bins.fitted(raw, [f"g{gene}" for gene in range(raw.shape[1])])
    header = {"kind": KIND, "genes": bins.genes, "cuts": bins.cuts}
    key = torch.tensor([key_of(name) for name in names(120)])
    write_tensors(tmp_path / "dcm" / "marrow" / "cells.safetensors", {"bins": bins.of(raw), "key": key}, header)
    return bins


def test_a_cell_model_learns_what_its_genes_hold(cells, tmp_path):
    task = task_of("dcm")
    recipe = Recipe(rows=32, steps=150, rate=1e-2, warm=10, average=0.9, evaluations=1)
    out = tmp_path / "w.safetensors"
    scores = train(task, "random", recipe, out=out, work=tmp_path, width=32, depth=1, problems=8)
    assert set(scores) == {"reward_confidence", "reward_random"}
    assert checkpoint.load(out)[1]["model"]["genes"] == list(cells.genes)
    host = task.load(out)
    problems = host.problems("test", 12)
    target = torch.stack(list(problems.facts)).long()
    mae = {name: host.judge(problems, tokens)[:, 1].mean() for name, tokens in _answers(host, problems, target)}
    assert mae["model"] > mae["typical"]


def test_a_model_of_other_cells_finds_its_own(cells, tmp_path):
    from dprm.order.files import read_tensors

    tensors, header = read_tensors(tmp_path / "dcm" / "marrow" / "cells.safetensors", "dprm.cells")
    header["cuts"] = [*header["cuts"][:-1], 40.0]
    write_tensors(tmp_path / "dcm" / "mine" / "cells.safetensors", tensors, header)
    made = {}
    for name in ("marrow", "mine"):
        task = task_of("dcm", name)
        made[name] = task.wrap(task.build(task.shaped(16, 1)), torch.device("cpu"))
        assert len(made[name].problems("fit", 3)) == 3
    assert made["mine"].bins.cuts[-1] == 40.0
    assert made["marrow"].bins == cells
    with pytest.raises(ValueError, match="has no prepared data to choose from"):
        task_of("dmpo", "mine")


def _answers(host, problems, target):
    from dprm.host.rollout import Decode

    yield "model", Decode().answer(host, problems, 0, host.model()).tokens
    yield "typical", host.ways["typical"].answer(host, problems, 0, host.model()).tokens


def test_missing_data_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    for asks in (lambda: task_of("dcm").shaped(None, None), lambda: host(cells=None).problems("fit", 1)):
        with pytest.raises(ValueError, match="get them with: dprm data dcm"):
            asks()
    pytest.importorskip("rdkit")
    with pytest.raises(ValueError, match="get them with: dprm data genmol"):
        task_of("genmol").data(0, torch.device("cpu"), tmp_path)
