"""The cell host: its problems, its judge, the order of its genes."""

import pytest
import torch

from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.host.identity import host_word
from dprm.host.rollout import Decode
from dprm.hosts.dcm.host import STEPS, TASK, judged
from dprm.hosts.dcm.model import CellConfig, CellModel
from dprm.hosts.dcm.structure import centres, kept_neighbours, kept_types, types_of
from dprm.order import Order
from dprm.train.denoiser import Denoiser, load_weights, save_weights
from tests.hosts.dcm.cells import GENES, counts, host


def test_the_judge_counts_hidden_genes_only():
    target = torch.tensor([[0, 0, 2, 4], [0, 0, 0, 0]])
    tokens = torch.tensor([[0, 1, 2, 2], [0, 0, 0, 0]])
    hidden = torch.tensor([[False, True, True, True], [True, True, True, True]])
    assert judged(tokens, target, hidden, 4).tolist() == [[0.5, 0.75, 0.0, pytest.approx(1 / 3)], [1, 1, 1, 1]]


def test_imputation_shows_a_part_of_a_held_out_cell():
    cells = host()
    problems = cells.problems("fit", 20)
    problems.check()
    shown = problems.canvas != cells.mask_id
    assert 0.05 < float(shown.double().mean()) < 0.3
    target = torch.stack(list(problems.facts)).long()
    assert torch.equal(problems.canvas[shown], target[shown])
    keys = [set(cells.problems(split, 200).groups.tolist()) for split in ("train", "fit", "select", "test")]
    assert sum(map(len, keys)) == len(set().union(*keys))


def test_the_protocol_of_the_paper_shows_nothing_and_takes_four_samples_a_cell():
    cells = host().at("unconditional")
    problems = cells.problems("fit", 8)
    problems.check()
    assert bool((problems.canvas == cells.mask_id).all())
    assert len(problems.groups.unique()) == 2
    rollout = Decode().answer(cells, problems, 0, cells.model())
    assert not torch.equal(rollout.tokens[0], rollout.tokens[1])
    with pytest.raises(ValueError, match="expected impute or unconditional"):
        host().at("easy")


def test_all_hidden_genes_are_decided_in_thirty_two_steps():
    cells = host()
    problems = cells.problems("fit", 6)
    rollout = Decode().answer(cells, problems, 0, cells.model())
    assert not bool((rollout.tokens == cells.mask_id).any())
    assert int(rollout.step_map.max()) <= STEPS
    assert torch.equal(rollout.step_map == 0, problems.canvas != cells.mask_id)


def test_every_preference_weighs_its_own_benefit_most():
    cells = host()
    scores = torch.eye(3)
    for name, own in (("R", 0), ("M", 1), ("Z", 2)):
        reward = cells.with_preference(cells.preferences[name]).reward(torch.cat([scores, torch.zeros(3, 1)], 1))
        assert int(reward.argmax()) == own


def test_the_model_never_gives_the_mask_and_sees_every_gene():
    model = CellModel(CellConfig(("a", "b", "c"), (2.0,), width=16, depth=1))
    tokens = torch.full((1, 3), model.config.mask_id)
    logits = model(tokens)
    assert logits.shape == (1, 3, model.config.vocabulary)
    assert bool((logits[..., -1] < -100).all())
    for gene in range(3):
        other = tokens.clone()
        other[0, gene] = 1
        assert not torch.equal(model(other), logits)


def test_weights_come_back_with_their_genes(tmp_path):
    model = CellModel(CellConfig(("a", "b", "c"), (2.0, 5.0), width=16, depth=1))
    save_weights(tmp_path / "w.safetensors", model, {})  # type: ignore[arg-type]
    loaded = TASK.load(tmp_path / "w.safetensors")
    assert loaded.bins == model.config.bins
    tokens = torch.randint(0, 4, (2, 3))
    assert torch.allclose(loaded.model()(tokens), Denoiser(model)(tokens), atol=1e-2)
    with pytest.raises(TypeError):  # A transformer is another shape.
        load_weights(tmp_path / "w.safetensors")


