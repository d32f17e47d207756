"""The molecule host, around a small random model."""

import pytest
import torch

Chem = pytest.importorskip("rdkit.Chem")

from dprm.evaluate.arms import arms_of  # noqa: E402
from dprm.evaluate.compare import compare  # noqa: E402
from dprm.host.identity import host_word  # noqa: E402
from dprm.host.rollout import Decode  # noqa: E402
from dprm.hosts.genmol import canvas  # noqa: E402
from dprm.hosts.genmol.host import PREFERENCES, TASK, GenMol  # noqa: E402
from dprm.hosts.genmol.properties import benefits, diversity, molecule, of_set  # noqa: E402
from dprm.order import NoisyConfidence  # noqa: E402
from dprm.train.denoiser import Denoiser  # noqa: E402
from dprm.train.transformer import Transformer  # noqa: E402

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.fixture(scope="module")
def host():
    return GenMol(Denoiser(Transformer(TASK.shaped(32, 1))))


def test_problems_have_drawn_lengths_and_visible_blanks(host):
    problems = host.problems("fit", 200)
    problems.check()
    masked = (problems.canvas == canvas.MASK).sum(1)
    assert masked.tolist() == problems.facts
    assert masked.min() >= canvas.SHORTEST
    assert masked.max() <= canvas.LENGTH
    assert masked.float().std() > 2
    assert not set(problems.key.tolist()) & set(host.problems("select", 200).key.tolist())


def test_benefits_are_those_of_rdkit():
    mol = Chem.MolFromSmiles(ASPIRIN)
    from rdkit.Chem import QED

    qed, sa = benefits(mol)
    assert qed == pytest.approx(QED.qed(mol))
    assert sa == pytest.approx((10 - 1.58) / 9, abs=0.01)  # The SA score of aspirin.


def test_a_molecule_is_judged_as_it_is_written_and_nothing_earns_nothing(host):
    texts = ["CC(=O)O<1>.c1<1>ccccc1C(=O)O", "CCO<1>", "((((", ""]
    tokens = canvas.padded([canvas.write(text) for text in texts]).long()
    scores = host.judge(None, tokens)
    assert scores[0, :3].tolist() == pytest.approx([*benefits(Chem.MolFromSmiles(ASPIRIN)), 1.0])
    assert scores[1, 2] == 0.0
    assert scores[1, 0] == pytest.approx(benefits(Chem.MolFromSmiles("CCO"))[0])
    assert scores[2:].tolist() == [[0.0] * 4] * 2


def test_structures_that_chemists_avoid_are_told():
    assert molecule("c1ccccc1CCN").clean
    assert not molecule("O=C1C=CC(=O)C=C1").clean  # A quinone.
    assert not molecule("CC(=O)Cl").clean  # An acid chloride.


def test_set_metrics_are_of_all_outputs_together(host):
    said = of_set(["CCO", "CCO", "c1ccccc1"], 4)
    assert said["validity"] == 0.75
    assert said["uniqueness"] == pytest.approx(2 / 3)
    assert said["diversity"] == pytest.approx(1.0)
    assert diversity(["CCO", "CCCO"]) == pytest.approx(1 - _similarity("CCO", "CCCO"))
    assert diversity(["CCO"]) == 0.0


def _similarity(one, other):
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    made = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return DataStructs.TanimotoSimilarity(*(made.GetFingerprint(Chem.MolFromSmiles(each)) for each in (one, other)))


def test_every_preference_of_the_paper_can_be_asked_for(host):
    for name, (qed, sa) in PREFERENCES.items():
        other = host.with_preference(host.preferences[name])
        reward = other.reward(torch.tensor([[1.0, 1.0, 1.0, 1.0], [qed, 0.0, 1.0, 1.0]]))
        assert reward[0] > reward[1]
        assert dict(other.preference.weights) == {"qed": qed, "sa": sa}


def test_all_arms_have_the_randomness_of_the_host(host):
    arms = arms_of(host, ["random", "confidence", "noisy_confidence:1.5"])
    assert next(iter(arms)) == "noisy_confidence"
    assert arms["noisy_confidence:1.5"].order.signal == NoisyConfidence(1.5)
    assert host.decoding.order().signal == NoisyConfidence(0.3)


def test_a_comparison_has_set_metrics_and_independent_intervals(host, tmp_path):
    problems = host.problems("select", 6)
    card = compare(host, problems, arms_of(host, ["random"]), seeds=(0, 1), resamples=50).card
    assert not card.paired
    assert set(card.arms["random"].metrics) == {metric.name for metric in host.metrics}


def test_a_molecule_does_not_depend_on_its_batch(host):
    problems = host.problems("select", 5)
    whole = Decode().answer(host, problems, 3, host.model()).tokens
    alone = [Decode().answer(host, problems[row : row + 1], 3, host.model()).tokens for row in range(5)]
    assert torch.equal(whole, torch.cat(alone))
    assert not (whole == canvas.MASK).any()


def test_what_was_judged_does_not_change_what_the_host_is(host):
    """Else a comparison that goes on would not find its own finished batches."""
    before = host_word(host)
    problems = host.problems("select", 3)
    assert host.judge(problems, canvas.padded([canvas.write("CCO")] * 3).long()).any()
    assert host_word(host) == before


def test_files_open_again_with_their_properties(host, tmp_path):
    texts = ["CC(=O)O<1>.c1<1>ccccc1C(=O)O", "CCO<1>", "CCO", "(((("]
    problems = host.problems("select", 4)
    rollout = Decode().answer(host, problems, 0, host.model())
    rollout.tokens = canvas.padded([canvas.write(text) for text in texts]).long()
    rollout.scores = host.judge(problems, rollout.tokens)
    lines = host.write(tmp_path / "mols.sdf", problems, rollout)
    assert "2 molecules" in lines[0]
    assert lines[1:3] == ["left out: 1, no molecule", "left out: 1, the same molecule again"]
    read = list(Chem.SDMolSupplier(str(tmp_path / "mols.sdf")))
    assert [Chem.MolToSmiles(mol) for mol in read] == [Chem.CanonSmiles(ASPIRIN), "CCO"]
    assert float(read[0].GetProp("qed")) == pytest.approx(molecule(texts[0]).qed, abs=1e-4)
    host.write(tmp_path / "mols.smi", problems, rollout)
    assert (tmp_path / "mols.smi").read_text().split()[::2] == [Chem.CanonSmiles(ASPIRIN), "CCO"]
    host.write(tmp_path / "mols.csv", problems, rollout)
    table = (tmp_path / "mols.csv").read_text().splitlines()
    assert table[0] == "smiles,qed,sa,reward,mended,times"
    assert [line.rpartition(",")[2] for line in table[1:]] == ["1", "2"]
    host.write(tmp_path / "mols.svg", problems, rollout)
    drawn = (tmp_path / "mols.svg").read_text()
    assert "<svg" in drawn
    assert "class='legend'" in drawn
    with pytest.raises(ValueError, match="expected a file that ends in"):
        host.write(tmp_path / "mols.txt", problems, rollout)
