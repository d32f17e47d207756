"""The life of a policy by command, on a small model in LLaDA's format and its word problems."""

import json

import pytest
from typer.testing import CliRunner

import dprm
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


@pytest.mark.slow
def test_from_a_checkpoint_to_the_page_by_command(folder):
    run(folder, f"fit {WORDS} --calls 200 --select 8 --out words.dprm")
    policy = dprm.Policy.load(folder / "words.dprm")
    assert policy.notes["host"] == "words"
    run(folder, f"compare {WORDS} --policy words.dprm --orders entropy --limit 4 --out results/words.json")
    card = Card.load(folder / "results" / "words.json")
    assert (card.host, card.count, card.split) == ("words", 4, "select")
    assert set(card.arms) >= {"confidence", "entropy", "dprm"}
    audited = json.loads(run(folder, "audit hf:words --results results --json"))
    assert audited["verdict"] in {"apply", "fall back", "do not promote", "report rollout cost"}
    run(folder, "report results/words.json words.dprm --out words.html")
    assert "<svg" in (folder / "words.html").read_text()
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
