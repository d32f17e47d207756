"""What a comparison keeps of its decodings, and where two orders part."""

import dataclasses
import json

import pytest
import torch

from dprm.evaluate import replays as module
from dprm.evaluate.arms import arms_of
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from dprm.evaluate.replays import Replays, first_parting, partings, replays, telling
from dprm.host.rollout import Rollout
from tests.toy_host import ToyHost

HOST = ToyHost()
ARMS = arms_of(HOST, ("random",))


def compared():
    comparison = compare(HOST, HOST.problems("test", 12), ARMS)
    return comparison.card, {name: rollouts[0] for name, rollouts in comparison.rollouts.items()}


def rewards(rollouts):
    return {name: rollout.scores.squeeze(1) for name, rollout in rollouts.items()}


def rollout(steps, reward, tokens=None, confidence=0.5):
    """A rollout with given step maps and rewards; nothing else matters here."""
    steps = torch.tensor(steps)
    empty = torch.zeros(len(steps))
    seen = torch.where(steps > 0, torch.tensor(confidence), torch.nan)
    return Rollout(
        tokens=torch.zeros_like(steps) if tokens is None else torch.tensor(tokens),
        step_map=steps,
        confidence=seen,
        scores=torch.tensor(reward).unsqueeze(1),
        calls={"denoiser": empty},
        **{field.name: empty for field in dataclasses.fields(Rollout)[5:]},
    )


def test_two_orders_part_at_the_first_step_that_reveals_other_positions():
    control = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 1, 2], [0, 1, 2, 3]])
    other = torch.tensor([[0, 1, 2, 3], [0, 1, 3, 2], [0, 1, 2, 1], [0, 1, 2, 0]])
    assert first_parting(other, control).tolist() == [0, 2, 1, 3]
    assert first_parting(control, other).tolist() == [0, 2, 1, 3]


def test_partings_count_problems_still_together_and_reveals_made_elsewhere():
    control = rollout([[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]], [1.0, 1.0])
    other = rollout([[0, 1, 2, 3, 4], [0, 1, 2, 4, 3]], [1.0, 0.0])
    found = partings({"control": control, "other": other}, "control")["other"]
    assert found.together == [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1]
    reveals = [sum(map(int, line.split())) for line in found.reveals]
    moved = [sum(map(int, line.split())) for line in found.moved]
    assert sum(reveals) == 8
    assert [phase for phase, count in enumerate(moved) if count] == [4, 6]
    assert sum(moved) == 2


def test_problems_where_orders_earn_differently_come_first_in_turns():
    control = rollout([[1]] * 8, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    better = rollout([[1]] * 8, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    other_end = rollout([[1]] * 8, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0], tokens=[[0]] * 4 + [[1]] + [[0]] * 3)
    found = {"control": control, "better": better, "other": other_end}
    assert telling(found, rewards(found), "control", 4) == [6, 7, 4, 0]
    assert telling(found, rewards(found), "control", 20) == [6, 7, 4, 0, 1, 2, 3, 5]


def test_recordings_say_what_was_decoded():
    card, found = compared()
    assert card.replays is not None
    assert len(card.replays.problems) == 6
    row = telling(found, rewards(found), "confidence")[0]
    run = card.replays.problems[0]["random"]
    assert run.steps == " ".join(map(str, found["random"].step_map[row].tolist()))
    assert run.reward == float(found["random"].scores[row])
    text = "".join(card.replays.shown[token] for token in run.tokens.split())
    assert text == "".join(HOST.show(token) for token in found["random"].tokens[row].tolist())
    shown = [int(value) / 1000 for value in run.confidence.split()]
    assert shown == pytest.approx(found["random"].confidence[row].tolist(), abs=5e-4)


def test_given_positions_have_no_confidence():
    kept = replays(HOST, {"control": rollout([[0, 1]], [1.0])}, "control")
    assert kept is not None
    assert kept.problems[0]["control"].confidence == "- 500"
    assert kept.problems[0]["control"].steps == "0 1"


def test_a_card_has_only_room_for_so_much(monkeypatch):
    _, found = compared()
    monkeypatch.setattr(module, "ROOM", 150)
    assert len(replays(HOST, found, "confidence").problems) in (1, 2, 3)
    monkeypatch.setattr(module, "ROOM", 10)
    assert replays(HOST, found, "confidence") is None


def test_replays_come_back_with_the_card_and_old_cards_have_none(tmp_path):
    card, _ = compared()
    card.save(tmp_path / "card.json")
    assert Card.load(tmp_path / "card.json").replays == card.replays
    data = json.loads(card.to_json())
    del data["replays"], data["partings"]
    (tmp_path / "old.json").write_text(json.dumps(data))
    old = Card.load(tmp_path / "old.json")
    assert old.replays is None
    assert old.partings == {}


@pytest.mark.parametrize(
    "change", [{"tokens": "0"}, {"tokens": "0 7"}, {"steps": "0 x"}, {"confidence": "- -"}, {"confidence": "- 5 5"}]
)
def test_a_recording_that_is_not_whole_is_refused(change):
    run = {"reward": 1.0, "tokens": "0 0", "steps": "0 1", "confidence": "- 500"}
    data = {"shown": {"0": "a"}, "columns": None, "problems": [{"x": run}]}
    assert Replays.read(data).problems[0]["x"].steps == "0 1"
    data["problems"] = [{"x": run}, {"x": {**run, **change}}]
    with pytest.raises(ValueError, match="replay 1 of 'x'"):
        Replays.read(data)


def test_problems_have_the_same_orders():
    run = {"reward": 1.0, "tokens": "0", "steps": "0", "confidence": "-"}
    with pytest.raises(ValueError, match=r"replay 1 has the orders \['y'\]: expected \['x'\]"):
        Replays.read({"shown": {"0": "a"}, "columns": None, "problems": [{"x": run}, {"y": run}]})
