"""Under accelerate, as under torchrun: processes that each see a share end in the bits of one that saw everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dprm
from tests.order.reduce_worker import learner, observed

pytest.importorskip("accelerate")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# What every process runs; the folder comes from the command line.
SHARED = """
import sys
import accelerate
import torch
import dprm
from tests.order.reduce_worker import learner, observed
accelerator = accelerate.Accelerator(cpu=True)
assert accelerator.num_processes == 2
rank, world = accelerator.process_index, accelerator.num_processes
model = accelerator.prepare(torch.nn.Embedding(6, 5))
order = learner()
for turn in range(3):
    logits = model(torch.tensor([[rank, 5]]))
    order.select(dprm.read(logits), torch.ones(1, 2, dtype=torch.bool), 1, 0.5)
    observed(order, turn, rank, world)
    order.sync()
    order.sync()
order.policy().save(f"{sys.argv[1]}/{rank}.dprm")
accelerator.end_training()
"""


def launched(folder, *command):
    """A command of two processes."""
    told = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    ran = subprocess.run(
        [sys.executable, "-m", *command], env=told, cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_orders_beside_a_model_that_accelerate_prepared_learn_as_one(tmp_path):
    script = tmp_path / "shared.py"
    script.write_text(SHARED)
    launched(tmp_path, "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), str(tmp_path))
    alone = learner()
    for turn in range(3):
        for rank in range(2):
            observed(alone, turn, rank, 2)
    assert [dprm.Policy.load(tmp_path / f"{rank}.dprm").stats == alone.stats for rank in range(2)] == [True, True]
