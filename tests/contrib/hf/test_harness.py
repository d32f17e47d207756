"""A checkpoint in lm-evaluation-harness, on a task of its own."""

import json

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.contrib.hf import generate, host, load, small
from dprm.contrib.hf.rewards import last_number

pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed")
pytestmark = pytest.mark.slow

TASK = """
task: words
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: ["never"]
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
filter_list:
  - name: number
    filter:
      - function: regex
        regex_pattern: "#(\\\\d+)"
      - function: take_first
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("harness")
    small.save_words(folder / "words")
    (folder / "tasks").mkdir()
    lines = small.prompts("test", 8)
    (folder / "words.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "tasks" / "words.yaml").write_text(TASK.format(data=folder / "words.jsonl"))
    return folder


def test_several_orders_are_evaluated_from_one_load(folder):
    policy = dprm.Order(signal="random").policy(host="words")
    policy.save(folder / "mine.dprm")
    command = f"eval --model {folder}/words --tasks words --orders host,random --policy {folder}/mine.dprm "
    command += f"--folder {folder}/tasks --limit 6 --length 48 --block 48 --steps 4 --trust-remote-code "
    result = CliRunner().invoke(app, f"{command} --out {folder}/out.json".split())
    assert result.exit_code == 0, f"{result.output} {result.exception!r}"
    said = json.loads((folder / "out.json").read_text())
    assert list(said["orders"]) == ["host", "random", "mine"]
    assert said["orders"]["mine"]["policy"] == policy.digest
    assert said["orders"]["host"]["policy"] is None
    assert len({json.dumps(told["documents"]) for told in said["orders"].values()}) == 1
    own = said["orders"]["host"]
    assert own["documents"]["words"]["count"] == 6
    assert own["calls"] == 6 * 4

    made = host(
        str(folder / "words"),
        small.prompts("test", 6),
        small.reward,
        length=48,
        block=48,
        steps=4,
        trust_remote_code=True,
    )
    answers = list(generate(made))
    right = [last_number(each.answer) == str(asked.entry["answer"]) for each, asked in zip(answers, made.asked.facts)]
    assert own["results"]["words"]["exact_match,number"] == pytest.approx(sum(right) / 6)
    assert own["tokens"] == sum(each.kept for each in answers)
    assert own["tokens"] < 6 * 48


def test_tasks_of_likelihoods_are_refused(folder):
    from dprm.contrib.hf.harness import HarnessModel

    checkpoint = load(str(folder / "words"), trust_remote_code=True)
    model = HarnessModel(checkpoint, None, 0, 8, {"length": 48, "block": 48})
    with pytest.raises(ValueError, match="an order gives none"):
        model.loglikelihood([])
