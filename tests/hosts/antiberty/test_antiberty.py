"""Antibodies: loops are found, sequences are read and written, and a tiny model of the same interface does the rest."""

import json
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.data.fasta import Record, read_fasta
from dprm.host.rollout import Decode
from dprm.hosts.antiberty import antibodies, host, network

transformers = pytest.importorskip("transformers")

TRASTUZUMAB = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSR"
    "WGGDGFYAMDYWGQGTLVTVSS"
)


def tiny(seed=0):
    torch.manual_seed(seed)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    return network.AntiBERTy(transformers.BertConfig(vocab_size=25, **size)).requires_grad_(False).eval()


def small_host():
    chains = antibodies.antibodies()
    few = {split: antibodies.framed(records[:6]) for split, records in chains.items()}
    return host.host_of(tiny(), few)


# ---- sequences -------------------------------------------------------------------------------------------------------


def test_the_loops_of_a_known_antibody_are_where_they_are_known_to_be():
    spans = antibodies.loops(TRASTUZUMAB)
    assert [TRASTUZUMAB[a:b] for a, b in spans] == ["GFNIKDTYIH", "RIYPTNGYTRYADSVKG", "WGGDGFYAMDY"]
    assert antibodies.loops(TRASTUZUMAB[::-1]) is None
    assert antibodies.loops("DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISS") is None


def test_the_antibodies_are_heavy_chains_and_one_loop_is_in_one_split():
    chains = antibodies.antibodies()
    assert sum(map(len, chains.values())) == 1031
    third = {}
    for split, records in chains.items():
        assert len(records) > 200
        for record in records:
            begin, end = antibodies.loops(record.letters)[2]
            assert third.setdefault(record.letters[begin:end], split) == split


def test_a_problem_shows_the_loops_and_nothing_else():
    ((tokens, name),) = antibodies.framed([Record("mine", TRASTUZUMAB), Record("again", TRASTUZUMAB)])
    shown = [network.TOKENS[token] for token in tokens if token != network.MASK]
    assert "".join(shown[1:-1]) == "GFNIKDTYIHRIYPTNGYTRYADSVKGWGGDGFYAMDY"
    assert (shown[0], shown[-1], name, len(tokens)) == ("[CLS]", "[SEP]", "mine", len(TRASTUZUMAB) + 2)


def test_chains_of_the_registry_and_of_a_person_are_prepared_alike(tmp_path):
    light = "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRF"
    chains = {"1ABC_1_H": f"GSGS{TRASTUZUMAB}ASTKGPSVFPLAPSS", "1ABC_2_L": light, "2ABC_1_H": TRASTUZUMAB}
    (tmp_path / "c.json").write_text(json.dumps({name: {"Sequence": chain} for name, chain in chains.items()}))
    path, lines = antibodies.prepare(tmp_path / "c.json", tmp_path)
    records, _ = read_fasta(path, antibodies.RESIDUES)
    assert [(record.name, record.letters) for record in records] == [("1ABC_1_H", TRASTUZUMAB)]
    assert lines == ["1 heavy chains of antibodies"]
    (tmp_path / "c.fa").write_text(f">heavy\n{TRASTUZUMAB}\n>light\n{light}\n")
    path, lines = antibodies.prepare(tmp_path / "c.fa", tmp_path)
    assert lines == ["light: no heavy chain", "1 heavy chains of antibodies"]


# ---- the model -------------------------------------------------------------------------------------------------------


def test_the_pseudo_likelihood_is_that_of_its_definition():
    model, tokens = tiny(), torch.tensor([antibodies.encoded("EVQLVESGG"), antibodies.encoded("QVQLQQSGP")])
    place = torch.arange(tokens.shape[1])
    for folds in (3, 9):
        total = torch.zeros(2, dtype=torch.float64)
        for column in range(1, 10):
            hidden = (place % folds == column % folds) & (place > 0) & (place < 10)
            p = model(tokens.masked_fill(hidden, network.MASK))[:, column, network.FIRST :].double().softmax(-1)
            total += p.gather(1, tokens[:, column : column + 1] - network.FIRST).squeeze(1).log()
        torch.testing.assert_close(model.pseudo_likelihood(tokens, folds), (total / 9).exp())


def test_padding_says_nothing():
    model, tokens = tiny(), torch.tensor([antibodies.encoded(TRASTUZUMAB)])
    padded = torch.nn.functional.pad(tokens, (0, 7), value=network.PAD)
    torch.testing.assert_close(model(padded)[:, :-7], model(tokens), atol=0.02, rtol=0.02)
    torch.testing.assert_close(model.classes(padded)[0], model.classes(tokens)[0], atol=0.01, rtol=0)


