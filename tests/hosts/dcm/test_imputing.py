"""`dprm impute`: a person's file comes back with layers that scanpy opens."""

import numpy
import pytest

anndata = pytest.importorskip("anndata")

from typer.testing import CliRunner  # noqa: E402

from dprm.cli import app  # noqa: E402
from dprm.hosts.dcm import imputing  # noqa: E402
from dprm.train.denoiser import save_weights  # noqa: E402
from tests.hosts.dcm.cells import counts, host  # noqa: E402
from tests.hosts.dcm.test_counts import annotated  # noqa: E402


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.safetensors"
    save_weights(path, host().model().model, {})
    return path


def impute(*words):
    return CliRunner().invoke(app, ["impute", *map(str, words)])


def test_genes_that_are_not_measured_are_imputed(tmp_path, weights):
    raw = counts(5)
    data = annotated(numpy.concatenate([raw[:, ::2], raw[:, :1]], 1), genes=[f"g{g}" for g in range(0, 24, 2)] + ["x"])
    data.obs["kind"] = list("ababa")
    data.write_h5ad(tmp_path / "panel.h5ad")
    said = impute(tmp_path / "panel.h5ad", "--out", tmp_path / "out.h5ad", "--weights", weights)
    assert said.exit_code == 0, said.output
    assert "12 of 24 genes of the model are not in the file: imputed" in said.output
    made = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert made.shape == (5, 24)
    assert list(made.obs["kind"]) == list("ababa")
    bins, step = made.layers[imputing.BINS], made.layers[imputing.STEP]
    assert list(made.var["measured"]) == [True, False] * 12
    assert (step[:, ::2] == 0).all()
    assert (step[:, 1::2] > 0).all()
    assert numpy.array_equal(bins[:, ::2], host().bins.of(raw).numpy()[:, ::2])
    assert bins.min() >= 0
    assert bins.max() <= host().bins.top
    confidence = made.layers[imputing.CONFIDENCE]
    assert ((confidence > 0) & (confidence <= 1)).all()


def test_what_is_masked_is_imputed_and_the_rest_stays(tmp_path, weights):
    data = annotated(counts(4))
    data.layers["hide"] = (numpy.arange(96).reshape(4, 24) % 3 == 0).astype(numpy.int8)
    data.write_h5ad(tmp_path / "cells.h5ad")
    said = impute(tmp_path / "cells.h5ad", "--out", tmp_path / "out.h5ad", "--weights", weights, "--mask", "hide")
    assert said.exit_code == 0, said.output
    made = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert numpy.array_equal(made.layers[imputing.STEP] > 0, data.layers["hide"] > 0)


def test_scanpy_opens_what_was_imputed(tmp_path, weights):
    scanpy = pytest.importorskip("scanpy")
    annotated(counts(4)).write_h5ad(tmp_path / "cells.h5ad")
    assert impute(tmp_path / "cells.h5ad", "--out", tmp_path / "o.h5ad", "--weights", weights, "--zeros").exit_code == 0
    made = scanpy.read_h5ad(tmp_path / "o.h5ad")
    scanpy.pp.calculate_qc_metrics(made, layer=imputing.BINS, inplace=True, percent_top=None)
    assert "total_counts" in made.obs


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (lambda data: None, [], "nothing is hidden"),
        (lambda data: None, ["--mask", "hide"], "no layer 'hide'"),
        (lambda data: None, ["--layer", "raw"], "no layer 'raw'"),
        (lambda data: setattr(data, "var_names", [f"m{g}" for g in range(24)]), [], "must be of the same kind"),
        (lambda data: setattr(data, "X", numpy.log1p(data.X)), [], "no counts"),
    ],
)
def test_a_file_that_cannot_be_imputed_says_why(tmp_path, weights, change, words, said):
    data = annotated(counts(4))
    change(data)
    data.write_h5ad(tmp_path / "cells.h5ad")
    result = impute(tmp_path / "cells.h5ad", "--out", tmp_path / "out.h5ad", "--weights", weights, *words)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out.h5ad").exists()
