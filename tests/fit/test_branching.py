"""Branching: where it goes, what it compares, and what it costs."""

import math
from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode import Fixed, HoldBack
from dprm.decode.loop import advance, begin, commit
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching, _Visits
from dprm.fit.leaning import Leaning
from dprm.host.host import Problems
from dprm.order.features import LEFT
from dprm.order.files import read_tensors, write_tensors
from dprm.order.head import Head, Sight
from dprm.order.noise import mix, mix_rows
from tests.draws import taught
from tests.mock_host import DECODINGS, MockHost
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


def collect(problems, host=HOST, order=None, branching=BRANCHING, **how):
    posed = host.problems("fit", problems) if isinstance(problems, int) else problems
    return branching.collect(host, posed, order or host.decoding.order(), host.model(), **how)


def test_a_branch_differs_from_its_native_decoding_in_one_choice():
    branches, cost = collect(8)
    rows = torch.arange(len(branches))
    assert branches.sight.candidates[rows, branches.native].all()
    assert branches.sight.candidates.gather(1, branches.alternative)[branches.tried].all()
    assert (branches.alternative != branches.native.unsqueeze(1))[branches.tried].all()
    # Confidence earns nothing here, so an alternative can only gain, and some do.
    gain = branches.gain(HOST)[branches.tried]
    assert gain.min() == 0
    assert gain.max() == 1
    assert cost.rollouts == 8
    assert cost.branches == branches.count == int(branches.tried.sum())


# Some of them also under an order that draws.
DRAWING = ("one", "even", "guard, blocks", "compete", "remask", "drawn")


@pytest.mark.parametrize(
    ("name", "draws"), [*((name, False) for name in DECODINGS), *((name, True) for name in DRAWING)]
)
def test_a_branch_is_the_hosts_own_decoding_with_another_set_of_positions(name, draws, monkeypatch):
    """Every branch by hand: the native set with one position exchanged, and then the plain loop to the end."""
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    host = MockHost(**DECODINGS[name])
    signal = host.decoding.signal
    order = taught(dprm.Order(rule="soft_bon", explore=True, signal=signal), 1) if draws else host.decoding.order()
    problems, steps = host.problems("fit", 4), []
    branches, cost = collect(problems, host, order, Branching(states=2, alternatives=2))
    start = begin(problems.canvas, host.decoding, mix_rows(problems.key, mix(0)), problems.context)
    native = advance(host.model(), start, order, host.decoding, on_step=steps.append)
    calls = int(native.row_nfe.sum())
    assert branches.count > 0
    for number in range(len(branches)):
        (row,) = (problems.key == branches.group[number]).nonzero().flatten().tolist()
        assert torch.equal(branches.native_scores[number], host.scores(problems, native.tokens)[row])
        step, index = the_step(host, steps, row, branches[number : number + 1].sight)
        for alternative in branches.alternative[number][branches.tried[number]].tolist():
            chosen = step.choice.mask[index].clone()
            if host.decoding.together is not None:
                chosen |= step.choice.candidates[index] & (step.reading.confidence[index] > host.decoding.together)
            assert bool(step.choice.mask[index, branches.native[number]])
            assert not bool(chosen[alternative])
            chosen[[int(branches.native[number]), alternative]] = torch.tensor([False, True])
            tokens, eligible = step.reading.tokens[[index]], step.eligible[[index]]
            active = torch.tensor([True])
            forced = commit(step.state[torch.tensor([index])], tokens, chosen[None], eligible, active, host.decoding)
            ended = advance(host.model(), forced, order, host.decoding)
            calls += int(ended.row_nfe.sum())
            slot = branches.alternative[number].tolist().index(alternative)
            score = host.scores(problems[row : row + 1], ended.tokens)
            assert torch.equal(branches.scores[number, slot], score[0]), (number, alternative)
    assert cost.calls == calls if cost.rejoined == 0 else cost.calls < calls
    assert bool(branches.gain(host).any())


def test_what_is_kept_for_branches_does_not_grow_with_the_steps():
    """Canvases of one width: of some ten positions are masked, of others a hundred."""
    table = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    decoding, sizes = dprm.Decoding(mask_id=4), []
    for steps in (10, 100):
        canvas = torch.zeros(2, 100, dtype=torch.int64)
        canvas[:, :steps] = 4
        visits, held = _Visits(2, 3, None), set()

        def look(step, visits=visits, held=held):
            visits.offer(step)
            held.add(sum(column.nbytes for column in (visits._key, *visits._columns.values())))

        ended = advance(
            lambda tokens: table.expand(2, 100, 4), begin(canvas, decoding), decoding.order(), decoding, on_step=look
        )
        assert ended.nfe == steps
        sizes.append(held)
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == 1


def the_step(host, steps, row, sight):
    """The step of a row that showed this, and where the row stood in its batch."""
    for step in steps:
        for index in (step.state.row == row).nonzero().flatten().tolist():
            state_of = host.decoding.state_of
            aux = None if state_of is None else state_of(step.state.tokens, step.reading)
            shown = Sight.of(step.reading, step.choice.candidates, step.choice.budget, step.progress, aux)
            shown = shown[torch.tensor([index])]
            if all(torch.equal(column, getattr(sight, name)) for name, column in vars(shown).items()):
                return step, index
    raise AssertionError("no step of the native decoding showed what the branch was made of")


