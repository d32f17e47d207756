"""The benchmarks of an accelerator run anywhere, on small shapes: what they measure there means nothing."""

from benchmarks import gpu


def test_every_suite_gives_its_rows():
    rows = gpu.reading((2, 8, 50), {"mask by a table": 1e9}, repeats=1)
    rows += gpu.selecting((4, 40), repeats=1)
    model = gpu.random_model(layers=2, width=32, heads=2, inner=48, vocabulary=64)
    rows += gpu.decoding(model, 2, length=64, steps=8, repeats=1)
    named = [row["what"] for row in rows]
    assert len(set(named)) == len(named) >= 24
    assert all(row["microseconds"] > 0 for row in rows if row["microseconds"] is not None)


def test_without_an_accelerator_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu", "--out", str(tmp_path / "card.json")])
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    assert gpu.main() == 2
    assert not (tmp_path / "card.json").exists()
