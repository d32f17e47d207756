"""One file to deploy, and what it refuses."""

import json

import pytest
import torch

import dprm
from dprm.order import PolicyError, PositionWeighted
from dprm.order.files import read_tensors, write_tensors
from tests.draws import RULES, candidates, logits, taught


@pytest.fixture
def saved(tmp_path):
    policy = taught(dprm.Order(beta=2.0, aux=2, rule="shortlist_top_m", guidance=0.7), 1).policy(host="toy", note="é\n")
    policy.save(tmp_path / "order.dprm")
    return policy, tmp_path / "order.dprm"


def test_a_policy_comes_back_the_same_and_acts_the_same(saved):
    policy, path = saved
    again = dprm.Policy.load(path)
    assert again.digest == policy.digest
    assert again.header == policy.header
    reading, flags = dprm.read(logits(0, 6, 20, 5)), candidates(0, 6, 20)
    aux = torch.randint(0, 2, (6, 20))
    for rule in RULES:
        first, second = (dprm.Order.from_policy(p, rule=rule) for p in (policy, again))
        a = first.select(reading, flags, 3, 0.3, aux=aux, seed=4)
        b = second.select(reading, flags, 3, 0.3, aux=aux, seed=4)
        assert torch.equal(a.mask, b.mask)
        torch.testing.assert_close(a.score, b.score, rtol=0, atol=0)


def test_the_header_is_readable_without_dprm(saved):
    _, path = saved
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["dprm"])
    assert header["beta"] == 2.0
    assert header["cells"] == [8, 16, 2]
    assert header["signal"] == {"name": "confidence"}
    assert header["schema"] == 2
    assert header["notes"]["host"] == "toy"


def test_stored_settings_can_be_overridden_where_that_is_safe(saved):
    policy, _ = saved
    order = dprm.Order.from_policy(policy)
    assert (order.rule, order.guidance, order.beta) == ("shortlist_top_m", 0.7, 2.0)
    order = dprm.Order.from_policy(policy, rule="top_m", guidance=0.0)
    assert (order.rule, order.guidance) == ("top_m", 0.0)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"beta": 1.0}, r"fitted with beta = 2.0, not 1.0"),
        ({"signal": "entropy"}, r"fitted with signal = 'confidence', not 'entropy'"),
        ({"cells": (8, 16, 1)}, r"fitted with cells = \[8, 16, 2\], not \[8, 16, 1\]"),
        ({"reward_range": (0.0, 2.0)}, "fitted with reward_range"),
    ],
)
def test_a_policy_refuses_a_setting_it_was_not_fitted_in(saved, expected, message):
    policy, path = saved
    with pytest.raises(PolicyError, match=message):
        dprm.Policy.load(path, **expected)
    with pytest.raises(PolicyError, match=message):
        dprm.Order.from_policy(policy, **expected) if "signal" not in expected else policy.expect(**expected)
    dprm.Policy.load(path, beta=2.0, signal="confidence", cells=(8, 16, 2))


def test_truncated_tampered_foreign_and_newer_files_are_refused(saved, tmp_path):
    _, path = saved
    data = path.read_bytes()
    for cut in (0, 7, 100, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:cut])
        with pytest.raises(PolicyError, match="not a readable dprm file"):
            dprm.Policy.load(tmp_path / "cut")
    flipped = bytearray(data)
    flipped[-3] ^= 1
    (tmp_path / "flipped").write_bytes(bytes(flipped))
    with pytest.raises(PolicyError, match="does not match its own checksum"):
        dprm.Policy.load(tmp_path / "flipped")
    tensors, header = read_tensors(path, "dprm.policy")
    write_tensors(tmp_path / "edited", tensors, {**header, "guidance": 9.0})
    with pytest.raises(PolicyError, match="does not match its own checksum"):
        dprm.Policy.load(tmp_path / "edited")
    write_tensors(tmp_path / "newer", tensors, {**header, "schema": 3})
    with pytest.raises(PolicyError, match=r"has schema 3; this version of dprm reads up to 2"):
        dprm.Policy.load(tmp_path / "newer")
    dprm.Stats(cells=3).save(tmp_path / "stats")
    with pytest.raises(PolicyError, match=r"holds a 'dprm.stats': expected a 'dprm.policy'"):
        dprm.Policy.load(tmp_path / "stats")