@pytest.mark.parametrize("name", DECODINGS)
def test_branches_do_not_depend_on_the_batch(name):
    host, branching = MockHost(**DECODINGS[name]), Branching(states=2, alternatives=2)
    problems = host.problems("fit", 6)
    whole, _ = collect(problems, host, branching=branching)
    turned = torch.tensor([5, 2, 3])
    few, _ = collect(problems[turned], host, branching=branching, rows=5)
    rows = torch.cat([(whole.group == key).nonzero().flatten() for key in turned.tolist()])
    assert same(whole[rows], few)


def test_how_many_rows_are_decoded_together_changes_no_cost():
    (whole, cost), (few, few_cost) = collect(9), collect(9, rows=4)
    assert same(whole, few)
    assert cost == few_cost


def same(a, b):
    columns = b.tensors()
    return all(torch.equal(column, columns[name]) for name, column in a.tensors().items())


@pytest.mark.parametrize("width", [1, 2])
def test_a_branch_that_comes_back_is_not_continued(monkeypatch, width):
    host = HOST.with_decoding(count=Fixed(width))
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    monkeypatch.setattr("dprm.fit.branching._LOOK", 1)
    short, short_cost = collect(20, host)
    monkeypatch.setattr("dprm.fit.branching._LOOK", 100)
    whole, whole_cost = collect(20, host)
    assert same(short, whole)
    assert whole.gain(host).any()
    assert whole_cost.rejoined == 0
    if width == 1:
        assert 0 < short_cost.rejoined < short_cost.branches
        assert short_cost.calls < whole_cost.calls


@pytest.mark.parametrize("name", ["one", "threshold", "random", "even", "blocks", "remask"])
def test_how_often_it_is_looked_whether_a_branch_came_back_changes_no_difference(monkeypatch, name):
    host = MockHost(**DECODINGS[name])
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    found = []
    for look in (1, 3, 100):
        monkeypatch.setattr("dprm.fit.branching._LOOK", look)
        found.append(collect(6, host)[0])
    assert same(found[0], found[1])
    assert same(found[0], found[2])


class Certain(ToyHost):
    """The four bits of the toy, and then eight positions that are certain from the start."""

    def model(self):
        four, sure = super().model(), torch.tensor([9.0, 0.0])
        return lambda tokens: torch.cat([four(tokens[:, :4]), sure.expand(len(tokens), 8, 2)], dim=1)

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return replace(posed, canvas=torch.full((count, 12), self.decoding.mask_id))

    def judge(self, problems, tokens):
        return super().judge(problems, tokens[:, :4])


def test_what_is_certain_is_revealed_together_and_changes_no_difference(monkeypatch):
    # Far behind: the unsure four come first, and what is certain would take a step each.
    order = dprm.Order(signal=lambda reading: 1.0 - 0.9 * (reading.confidence > 0.99).float())
    quick, quick_cost = collect(20, Certain(), order)
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    slow, slow_cost = collect(20, Certain(), order)
    assert same(quick, slow)
    assert quick.gain(HOST).any()
    native = 12 * 20
    assert (quick_cost.calls - native) < 0.5 * (slow_cost.calls - native)


def test_a_host_that_reveals_together_itself_is_branched_as_it_decodes():
    host = Certain().with_decoding(together=0.99)
    branches, _ = collect(20, host)
    assert branches.gain(host).any()
    # What is surer goes with the choice: it is neither the native position nor an alternative.
    tried = branches.alternative[branches.tried]
    assert (tried < 4).all()
    assert (branches.native < 4).all()


def test_what_a_host_holds_back_is_not_revealed_early():
    host = Certain().with_decoding(guard=HoldBack((0,)))
    branches, _ = collect(6, host, branching=Branching(states=2, alternatives=2))
    assert branches.tried.any()
    predicted = branches.sight.tokens.gather(1, branches.alternative)
    waiting = (branches.sight.tokens != 0) & branches.sight.candidates
    assert (predicted[waiting.any(1)] != 0)[branches.tried[waiting.any(1)]].all()


def test_two_certain_positions_are_not_compared():
    class Sure(ToyHost):
        def model(self):
            return lambda tokens: torch.tensor([20.0, 0.0, 0.0]).expand(*tokens.shape, 3)

    branches, cost = collect(4, Sure())
    assert not branches.tried.any()
    assert cost.branches == 0


def test_positions_far_behind_are_tried_too():
    head = Head(Leaning(LEFT, -1000.0).weight(1, 4).float(), support=1000)
    order = dprm.Order(head=head, guidance=1.0, signal="odds")
    branches, _ = collect(400, order=order, branching=Branching(states=4, alternatives=1, temper=0.3))
    first = branches.sight.candidates.all(1)
    assert (branches.native[first] == 0).all()
    # The second is 250 log odds ahead of the third; those behind it count as ten behind: e⁻³ : e⁻³ : 1.
    others = float((branches.alternative[first, 0] > 1).float().mean())
    assert others == pytest.approx(2 / (2 + math.exp(3.0)), abs=0.05)