def test_the_host_reveals_residues_alone_and_either_score_can_be_the_reward():
    made = small_host()
    problems = made.problems("test", 4)
    rollout = Decode().answer(made, problems, 0, made.model())
    was_masked = problems.canvas == network.MASK
    assert (rollout.tokens[was_masked] >= network.FIRST).all()
    assert torch.equal(rollout.tokens[~was_masked], problems.canvas[~was_masked])
    human_heavy, likelihood = rollout.scores.unbind(1)
    assert torch.equal(made.reward(rollout.scores), human_heavy.double())
    other = made.with_preference({"pseudo_likelihood": 1.0})
    torch.testing.assert_close(other.reward(rollout.scores), likelihood.double())
    assert int(rollout.nfe[0]) == -(-int(was_masked[0].sum()) // host.WIDTH)


# ---- a person's file -------------------------------------------------------------------------------------------------


MINE = """
from tests.hosts.antiberty.test_antiberty import small_host
host = small_host()
"""


def repaired(tmp_path, text, *options):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "in.fa").write_text(text)
    arguments = ["repair", f"{tmp_path}/mine.py:host", f"{tmp_path}/in.fa", "--out", f"{tmp_path}/out.fa", *options]
    return CliRunner().invoke(app, arguments)


def test_masked_residues_of_a_file_are_filled_and_the_rest_is_left_as_it_is(tmp_path):
    gap = f"{TRASTUZUMAB[:30]}XXXX_{TRASTUZUMAB[35:]}"
    text = f">gap\n{gap}\n>complete\n{TRASTUZUMAB}\n>odd\n{gap.replace('W', 'Z')}\n>short\nEVX\n>short2\n{gap[:60]}\n"
    result = repaired(tmp_path, text, "--order", "random")
    assert result.exit_code == 0, result.output
    assert "2 filled, 3 left out" in result.output
    assert "complete: it has no X or _ that could be filled" in result.output
    assert "(odd): position 36 is 'Z'" in result.output
    assert "(short): it has 3 letters: expected 20 to 200" in result.output
    records, left_out = read_fasta(tmp_path / "out.fa", antibodies.RESIDUES)
    assert not left_out
    assert [record.name for record in records] == ["gap", "short2"]
    filled = records[0].letters
    assert (filled[:30], filled[35:]) == (TRASTUZUMAB[:30], TRASTUZUMAB[35:])
    assert not set("X_") & set(filled)
    header = (tmp_path / "out.fa").read_text().splitlines()[0]
    assert header.startswith(">gap human_heavy=0.")
    assert "pseudo_likelihood=0." in header


def test_a_policy_repairs_as_well_and_one_for_another_host_is_refused(tmp_path):
    order = dprm.Order(aux=4)
    order.policy(host="antiberty", states="4").save(tmp_path / "p.dprm")
    order.policy(host="dmpo").save(tmp_path / "other.dprm")
    gap = f">gap\n{TRASTUZUMAB[:30]}XXXX{TRASTUZUMAB[34:]}\n"
    assert repaired(tmp_path, gap, "--policy", f"{tmp_path}/p.dprm").exit_code == 0
    refused = repaired(tmp_path, gap, "--policy", f"{tmp_path}/other.dprm")
    assert refused.exit_code == 2
    assert "the policy was fitted for 'dmpo'" in refused.output


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty"), ("EVQL\n", "is no FASTA file"), (f">c\n{TRASTUZUMAB}\n", "no problem that can be used")],
)
def test_a_file_that_cannot_be_used_is_a_clear_error(tmp_path, text, said):
    result = repaired(tmp_path, text)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out.fa").exists()


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dprm.hosts.antiberty")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match=r"host antiberty needs transformers: pip install 'dprm\[antiberty\]'"):
        dprm.hosts.load("antiberty")


# ---- the weights themselves ------------------------------------------------------------------------------------------


def weights_are_here():
    import importlib.util

    from dprm.data.packages import cache

    obtained = cache() / "antiberty" / f"{network.WEIGHTS.sha256[:12]}-{Path(network.WEIGHTS.inside).name}"
    return importlib.util.find_spec("antiberty") is not None or obtained.is_file()


@pytest.mark.slow
@pytest.mark.skipif(not weights_are_here(), reason="needs `dprm data antiberty --set weights`")
def test_the_weights_know_a_human_heavy_chain_and_fill_a_gap_of_it():
    model = network.load()
    tokens = torch.tensor([antibodies.encoded(TRASTUZUMAB)])
    species, chain = model.classes(tokens)
    assert network.SPECIES[int(species.argmax())] == "human"
    assert network.CHAINS[int(chain.argmax())] == "heavy"
    assert 0.5 < float(model.pseudo_likelihood(tokens)) < 0.9
    gap = tokens.clone()
    gap[0, 67:97] = network.MASK
    right = model(gap).argmax(-1)[0, 67:97] == tokens[0, 67:97]
    assert float(right.float().mean()) > 0.7
