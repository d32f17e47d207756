"""`dprm generate`: molecules for a preference, as a file."""

from collections import Counter

import pytest

Chem = pytest.importorskip("rdkit.Chem")

from typer.testing import CliRunner  # noqa: E402

import dprm  # noqa: E402
from dprm.cli import app  # noqa: E402
from dprm.contrib.judges.sets import molecules_of  # noqa: E402
from dprm.fit.purpose import purpose  # noqa: E402
from dprm.hosts import data_of  # noqa: E402
from dprm.hosts.genmol.host import TASK  # noqa: E402
from dprm.train.denoiser import save_weights  # noqa: E402
from dprm.train.transformer import Transformer  # noqa: E402


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path))
    save_weights(tmp_path / "w.safetensors", Transformer(TASK.shaped(32, 1)), {})
    return tmp_path / "w.safetensors"


def generate(*words):
    return CliRunner().invoke(app, ["generate", "genmol", *map(str, words)])


def test_every_text_is_a_molecule_or_left_out(tmp_path, weights):
    said = generate("--weights", weights, "-n", 12, "--out", tmp_path / "mols.smi", "--preference", "S")
    assert said.exit_code == 0, said.output
    assert "the host's own order decides" in said.output
    smiles = [line.split()[0] for line in (tmp_path / "mols.smi").read_text().splitlines()]
    assert all(Chem.MolFromSmiles(each) is not None for each in smiles)
    left_out = sum(int(line.split()[2].rstrip(",")) for line in said.output.splitlines() if line.startswith("left out"))
    assert len(smiles) + left_out == 12


def test_what_every_order_made_can_be_kept_for_other_judges(tmp_path, weights, monkeypatch):
    words = ["--weights", weights, "--limit", 6, "--seeds", 2, "--orders", "random", "--work", tmp_path]
    out = ["--out", tmp_path / "card.json", "--answers", tmp_path / "arms"]
    said = CliRunner().invoke(app, ["compare", "genmol", *map(str, [*words, *out])])
    assert said.exit_code == 0, said.output
    card = dprm.evaluate.card.Card.load(tmp_path / "card.json")
    assert {path.stem for path in (tmp_path / "arms").glob("*.csv")} == set(card.arms)
    for name, arm in card.arms.items():
        made = molecules_of(tmp_path / "arms" / f"{name}.csv")[0] if arm.metrics["validity"].mean else Counter()
        assert made.total() == round(12 * arm.metrics["validity"].mean)
    monkeypatch.delenv("DPRM_WEIGHTS")
    refused = CliRunner().invoke(app, ["compare", "dmpo", "--answers", str(tmp_path / "none")])
    assert refused.exit_code == 2
    assert "host dmpo makes nothing that is written as a file" in refused.output


def test_a_policy_that_comes_with_the_host_is_taken_for_its_preference(tmp_path, weights):
    host = TASK.load(weights)
    for name in ("Q", "S"):
        chosen = host.with_preference(host.preferences[name])
        order = dprm.Order(aux=host.decoding.states, signal=host.decoding.signal, ready=1)
        problems = chosen.problems("fit", 4)
        result = dprm.host.rollout.Decode(order).result(chosen, problems, 0, chosen.model())
        order.observe(result.trace, chosen.reward(chosen.judge(problems, result.tokens)))
        order.policy(**purpose(chosen)).save(tmp_path / f"genmol-{name}.dprm")
    for preference, known in (("Q", True), ("qed=0.05,sa=0.95", True), ("B", False)):
        said = generate("--weights", weights, "-n", 2, "--out", tmp_path / "m.csv", "--preference", preference)
        assert said.exit_code == 0, said.output
        assert ("no policy for this preference" not in said.output) is known


def test_a_file_of_another_kind_is_refused(tmp_path, weights, monkeypatch):
    said = generate("--weights", weights, "-n", 2, "--out", tmp_path / "mols.pdb")
    assert said.exit_code == 2
    assert "expected a file that ends in .sdf, .smi, .csv, .svg" in said.output
    assert not (tmp_path / "mols.pdb").exists()
    monkeypatch.delenv("DPRM_WEIGHTS")
    said = CliRunner().invoke(app, ["generate", "dmpo", "-n", "2", "--out", str(tmp_path / "x.txt")])
    assert said.exit_code == 2
    assert "host dmpo makes nothing that is written as a file" in said.output


@pytest.mark.parametrize("name", ["genmol", "dcm"])
def test_the_sources_of_the_data_are_named_with_checksum_and_licence(name):
    for source in data_of(name).sources.values():
        assert source.archive.replace("_", "-").startswith(source.package)
        assert len(source.sha256) == 64
        assert source.licence
        assert source.about
