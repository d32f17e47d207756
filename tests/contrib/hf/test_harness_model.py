"""The model that lm-evaluation-harness is given, under a stand-in for the harness that asks as it does.

The harness itself brings hundreds of megabytes that nothing else here needs, so it is no part of the development tools:
`pip install "dprm[eval]"`, and `test_harness.py` runs with it.
"""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import dprm
from dprm.contrib.hf import generate, host, load, small

PROBLEMS = 4


class LM:
    """`lm_eval.api.model.LM`, as far as a model is one."""

    def __init__(self):
        self.rank, self.world_size = 0, 1


def simple_evaluate(model, tasks, num_fewshot, limit, apply_chat_template, task_manager, bootstrap_iters):
    """Ask for every document of a task, one of them twice, and judge by the end of the answer."""
    documents = [*task_manager.documents[:limit], task_manager.documents[0]]
    requests = [SimpleNamespace(args=(line["prompt"], {"until": task_manager.until})) for line in documents]
    answers = model.generate_until(requests)
    right = [answer.endswith(f"#{line['answer']}") for answer, line in zip(answers, documents, strict=True)]
    samples = [{"doc_hash": str(hash(line["prompt"])), "answer": answer} for line, answer in zip(documents, answers)]
    return {"results": {tasks[0]: {"exact_match": sum(right) / len(right)}}, "samples": {tasks[0]: samples}}


class TaskManager:
    documents = small.prompts("test", PROBLEMS)
    until = ("never",)

    def __init__(self, include_path=None):
        pass


@pytest.fixture
def harness(monkeypatch):
    """`dprm.contrib.hf.harness` on the stand-in, whether the real one is there or not."""
    parts = {"": {"simple_evaluate": simple_evaluate}, ".api": {}, ".api.model": {"LM": LM}}
    for name, members in {**parts, ".tasks": {"TaskManager": TaskManager}}.items():
        module = ModuleType(f"lm_eval{name}")
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, f"lm_eval{name}", module)
    monkeypatch.delitem(sys.modules, "dprm.contrib.hf.harness", raising=False)
    import dprm.contrib.hf.harness as made

    yield made
    sys.modules.pop("dprm.contrib.hf.harness", None)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = small.save_words(tmp_path_factory.mktemp("harness") / "words")
    return load(str(folder), trust_remote_code=True)


SETTINGS = {"length": 48, "block": 48, "steps": 4}


def test_several_orders_from_one_load_with_tokens_counted_to_the_end(harness, checkpoint):
    random = dprm.Order(signal="random")
    said = harness.evaluate(checkpoint, {"host": None, "random": random}, ["words"], limit=PROBLEMS, **SETTINGS)
    assert [told["policy"] for told in said["orders"].values()] == [None, random.policy().digest]
    posed = host(checkpoint.path, TaskManager.documents, checkpoint=checkpoint, **SETTINGS)
    for order, told in zip((None, random), said["orders"].values()):
        answers = list(generate(posed, order))
        asked = [*answers, answers[0]]
        assert told["tokens"] == sum(each.kept for each in asked) < 48 * len(asked)
        assert told["calls"] == sum(each.calls for each in asked)
        assert told["tokens per call"] == told["tokens"] / told["calls"]
        assert told["documents"]["words"]["count"] == PROBLEMS
    digests = {told["documents"]["words"]["digest"] for told in said["orders"].values()}
    assert len(digests) == 1


def test_a_stop_of_the_task_cuts_the_answer_and_its_tokens(harness, checkpoint, monkeypatch):
    whole = harness.evaluate(checkpoint, {"host": None}, ["words"], limit=PROBLEMS, **SETTINGS)["orders"]["host"]
    monkeypatch.setattr(TaskManager, "until", ["#"])
    cut = harness.evaluate(checkpoint, {"host": None}, ["words"], limit=PROBLEMS, **SETTINGS)["orders"]["host"]
    assert 0 < cut["tokens"] < whole["tokens"]
    assert cut["calls"] == whole["calls"]


def test_tasks_of_likelihoods_are_refused(harness, checkpoint):
    model = harness.HarnessModel(checkpoint, None, 0, 8, SETTINGS)
    with pytest.raises(ValueError, match="the task compares likelihoods, and an order gives none"):
        model.loglikelihood([])
