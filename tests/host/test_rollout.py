"""Answers to problems: ways, what they cost, and that a problem fares the same in any batch and after any kill."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode import Fixed
from dprm.fit import MonteCarlo
from dprm.host.decoded import decoded
from dprm.host.host import Problems
from dprm.host.rollout import BestOf, Decode, Rollout, best
from tests.draws import taught
from tests.mock_host import DECODINGS, MockHost
from tests.toy_host import ToyHost

HOST = ToyHost()


def answered(way, count=20, host=HOST, rows=7, seed=0, **how):
    problems = host.problems("test", count) if isinstance(count, int) else count
    return decoded(host, problems, {"way": way}, rows=rows, seed=seed, **how)["way"]


def same(a, b):
    """Of two rollouts all but the seconds, bit for bit."""
    theirs = b.tensors()
    return all(
        torch.equal(column.nan_to_num(-1), theirs[name].nan_to_num(-1))
        for name, column in a.tensors().items()
        if name != "seconds"
    )


def test_a_problem_fares_the_same_in_batches_of_any_size():
    way = Decode(dprm.Order(signal="random"))
    small, large = answered(way, rows=3), answered(way, rows=20)
    assert same(small, large)
    assert not torch.equal(small.step_map, answered(way, seed=1).step_map)


# Values at moments of a decoding need a schedule.
SCHEDULED = [name for name, how in DECODINGS.items() if isinstance(how.get("count", Fixed(1)), Fixed)] + [
    *("even", "compete", "remask", "remask, drawn", "remask, guard")
]
WAYS = {
    "the host's own": (Decode(), list(DECODINGS)),
    "learned": (Decode(taught(dprm.Order(rule="soft_bon", explore=True), 1)), list(DECODINGS)),
    "best of three": (BestOf(3), ["one", "remask", "context"]),
    "values asked": (MonteCarlo((0.0, 0.5), candidates=2), SCHEDULED),
    "values of paths": (MonteCarlo((0.3,), candidates=2, paths=2, temperature=1.0), ["one", "remask", "context"]),
}


@pytest.mark.parametrize(("way", "name"), [(way, name) for way, (_, names) in WAYS.items() for name in names])
def test_a_problem_fares_the_same_in_any_batch_whatever_the_host(way, name):
    """Also where rows end at different steps, tokens are drawn or taken back, and a context belongs to every row."""
    host, (how, _) = MockHost(**DECODINGS[name]), WAYS[way]
    problems = host.problems("test", 7)
    whole = answered(how, problems, host, rows=7)
    turned = torch.tensor([6, 2, 3, 0])
    assert same(whole[turned], answered(how, problems[turned], host, rows=3))
    assert not (whole.tokens == host.decoding.mask_id).any()


def test_a_context_is_of_its_row():
    host = MockHost(context=True)
    problems = host.problems("test", 7)
    turned = torch.tensor([3, 0, 1])
    others = replace(problems[turned], context=problems[torch.tensor([0, 1, 3])].context)
    alike, changed = answered(Decode(), problems[turned], host), answered(Decode(), others, host)
    assert same(alike, answered(Decode(), problems, host)[turned])
    assert not torch.equal(alike.tokens, changed.tokens)


def test_a_rollout_counts_calls_and_decisions():
    rollout = answered(Decode())
    assert rollout.nfe.tolist() == [4] * 20
    assert rollout.decisions.tolist() == rollout.picks.tolist() == [4] * 20
    assert rollout.changed.sum() == rollout.ready.sum() == 0
    assert rollout.scores.sum() == 0
    assert rollout.scores.shape == (20, 1)
    assert answered(Decode(), host=HOST.with_decoding(count=Fixed(2))).nfe.tolist() == [2] * 20


def test_rows_that_are_finished_are_not_paid_for():
    problems = HOST.problems("test", 6)
    canvas = problems.canvas.clone()
    canvas[::2, 1:] = 1
    rollout = answered(Decode(), Problems(canvas, problems.key, problems.facts), rows=6)
    assert rollout.nfe.tolist() == rollout.decisions.tolist() == [1, 4] * 3


def test_the_best_of_several_paths_costs_all_of_them_and_begins_with_the_host():
    host = HOST.with_decoding(signal=dprm.Order(signal="random").signal)
    plain, three = answered(Decode(), host=host), answered(BestOf(3), host=host)
    assert three.nfe.tolist() == [12] * 20
    assert (three.scores >= plain.scores).all()
    assert three.scores.sum() > plain.scores.sum()
    assert same(replace(answered(BestOf(1), host=host)), plain)
    paths = [answered(Decode(path=path), host=host) for path in range(3)]
    assert len({tuple(path.step_map.flatten().tolist()) for path in paths}) == 3
    chosen = best(host, paths)
    assert torch.equal(chosen.scores.amax(1), torch.stack([path.scores for path in paths]).amax(0).amax(1))
    with pytest.raises(ValueError, match="rollouts is empty"):
        best(host, [])


def test_a_temperature_is_that_of_the_way():
    cold, hot = answered(Decode()), answered(Decode(temperature=1.0))
    assert not torch.equal(cold.tokens, hot.tokens)
    assert same(hot, answered(Decode(), host=HOST.with_decoding(temperature=1.0)))


def test_rollouts_survive_their_tensors_and_are_taken_by_row():
    rollout = answered(Decode())
    assert same(Rollout.from_tensors(rollout.tensors()), rollout)
    assert same(Rollout.joined([rollout[:5], rollout[5:]]), rollout)


def test_problems_are_named_by_what_they_are_not_by_their_order():
    problems = HOST.problems("test", 10)
    turned = type(problems)(problems.canvas.flip(0), problems.key.flip(0), problems.facts[::-1])
    assert problems.digest == turned.digest
    assert problems.digest != HOST.problems("fit", 10).digest
    assert len(problems[3:5]) == 2


def test_every_copy_of_a_problem_has_a_stream_of_its_own():
    problems = HOST.problems("test", 6)
    many = problems.copies(5)
    assert len(set(many.key.tolist())) == 30
    assert bool((many.key >= 0).all())
    assert torch.equal(many.canvas[::5], problems.canvas)
    assert list(many.facts[5:10]) == [problems.facts[1]] * 5
    assert many.groups.tolist() == problems.key.repeat_interleave(5).tolist()
    with pytest.raises(ValueError, match="samples is 0"):
        problems.copies(0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"canvas": torch.zeros(3, 4)}, r"problems.canvas is torch.float32 \(3, 4\): expected int64"),
        ({"key": torch.tensor([1, 2])}, "problems.key has 2 rows for 3 canvases"),
        ({"key": torch.tensor([1, -2, 3])}, r"problems.key\[row 1\] is -2: expected at least 0"),
        ({"key": torch.tensor([1, 2, 1])}, r"problems.key\[row 2\] is 1, that of row 0 again"),
        ({"facts": [0, 1]}, "problems.facts has 2 rows for 3 canvases"),
        ({"context": torch.zeros(2, 5)}, "problems.context has 2 rows for 3 canvases"),
        ({"group": torch.zeros(2, dtype=torch.int64)}, "problems.group has 2 rows for 3 canvases"),
    ],
)
def test_problems_that_do_not_fit_are_named(change, message):
    problems = replace(HOST.problems("test", 3), **change)
    with pytest.raises(ValueError, match=message):
        decoded(HOST, problems, {"": Decode()})


class Counted(ToyHost):
    """The toy, which writes down how many rows were answered."""

    answered_rows: list[int] = []  # noqa: RUF012

    def judge(self, problems, tokens):
        self.answered_rows.append(len(problems))
        return super().judge(problems, tokens)


def test_a_killed_decoding_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("dprm.host.decoded._SAVED_EVERY", -1.0)
    host = Counted()
    Counted.answered_rows.clear()

    def kill(name, done):
        if done == 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answered(Decode(), host=host, folder=tmp_path, on_batch=kill)
    again = answered(Decode(), host=host, folder=tmp_path)
    assert Counted.answered_rows == [7, 7, 6]
    assert same(again, answered(Decode()))
    # Rows a batch are no part of what it belongs to.
    assert same(again, answered(Decode(), host=host, rows=3, folder=tmp_path))
    assert Counted.answered_rows == [7, 7, 6]


class Other(Counted):
    """The toy in other words."""

    def judge(self, problems, tokens):
        return 1.0 - super().judge(problems, tokens)


class Sharper(Counted):
    """The toy with another model."""

    def model(self):
        plain = super().model()
        return lambda tokens: 2.0 * plain(tokens)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"way": Decode(dprm.Order(signal="random"))},
        {"way": Decode(temperature=0.5)},
        {"way": Decode(path=1)},
        {"way": BestOf(2)},
        {"count": 19},
        {"host": Counted().with_decoding(count=Fixed(2))},
        {"host": Counted().with_decoding(temperature=0.5)},
        {"host": Other()},
        {"host": Sharper()},
    ],
    ids=["seed", "signal", "temperature", "path", "best of", "problems", "count", "hot host", "reward", "model"],
)
def test_whatever_could_change_an_answer_is_decoded_anew(tmp_path, change):
    plain = {"way": Decode(), "host": Counted(), "folder": tmp_path}
    answered(**plain)
    Counted.answered_rows.clear()
    answered(**plain)
    assert Counted.answered_rows == []
    answered(**{**plain, **change})
    assert sum(Counted.answered_rows) >= 19


def test_nothing_to_decode_is_said():
    with pytest.raises(ValueError, match="problems is empty"):
        answered(Decode(), HOST.problems("test", 0))