def test_trivial_baselines_are_judged_beside_the_orders():
    cells = host()
    problems = cells.problems("fit", 8)
    cells.ways = {rule: way for rule, way in cells.ways.items() if rule != "magic"}
    card = compare(cells, problems, arms_of(cells, ["random"]), resamples=50).card
    assert card.arms["zeros"].metrics["zero"].mean == 1.0
    assert card.arms["zeros"].metrics["nonzero"].mean == 0.0
    # Cells are of two kinds, which their neighbours know and the mean of all does not.
    assert card.arms["neighbours"].metrics["mae"].mean > card.arms["typical"].metrics["mae"].mean
    assert card.arms["zeros"].nfe == 0
    assert card.paired


def test_one_calibration_serves_every_preference(tmp_path):
    from dprm.fit import estimator, fit

    cells, asked = host(), []
    values = {}
    for name in ("R", "Z"):
        chosen = cells.with_preference(cells.preferences[name])
        fitted = fit(
            estimator("sets"), chosen, calls=3000, folder=tmp_path, on_progress=lambda calls, _: asked.append(calls)
        )
        values[name] = fitted.policy.table.value
        assert int(fitted.policy.notes["calls"]) <= 3000
    assert not torch.equal(values["R"], values["Z"])
    assert len(list(tmp_path.glob("sets-*.piece"))) == 1


def test_a_set_is_credited_with_what_came_of_it():
    """Of branches that go on alike, only the set differs: where none matters, no value is anything but 0."""
    from dprm.fit import estimator, fit

    cells = host()
    flat = cells.with_preference(cells.preferences["R"])
    flat.judge = lambda problems, tokens: torch.full((len(tokens), 4), 0.5)
    policy = fit(estimator("sets"), flat, calls=3000).policy
    assert float(policy.table.value.abs().max()) < 1e-6
    assert float(policy.table.support.sum()) > 0
    terminal = fit(estimator("sets", credit="terminal"), flat, calls=3000).policy
    reward = float(flat.reward(torch.full((1, 4), 0.5)))
    seen = terminal.table.support > 0
    assert torch.allclose(terminal.table.value[seen], torch.tensor(reward, dtype=torch.float64), atol=1e-6)


def test_sets_are_for_hosts_with_a_schedule():
    from dprm.decode import Fixed
    from dprm.fit import estimator, fit

    with pytest.raises(ValueError, match="needs a schedule"):
        fit(estimator("sets"), host().with_decoding(count=Fixed(2)), calls=1000)


def test_orders_change_what_is_imputed():
    cells = host()
    problems = cells.problems("fit", 6)
    ways = [Decode(Order(signal=name)).answer(cells, problems, 0, cells.model()) for name in ("confidence", "random")]
    assert not torch.equal(ways[0].step_map, ways[1].step_map)
    assert problems.canvas.shape[1] == GENES


def test_neighbours_are_kept_by_the_truth_and_lost_by_noise():
    cells = torch.from_numpy(counts(60))
    assert kept_neighbours(cells, cells).tolist() == [1.0] * 60
    noise = torch.randint(0, 9, cells.shape, generator=torch.Generator().manual_seed(0)).float()
    assert kept_neighbours(noise, cells).mean() < 0.4
    halves = cells.clone()
    halves[:, ::2] = 0  # What is left of the two kinds still tells them apart.
    assert kept_neighbours(noise, cells).mean() < kept_neighbours(halves, cells).mean() < 1.0


def test_types_are_found_in_training_cells_and_told_by_neighbours():
    train, cells = torch.from_numpy(counts(100)), torch.from_numpy(counts(60, seed=1))
    kind = types_of(cells, centres(train, types=2))
    assert kind[::2].unique().numel() == kind[1::2].unique().numel() == 1  # The cells are of two kinds.
    assert kind[0] != kind[1]
    assert kept_types(cells, kind).tolist() == [1.0] * 60
    noise = torch.randint(0, 9, cells.shape, generator=torch.Generator().manual_seed(0)).float()
    assert 0.2 < kept_types(noise, kind).mean() < 0.8


def test_structure_has_an_interval_with_one_decode_seed_and_none_of_it_is_rewarded():
    cells = host()
    problems = cells.problems("fit", 12)
    cells.ways = {}
    card = compare(cells, problems, arms_of(cells, ["random"]), resamples=50).card
    for name in ("neighbours", "types"):
        assert card.arms["random"].metrics[name].delta_low is not None
        assert name not in {metric.name for metric in cells.judged}
    before = host_word(cells)
    cells.judge_set(problems, torch.stack(list(problems.facts)).long())
    assert host_word(cells) == before
