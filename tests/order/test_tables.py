"""An Order with several tables acts as one Order a table would, in whatever batch rows of different tables are."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order import Cells, Stats
from tests.draws import RULES, seeds
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

TABLES, SHAPE = 3, (4, 8, 1)
HOW = {"mask_id": MASK, "budget": 2}


def evidence(cells, offset, seed):
    """What one table has seen: other cells and other rewards than the next."""
    draw = torch.Generator().manual_seed(seed + offset)
    cell = torch.randint(Cells(*SHAPE).count, (3000,), generator=draw)
    bias = torch.rand(Cells(*SHAPE).count, generator=draw)
    stats = Stats(cells, 1.0)
    stats.add(cell + offset * (cells.each if cells.tables > 1 else 0), bias[cell] * torch.rand(3000, generator=draw))
    return stats


def orders(rule, seed, **settings):
    """An Order with three tables, and three with one each, of the same evidence."""
    how = {"rule": rule, "explore": True, "ready": 8, "guidance": 5.0, **settings}
    several = dprm.Order(*SHAPE, tables=TABLES, **how)
    alone = [dprm.Order(*SHAPE, **how) for _ in range(TABLES)]
    for number, order in enumerate(alone):
        several.merge(evidence(several.cells, number, seed))
        order.merge(evidence(order.cells, number, seed))
    return several, alone


@given(seed=seeds, rule=st.sampled_from(RULES), baseline=st.sampled_from(["none", "global"]))
def test_several_tables_decode_as_one_table_at_a_time(seed, rule, baseline):
    several, alone = orders(rule, seed, baseline=baseline)
    canvas, table, row_seeds = masked_canvas(6, 10), torch.tensor([2, 0, 1, 1, 2, 0]), torch.arange(6) + seed
    together = dprm.decode(MockDenoiser(1), canvas, several, table=table, seed=row_seeds, **HOW)
    for number, order in enumerate(alone):
        rows = table == number
        single = dprm.decode(MockDenoiser(1), canvas[rows], order, seed=row_seeds[rows], **HOW)
        assert torch.equal(together.step_map[rows], single.step_map)
        assert torch.equal(together.tokens[rows], single.tokens)
        assert torch.equal(together.trace.changed[rows], single.trace.changed)


@given(seed=seeds, rule=st.sampled_from(RULES))
def test_a_row_decodes_the_same_in_any_batch_of_tables(seed, rule):
    several, _ = orders(rule, seed)
    canvas, table, row_seeds = masked_canvas(6, 10), torch.tensor([2, 0, 1, 1, 2, 0]), torch.arange(6) + seed
    canvas[2, 4:] = 1  # It is finished early, and leaves the batch.
    whole = dprm.decode(MockDenoiser(1), canvas, several, table=table, seed=row_seeds, **HOW)
    turned = torch.tensor([5, 3, 2])
    part = dprm.decode(MockDenoiser(1), canvas[turned], several, table=table[turned], seed=row_seeds[turned], **HOW)
    assert torch.equal(whole.step_map[turned], part.step_map)
    assert torch.equal(whole.tokens[turned], part.tokens)


def test_what_a_row_earns_is_credited_to_its_own_table():
    several, alone = (dprm.Order(*SHAPE, tables=tables, baseline="none") for tables in (TABLES, 1))
    canvas, table, reward = masked_canvas(6, 10), torch.tensor([2, 0, 2, 2, 2, 0]), torch.rand(6)
    several.observe(dprm.decode(MockDenoiser(1), canvas, several, table=table, **HOW).trace, reward)
    seen = several.stats.count.view(TABLES, -1).sum(1).tolist()
    assert seen == [2 * 8, 0, 4 * 8]
    rows = table == 2
    alone.observe(dprm.decode(MockDenoiser(1), canvas[rows], alone, **HOW).trace, reward[rows])
    assert torch.equal(several.table().value.view(TABLES, -1)[2], alone.table().value)
    assert not several.table().value.view(TABLES, -1)[1].any()


def test_several_tables_survive_their_file(tmp_path):
    several, _ = orders("top_m", 1)
    several.policy().save(tmp_path / "p.dprm")
    loaded = dprm.Order.from_policy(dprm.Policy.load(tmp_path / "p.dprm"))
    assert loaded.cells.tables == TABLES
    assert torch.equal(loaded.table().value, several.table().value)
    assert several.policy().digest != orders("top_m", 2)[0].policy().digest


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "this Order has 3 tables: expected table, the one of every row"),
        (torch.tensor([0, 3]), r"table\[row 1\] is 3: this Order has tables = 3"),
        (torch.tensor([0, 1, 2]), r"table has shape \(3,\): expected \(2,\), one table a row"),
        (torch.tensor([0.0, 1.0]), "table"),
    ],
)
def test_tables_that_do_not_fit_are_named(table, message):
    several, _ = orders("top_m", 1)
    with pytest.raises((ValueError, TypeError), match=message):
        dprm.decode(MockDenoiser(1), masked_canvas(2, 6), several, table=table, **HOW)
