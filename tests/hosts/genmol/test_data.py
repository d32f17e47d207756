"""A person's molecules: what is usable is prepared, and what is not is counted, with an example."""

import gzip
import sys

import pytest
from typer.testing import CliRunner

pytest.importorskip("rdkit")
pytest.importorskip("safe")

from dprm.cli import app
from dprm.hosts.genmol import brackets, canvas
from dprm.hosts.genmol.data import KIND, prepare
from dprm.order.files import read_tensors

pytestmark = pytest.mark.slow
GOOD = ["CCOC(=O)c1ccccc1", "CC(C)Cc1ccc(C(C)C(=O)O)cc1"]
BAD = {
    "nonsense": "no molecule",
    "CC(=O)O.[Na+].[Cl-]": "2|3 components",
    "C" * 90: "90 tokens",
    "C[Fe]C": "vocabulary",
    "c1ccccc1C(=O)OCC": "the same molecule again",
}


def test_bad_molecules_are_left_out_and_said(tmp_path):
    path = tmp_path / "mine.smi"
    path.write_text("\n".join([*GOOD, *BAD]) + "\n")
    prepared, lines = prepare(path, tmp_path / "out")
    tensors, header = read_tensors(prepared, KIND)
    assert [canvas.read(row).count(".") > 0 for row in tensors["tokens"].tolist()] == [True, True]
    assert lines[0] == "2 molecules of 7 lines"
    told = "\n".join(lines)
    for words in ("no molecule", "several components", "90 tokens", "not in the vocabulary", "the same molecule again"):
        assert words in told
    assert header["lines"] == lines


@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz"])
def test_a_table_with_a_column_smiles_will_do(tmp_path, name):
    path = tmp_path / name
    text = "name,SMILES,split\n" + "".join(f"m{n},{smiles},train\n" for n, smiles in enumerate(GOOD))
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert prepare(path, tmp_path)[1] == ["2 molecules of 2 lines"]


def test_without_safe_mol_nothing_is_read_and_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "safe", None)
    brackets._converter.cache_clear()
    path = tmp_path / "mine.smi"
    path.write_text("\n".join(GOOD) + "\n")
    for words in (["--from", str(path)], []):
        said = CliRunner().invoke(app, ["data", "genmol", *words])
        assert said.exit_code == 2
        assert "the data of genmol need safe: pip install 'dprm[genmol]'" in " ".join(said.output.split())
    assert not (tmp_path / "genmol").exists()
    assert not (tmp_path / "molsets").exists()
    with pytest.raises(ValueError, match="SAFE needs safe: pip install 'dprm\\[genmol\\]'"):
        prepare(path, tmp_path / "out")


def test_a_file_without_molecules_is_an_error(tmp_path):
    for text, said in (("", "has no SMILES"), ("hello\nworld\n", "no molecule that can be written")):
        path = tmp_path / "empty.smi"
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            prepare(path, tmp_path)
