"""Judges of molecules: real ones are near real ones; what runs apart is given a file and leaves one."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import torch

pytest.importorskip("rdkit")

from dprm.contrib.judges import inside, molecules
from dprm.contrib.judges.environment import python_with
from dprm.contrib.judges.frechet import Reference
from dprm.contrib.judges.sets import molecules_of

# Packages of the same names as the judges', whose opinions can be worked out by hand.
STAND_INS = {
    "fcd": """
        import numpy
        print("a package may print")
        def load_ref_model():
            return None
        def get_predictions(model, smiles, n_jobs):
            near = [numpy.random.default_rng(len(each) * 1000 + each.count("N")) for each in smiles]
            return numpy.stack([each.normal(size=4) + ("N" in said) for each, said in zip(near, smiles)])
    """,
    "admet_ai": """
        import pandas
        class ADMETModel:
            def __init__(self, **settings):
                print("loading")
            def predict(self, smiles):
                rows = {"hERG": [each.count("N") / 10 for each in smiles]}
                rows |= {name: [0.5] * len(smiles) for name in ("AMES", "DILI", "ClinTox", "Bioavailability_Ma")}
                return pandas.DataFrame(rows, index=smiles)
    """,
}


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """The judges' process finds stand-ins of its packages, and held-out molecules are chains of carbon."""
    pytest.importorskip("pandas")
    for name, text in STAND_INS.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(molecules, "python_with", lambda name, requirements: Path(sys.executable))
    chains = ["C" * (n + 1) + "O" for n in range(200)]
    monkeypatch.setattr("dprm.contrib.judges.sets.held_out", lambda count, seed: chains[:count])


def test_the_distance_is_that_of_two_normal_distributions():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(4000, 3, generator=generator)
    spread = rows * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor([1.0, 0.0, 0.0])
    distance, error = Reference(rows).interval(spread)
    assert distance.estimate == pytest.approx(1 + 0 + 1 + 4, abs=0.3)  # |Δμ|² + Σ (σ − 1)².
    assert distance.low < distance.estimate < distance.high
    again, _ = Reference(rows).interval(rows)
    assert again.estimate == pytest.approx(0.0, abs=1e-6)
    # The jackknife's error is that between new sets of the same size.
    fresh = [torch.randn(4000, 3, generator=generator) * spread.std(0) + spread.mean(0) for _ in range(40)]
    estimates = torch.tensor([Reference(rows).interval(each)[0].estimate for each in fresh])
    assert 0.5 < error / float(estimates.std()) < 2.0
    with pytest.raises(ValueError, match="at least 40"):
        Reference(rows).interval(rows[:39])


def test_molecules_count_as_often_as_they_were_made(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,qed,times\nOCC,0.4,3\nCCO,0.4,\nnonsense,0.1,2\n")
    assert molecules_of(tmp_path / "a.csv") == (Counter({"CCO": 4}), 2)
    (tmp_path / "a.smi").write_text("OCC dprm-1\n\nCC.O salt\nc1ccccc1\n")
    assert molecules_of(tmp_path / "a.smi") == (Counter({"CCO": 1, "c1ccccc1": 1}), 1)
    (tmp_path / "empty.csv").write_text("name\nx\n")
    with pytest.raises(ValueError, match="expected a column smiles"):
        molecules_of(tmp_path / "empty.csv")


def test_sets_are_judged_in_a_process_of_its_own_and_compared_with_the_first(tmp_path, stand_ins, monkeypatch, capsys):
    (tmp_path / "own.smi").write_text("\n".join("C" * n for n in range(1, 61)))
    (tmp_path / "learned.smi").write_text("\n".join("C" * n + "N" for n in range(1, 61)) + "\nnonsense\n")
    out = tmp_path / "judges.json"
    files = [str(tmp_path / f"{name}.smi") for name in ("own", "learned")]
    monkeypatch.setattr(sys, "argv", ["judges", *files, "--held-out", "100", "--out", str(out)])
    molecules.main()
    card = json.loads(out.read_text())
    own, learned, real = (card["arms"][name] for name in ("own", "learned", molecules.REAL))
    assert (learned["molecules"], learned["left out"], real["molecules"]) == (60, 1, 60)
    assert own["metrics"]["hERG"]["mean"] == 0.0
    assert own["metrics"]["hERG"]["delta"] is None
    assert learned["metrics"]["hERG"]["delta"] == pytest.approx(0.1)
    assert learned["metrics"]["hERG"]["delta_low"] > 0
    assert learned["metrics"]["AMES"]["delta"] == 0.0
    assert learned["metrics"]["FCD"]["delta_low"] > 0
    assert learned["metrics"]["FCD"]["mean"] > real["metrics"]["FCD"]["mean"]
    assert "| learned | 60 |" in capsys.readouterr().out


def test_a_set_that_is_too_small_is_named_before_anything_is_judged(tmp_path):
    (tmp_path / "few.smi").write_text("CCO\nCCN\n")
    with pytest.raises(ValueError, match=r"few\.smi has 2 molecules: a distance of sets needs at least 40"):
        molecules.judge({"few": tmp_path / "few.smi"})


def test_a_judge_that_fails_says_why(tmp_path, stand_ins):
    (tmp_path / "fcd.py").write_text("raise RuntimeError('no model')")
    with pytest.raises(ValueError, match="no model"):
        molecules.judged(["CCO"])


@pytest.mark.slow
def test_an_environment_has_its_packages_and_the_torch_of_here(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel = tmp_path / "kept_apart-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("kept_apart.py", "import torch\nprint(torch.__version__)\n")
        packed.writestr("kept_apart-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: kept-apart\nVersion: 1.0\n")
        packed.writestr("kept_apart-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        packed.writestr("kept_apart-1.0.dist-info/RECORD", "")
    with pytest.raises(ValueError, match="lacking could not be installed"):
        python_with("lacking", ["no-such-package-at-all==1.0"])
    assert not list(tmp_path.glob("environments/*/complete"))
    python = python_with("mine", [str(wheel)])
    said = subprocess.run([python, "-c", "import kept_apart"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == torch.__version__
    assert importlib.util.find_spec("kept_apart") is None
    wheel.unlink()  # It is made once.
    assert python_with("mine", [str(wheel)]) == python


def test_the_script_that_runs_apart_imports_nothing_of_dprm():
    text = Path(inside.__file__).read_text()
    assert "import dprm" not in text
    assert "from dprm" not in text
