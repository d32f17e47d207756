"""FASTA in and out: what is wrong is said by record, and what is written is read back the same."""

import pytest

from dprm.data.fasta import Alphabet, Record, read_fasta, write_fasta

DNA = Alphabet("ACGT", "bases", shortest=8, longest=8, unknown={"N": "an unknown base cannot be scored"})
PROTEIN = Alphabet("ACDEFGHIKLMNPQRSTVWY", "amino acids", shortest=4, longest=200, masks="X_")


def file(tmp_path, text):
    (tmp_path / "mine.fa").write_text(text)
    return tmp_path / "mine.fa"


def test_sequences_over_several_lines_in_any_case_are_read(tmp_path):
    text = ">one of mine\nACG\n TAC\ngt\n\n; a remark\n>\nTTTTTTTT\n"
    records, left_out = read_fasta(file(tmp_path, text), DNA)
    assert records == [Record("one", "ACGTACGT"), Record("record-2", "TTTTTTTT")]
    assert left_out == []


@pytest.mark.parametrize(
    ("letters", "said"),
    [
        ("ACGTNCGT", r"record 1 \(mine\): position 5 is 'N': an unknown base cannot be scored"),
        ("ACGTZCGT", r"record 1 \(mine\): position 5 is 'Z': expected bases ACGT"),
        ("ACGT", r"record 1 \(mine\): it has 4 letters: expected 8"),
        ("", r"record 1 \(mine\): it holds no sequence"),
    ],
)
def test_what_is_wrong_with_a_sequence_is_said(tmp_path, letters, said):
    records, left_out = read_fasta(file(tmp_path, f">mine\n{letters}\n>good\nACGTACGT\n"), DNA)
    assert [record.name for record in records] == ["good"]
    with pytest.raises(ValueError, match=said):
        raise ValueError(left_out[0])
    assert len(left_out) == 1


def test_masks_are_letters_only_where_there_are_masks(tmp_path):
    records, left_out = read_fasta(file(tmp_path, ">a\nEVX_LES\n>b\nEV-LES\n>c\nEV\n"), PROTEIN)
    assert [record.letters for record in records] == ["EVX_LES"]
    assert "position 3 is '-': expected amino acids" in left_out[0]
    assert "X or _ where a position is to be filled" in left_out[0]
    assert "it has 2 letters: expected 4 to 200" in left_out[1]


def test_dna_is_not_taken_for_a_protein(tmp_path):
    _, left_out = read_fasta(file(tmp_path, f">gene\n{'ACGTX' * 8}\n"), PROTEIN)
    assert "the letters ACGT alone, as DNA has: expected amino acids" in left_out[0]


@pytest.mark.parametrize("text", ["", "\n\n", "; nothing\n"])
def test_an_empty_file_is_an_error(tmp_path, text):
    with pytest.raises(ValueError, match=r"mine\.fa is empty: expected records such as `>name`"):
        read_fasta(file(tmp_path, text), DNA)


def test_a_file_of_another_kind_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"is no FASTA file: line 1 is 'ACGTACGT', expected >name before it"):
        read_fasta(file(tmp_path, "ACGTACGT\n"), DNA)
    (tmp_path / "mine.fa").write_bytes(b">a\n\xff\xfe")
    with pytest.raises(ValueError, match=r"is not UTF-8 text \(byte 3\)"):
        read_fasta(tmp_path / "mine.fa", DNA)


def test_what_is_written_is_read_back(tmp_path):
    long = Alphabet("ACGT", "bases", 1, 1000)
    records = [Record("a", "ACGT" * 40, {"motif score": 0.25, "p": 1.0}), Record("b", "T")]
    write_fasta(tmp_path / "out.fa", records)
    lines = (tmp_path / "out.fa").read_text().splitlines()
    assert lines[0] == ">a motif_score=0.25 p=1"
    assert max(map(len, lines)) == 60
    back, _ = read_fasta(tmp_path / "out.fa", long)
    assert [(record.name, record.letters) for record in back] == [(each.name, each.letters) for each in records]
