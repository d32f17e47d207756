"""The life of a policy by command, on a small model in LLaDA's format and its word problems."""

import json

import pytest
from typer.testing import CliRunner

from dprm.cli import app
from dprm.contrib.hf import small
from dprm.evaluate.card import Card

TRUSTED = "hf:words --prompts words/words.jsonl --length 48 --block 48 --width 12 --trust-remote-code"
WORDS = f"{TRUSTED} --reward dprm.contrib.hf.small:reward"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    small.write(folder / "words", 16)
    return folder


def run(folder, command, code=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(app, command.split())
    assert result.exit_code == code, result.output
    return result.output


def test_a_comparison_and_its_audit_know_the_checkpoint_by_its_name(folder):
    """From fit to page the commands run in the test of the page."""
    run(folder, f"compare {WORDS} --orders entropy --limit 4 --out results/words.json")
    card = Card.load(folder / "results" / "words.json")
    assert (card.host, card.count, card.split) == ("words", 4, "select")
    assert list(card.arms) == ["confidence", "entropy"]
    audited = json.loads(run(folder, "audit hf:words --results results --json"))
    assert audited["verdict"] in {"apply", "fall back", "do not promote", "report rollout cost"}


def test_another_file_of_prompts_may_be_compared_on(folder):
    other = run(folder, f"compare {WORDS} --problems words/words.jsonl --orders margin --limit 3 --json")
    assert json.loads(other[other.index("{") :])["count"] == 3


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("compare hf:words --reward exact --trust-remote-code", "hf:words needs prompts: give --prompts FILE.jsonl"),
        (f"compare {TRUSTED}", "hf:words needs a reward: give --reward exact, number, tests"),
        (f"fit {WORDS.replace(' --trust-remote-code', '')}", "say --trust-remote-code"),
        (f"fit {WORDS} --mask-id 7", "mask_id says 7, the configuration says 240"),
        ("compare dmpo --prompts words/words.jsonl", "host 'dmpo' takes no prompts: only hf:PATH does"),
        (f"compare {TRUSTED} --reward tests --limit 1", "the line has no 'tests', which the reward needs"),
        (f"compare {TRUSTED.replace('words.jsonl', 'no.jsonl')} --reward exact", "there is no file words/no.jsonl"),
    ],
)
def test_what_does_not_fit_is_one_line(folder, command, said):
    assert said in run(folder, command, code=2)
