"""A person's cells: raw counts are read, anything else is named."""

import sys

import numpy
import pytest
import torch
from typer.testing import CliRunner

from dprm.cli import app
from dprm.hosts.dcm.bins import MOST_CUTS, Bins
from tests.hosts.dcm.cells import GENES, counts, names

anndata = pytest.importorskip("anndata")

from dprm.hosts.dcm.counts import counts_of, read_counts  # noqa: E402
from dprm.hosts.dcm.data import KIND, prepare  # noqa: E402
from dprm.order.files import read_tensors  # noqa: E402


def annotated(matrix, cells=None, genes=None):
    import pandas

    obs = pandas.DataFrame(index=cells or names(matrix.shape[0]))
    var = pandas.DataFrame(index=genes or [f"g{gene}" for gene in range(matrix.shape[1])])
    return anndata.AnnData(matrix, obs=obs, var=var)


def test_counts_are_read_dense_and_sparse():
    from scipy.sparse import csr_matrix

    raw = counts(6)
    for matrix in (raw, csr_matrix(raw)):
        read = counts_of(annotated(matrix), "mine")
        assert numpy.array_equal(read.dense(), raw)
        assert read.lines == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: numpy.log1p(raw), "normalised or log-transformed values, no counts"),
        (lambda raw: raw - 2, "scaled values, no counts"),
        (lambda raw: numpy.where(raw > 5, numpy.nan, raw), "no counts"),
        (lambda raw: raw * 0, "no cell with any count"),
        (lambda raw: raw[:0], "there is nothing to read"),
    ],
)
def test_what_are_no_counts_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        counts_of(annotated(change(counts(6))), "mine")


def test_duplicates_and_empty_cells_are_left_out_and_said():
    raw = counts(5)
    raw[3] = 0
    genes = [f"g{gene}" for gene in range(GENES - 1)] + ["g0"]
    with pytest.warns(UserWarning, match="not unique"):
        data = annotated(raw, cells=["a", "b", "a", "c", "d"], genes=genes)
    read = counts_of(data, "mine")
    assert (read.cells, read.rows) == (["a", "b", "d"], [0, 1, 4])
    assert len(read.genes) == GENES - 1
    assert numpy.array_equal(read.dense(), raw[[0, 1, 4], : GENES - 1])
    told = "\n".join(read.lines)
    assert "1 columns of genes that come twice, such as 'g0'" in told
    assert "1 rows of cells that come twice, such as 'a'" in told
    assert "1 cells without any count" in told


def test_a_missing_layer_names_those_there_are(tmp_path):
    data = annotated(counts(4))
    data.layers["raw"] = counts(4)
    data.write_h5ad(tmp_path / "cells.h5ad")
    assert len(read_counts(tmp_path / "cells.h5ad", "raw").cells) == 4
    with pytest.raises(ValueError, match="no layer 'counts': it has raw"):
        read_counts(tmp_path / "cells.h5ad", "counts")


def test_a_file_of_another_kind_is_an_error(tmp_path):
    (tmp_path / "no.h5ad").write_text("hello")
    with pytest.raises(ValueError, match=r"no readable \.h5ad file"):
        read_counts(tmp_path / "no.h5ad")
    with pytest.raises(ValueError, match="there is no file"):
        read_counts(tmp_path / "missing.h5ad")


def test_without_anndata_nothing_is_downloaded_and_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "anndata", None)
    said = CliRunner().invoke(app, ["data", "dcm"])
    assert said.exit_code == 2
    assert "the data of dcm need anndata: pip install 'dprm[dcm]'" in " ".join(said.output.split())
    assert not (tmp_path / "palantir").exists()
    (tmp_path / "cells.h5ad").write_bytes(b"")
    with pytest.raises(ValueError, match="cells need anndata: pip install"):
        read_counts(tmp_path / "cells.h5ad")


def test_bins_grow_with_counts_and_none_is_out_of_reach():
    raw = counts(200)
    bins = Bins.fitted(raw, [f"g{gene}" for gene in range(GENES)])
    line = bins.of(numpy.arange(100, dtype=numpy.float32))
    assert line[0] == 0
    assert line[1] == 1
    assert bool((line[1:] >= line[:-1]).all())
    reached = bins.of(raw)
    assert set(reached.unique().tolist()) == set(range(bins.top + 1))
    many = numpy.random.default_rng(0).integers(1, 10_000, (500, 8)).astype(numpy.float32)
    wide = Bins.fitted(many, list("abcdefgh"))
    assert len(wide.cuts) <= MOST_CUTS


def test_genes_and_bins_are_those_of_training_cells_alone(tmp_path):
    raw, cells = counts(160), names(160)
    before, _ = _prepared(tmp_path / "a.h5ad", raw, cells)
    held_out = ~before["train"]
    raw[held_out] *= 50  # Cells that are held out say nothing about genes and bins.
    after, header = _prepared(tmp_path / "b.h5ad", raw, cells)
    assert header["cuts"] == before["cuts"]
    assert not torch.equal(after["bins"], before["bins"])


def _prepared(path, raw, cells):
    from dprm.data.splits import in_split

    annotated(raw, cells=cells).write_h5ad(path)
    prepared, lines = prepare(path, path.parent / path.stem)
    tensors, header = read_tensors(prepared, KIND)
    assert lines[0].startswith("160 cells (")
    return {**tensors, "train": in_split(tensors["key"], "train").numpy(), "cuts": header["cuts"]}, header