def test_saving_replaces_a_file_whole_or_not_at_all(saved, monkeypatch):
    policy, path = saved
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        taught(dprm.Order(), 9).policy().save(path)
    assert path.read_bytes() == before
    assert dprm.Policy.load(path).digest == policy.digest


def test_settings_of_a_signal_travel_with_the_policy(tmp_path):
    taught(dprm.Order(signal=PositionWeighted(decay=0.3)), 2).policy().save(tmp_path / "p")
    assert dprm.Order.from_policy(dprm.Policy.load(tmp_path / "p")).signal == PositionWeighted(decay=0.3)


def my_signal(reading):
    return reading.confidence


def other_signal(reading):
    return reading.margin


def test_a_function_as_signal_must_be_given_again(tmp_path):
    taught(dprm.Order(signal=my_signal), 2).policy().save(tmp_path / "p")
    policy = dprm.Policy.load(tmp_path / "p")
    with pytest.raises(ValueError, match="fitted with your function 'my_signal': pass it"):
        dprm.Order.from_policy(policy)
    with pytest.raises(PolicyError, match="fitted with signal"):
        dprm.Order.from_policy(policy, signal=other_signal)
    assert dprm.Order.from_policy(policy, signal=my_signal).signal.value is not None


def test_an_empty_policy_is_the_host_order_and_can_learn_on(tmp_path):
    dprm.Order().policy().save(tmp_path / "p")
    order = dprm.Order.from_policy(dprm.Policy.load(tmp_path / "p"))
    reading, flags = dprm.read(logits(0, 3, 9, 4)), torch.ones(3, 9, dtype=torch.bool)
    choice = order.select(reading, flags, 2, 0.0)
    assert not choice.changed.any()
    order.observe(choice, torch.rand(3), group=torch.zeros(3, dtype=torch.int64))
    assert order.baseline == "prompt"


def test_a_policy_can_be_asked_for_the_model_and_the_host_that_it_was_fitted_for(tmp_path):
    dprm.Order().policy(host="toy", model="abc").save(tmp_path / "p")
    policy = dprm.Policy.load(tmp_path / "p", model="abc", host="toy")
    with pytest.raises(PolicyError, match="fitted with model = 'abc', not 'xyz'"):
        dprm.Order.from_policy(policy, model="xyz")
    with pytest.raises(PolicyError, match="fitted with host = 'toy', not 'dmpo'"):
        dprm.Policy.load(tmp_path / "p", host="dmpo")


def test_the_path_of_a_policy_is_no_policy():
    with pytest.raises(TypeError, match=r"policy is 'p.dprm': expected a dprm.Policy; a file is read by"):
        dprm.Order.from_policy("p.dprm")


def test_guidance_that_is_changed_after_a_selection_acts():
    order = taught(dprm.Order(ready=1, guidance=20.0), 1)
    reading, flags = dprm.read(logits(3, 8, 12, 5)), candidates(3, 8, 12)
    learned = order.select(reading, flags, 2, 0.4)
    order.guidance = 0.0
    plain = order.select(reading, flags, 2, 0.4)
    assert torch.equal(plain.mask, dprm.Order().select(reading, flags, 2, 0.4).mask)
    assert not torch.equal(plain.mask, learned.mask)


def test_files_that_are_none_of_ours_are_named_for_what_they_are(tmp_path):
    (tmp_path / "card.json").write_text('{"arms": {}}' + " " * 100)
    (tmp_path / "empty").write_bytes(b"")
    for name, message in [("card.json", "it holds text"), ("empty", "it holds nothing")]:
        with pytest.raises(PolicyError, match=f"{name} is not a readable dprm file: {message}"):
            dprm.Policy.load(tmp_path / name)
    with pytest.raises(PolicyError, match="/dev/zero is no regular file"):
        dprm.Policy.load("/dev/zero")