class SureThenUnsure(ToyHost):
    """Eight positions, four of them certain, whatever else is revealed."""

    def model(self):
        confidence = torch.tensor([1 - 1e-5] * 4 + [0.6] * 4)
        logits = torch.stack([confidence.log(), (1 - confidence).log(), torch.full((8,), -30.0)], dim=1)
        return lambda tokens: logits.expand(*tokens.shape, 3)

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return replace(posed, canvas=torch.full((count, 8), self.decoding.mask_id))

    def judge(self, problems, tokens):
        return torch.zeros(len(tokens))


def test_sure_choices_are_looked_into_where_several_positions_are_revealed(monkeypatch):
    def early(even, width):
        monkeypatch.setattr("dprm.fit.branching._EVEN", even)
        host = SureThenUnsure().with_decoding(count=Fixed(width))
        branches, _ = collect(64, host, branching=Branching(states=1))
        return int((branches.sight.progress < 0.5).sum())

    assert early(0.0, 1) == early(0.5, 1) == 0
    assert early(0.0, 2) == 0
    assert 0 < early(0.5, 2) < early(1.0, 2) < 64


def test_states_are_drawn_in_proportion_to_what_they_can_tell():
    """ε − log(confidence of the choice): of three steps with alternatives the unsure ones are seen more often."""

    class Fading(ToyHost):
        def model(self):
            confidence = torch.tensor([0.9, 0.8, 0.7, 0.6])
            logits = torch.stack([confidence.log(), (1 - confidence).log(), torch.full((4,), -30.0)], dim=1)
            return lambda tokens: logits.expand(*tokens.shape, 3)

    branches, _ = collect(1500, Fading(), branching=Branching(states=1, alternatives=1))
    weight = 0.002 - torch.tensor([0.9, 0.8, 0.7]).log()
    seen = branches.native.bincount(minlength=4)[:3] / len(branches)
    torch.testing.assert_close(seen, weight / weight.sum(), atol=0.04, rtol=0)


def test_two_positions_a_step_keep_the_other_one():
    host = HOST.with_decoding(count=Fixed(2))
    branches, _ = collect(6, host, branching=Branching(states=2, alternatives=4))
    assert (branches.sight.budget == 2).all()
    assert (branches.sight.candidates.sum(1) > 2).all()


def test_branches_survive_a_file(tmp_path):
    branches, _ = collect(4)
    write_tensors(tmp_path / "b", branches.tensors(), {"kind": "dprm.piece"})
    again = Branches.from_tensors(read_tensors(tmp_path / "b", "dprm.piece")[0])
    assert same(branches, again)
    assert torch.equal(again.gain(HOST), branches.gain(HOST))


def test_held_out_problems_are_whole():
    branches, _ = collect(40)
    seen = []
    for learned, judged in branches.folds(3):
        assert len(learned) + len(judged) == len(branches)
        assert not set(learned.group.tolist()) & set(judged.group.tolist())
        assert 0 < len(judged) < len(learned)
        seen += judged.group.tolist()
    assert sorted(seen) == sorted(branches.group.tolist())


def test_problems_of_a_group_are_held_out_together():
    problems = HOST.problems("fit", 40)
    members = problems.key // 4
    branches, _ = collect(replace(problems, group=members))
    assert set(branches.group.tolist()) == set(members.tolist())
    apart, _ = collect(problems)
    assert same(replace(branches, group=apart.group), apart)  # What happens to a problem is its key's business alone.


def test_shuffled_branches_have_the_same_answers_in_every_state():
    branches, _ = collect(40)
    shuffled = branches.shuffled(seed=1)
    assert not torch.equal(shuffled.scores, branches.scores)
    assert not torch.equal(shuffled.native_scores, branches.native_scores)
    assert same(replace(shuffled, scores=branches.scores, native_scores=branches.native_scores), branches)
    for before, after in zip(answers(branches), answers(shuffled), strict=True):
        assert torch.equal(before.sort().values, after.sort().values)
    assert torch.equal(shuffled.scores[~branches.tried], branches.scores[~branches.tried])


def answers(branches):
    """By state, what the order's own answer and those after its alternatives earned."""
    for state in range(len(branches)):
        yield torch.cat([branches.native_scores[state], branches.scores[state][branches.tried[state]].flatten()])


def test_shuffled_alternatives_are_no_better_than_the_orders_own_choice():
    branches, _ = collect(400)
    gain, shuffled = (each.gain(HOST)[each.tried].double() for each in (branches, branches.shuffled(seed=1)))
    assert float(gain.mean()) > 0.3
    assert abs(float(shuffled.mean())) < 0.05


def test_a_problem_with_nothing_to_reveal_has_no_branches():
    problems = HOST.problems("fit", 4)
    canvas = problems.canvas.clone()
    canvas[1] = 0
    branches, cost = collect(Problems(canvas, problems.key, problems.facts))
    assert int(problems.key[1]) not in branches.group.tolist()
    assert cost.rollouts == 4
