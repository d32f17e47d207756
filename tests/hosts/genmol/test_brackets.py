"""Bracket-SAFE: every molecule comes back; what is none is said."""

import pytest

Chem = pytest.importorskip("rdkit.Chem")

import torch  # noqa: E402

from dprm.data.draws import Draws  # noqa: E402
from dprm.hosts.genmol import canvas  # noqa: E402
from dprm.hosts.genmol.brackets import MoleculeError, bracketed, decode, mended, to_smiles, tokenize  # noqa: E402
from dprm.hosts.genmol.data import Molecules, shuffled  # noqa: E402

# SMILES and their SAFE by safe-mol 0.2.1.
SAFE = {
    "CCOc1cccc(C(=O)Nc2ccn(Cc3ccccn3)n2)c1": "c16cccc8c1.c17ccn9n1.c1%10ccccn1.C48=O.CC5.O56.N47.C9%10",
    "OCc1cc(-c2ccc(N3CCCC3)nn2)ccc1F": "c15cc6ccc1F.c16ccc4nn1.N14CCCC1.OC5",
    "C[C@H](N)C(=O)O": "C[C@H](N)C(=O)O",
    "c1ccc2ccccc2c1": "c1ccc2ccccc2c1",
}


@pytest.mark.parametrize("smiles", SAFE)
def test_the_text_of_a_molecule_is_that_molecule(smiles):
    text = bracketed(SAFE[smiles])
    assert Chem.MolToSmiles(decode(text)) == Chem.CanonSmiles(smiles)
    assert canvas.read(canvas.write(text)) == text


def test_bonds_between_fragments_are_brackets_and_rings_keep_their_digits():
    assert bracketed("c16cccc8c1.C48=O.CC5.O56.N4.C8") == "c1<1>cccc<2>c1.C<3><2>=O.CC<4>.O<4><1>.N<3>.C<2>"


def test_fragments_may_stand_in_any_order():
    rows = canvas.padded([canvas.write(bracketed(safe)) for safe in SAFE.values()]).long()
    seen = set()
    for turn in range(8):
        mixed = shuffled(rows, Draws("test", turn))
        texts = [canvas.read(row) for row in mixed.tolist()]
        seen.add(texts[0])
        for smiles, text in zip(SAFE, texts, strict=True):
            assert Chem.MolToSmiles(decode(text)) == Chem.CanonSmiles(smiles)
            numbers = [token for token in tokenize(text) if token.startswith("<")]
            assert list(dict.fromkeys(numbers)) == [f"<{n}>" for n in range(1, len(set(numbers)) + 1)]
    assert len(seen) > 4


def test_training_sees_text_and_not_blanks():
    rows = canvas.padded([canvas.write("CCO"), canvas.write("c1ccccc1")])
    data = Molecules(rows, torch.tensor([3, 4]), 0, "cpu")  # Of 16 parts the fourth and fifth are for training.
    clean, answer = data.batch(0, 5)
    assert torch.equal(answer, clean != canvas.BLANK)
    assert torch.equal(clean, data.batch(0, 5)[0])
    assert set(answer.sum(1).tolist()) <= {3, 8}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C<1>.C<2>", "<1> 1 times"),
        ("C<1>.C<1>.C<1>", "<1> 3 times"),
        ("CC.CC", "2 components"),
        ("c1ccccc", "no SMILES"),
        ("C<1>(C)(C)(C)C.C<1>", "no SMILES"),
        ("", "no atoms"),
        ("C?C", r"\?"),
    ],
)
def test_a_text_that_is_no_molecule_says_why(text, said):
    with pytest.raises(MoleculeError, match=said):
        decode(text)


def test_a_damaged_text_is_mended_as_far_as_it_goes():
    assert Chem.MolToSmiles(mended("CC<1>.c1ccccc1<2>")) == "c1ccccc1"
    assert Chem.MolToSmiles(mended("CCO<1>.C<1>C.c1ccc")) == "CCOCC"
    assert mended("(((") is None
    assert mended("") is None


def test_more_rings_than_smiles_has_numbers_are_refused():
    many = ".".join(f"C<{n}><{n + 1}>" for n in range(1, 100))
    with pytest.raises(MoleculeError, match="99"):
        to_smiles(f"C<1>.{many}.C<100>")


def test_what_does_not_fit_the_canvas_says_so():
    with pytest.raises(MoleculeError, match="57 tokens"):
        canvas.write("C" * 57)
    with pytest.raises(MoleculeError, match="'\\[Fe\\]' is not in the vocabulary"):
        canvas.write("C[Fe]")


@pytest.mark.slow
def test_safe_mol_writes_what_is_read_here():
    pytest.importorskip("safe")
    from dprm.hosts.genmol.brackets import encode

    for smiles in SAFE:
        assert Chem.MolToSmiles(decode(encode(smiles))) == Chem.CanonSmiles(smiles)
