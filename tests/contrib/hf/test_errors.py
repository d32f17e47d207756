"""What does not fit is said in one line, with what to do."""

import json

import pytest
import transformers

from dprm.contrib.hf import host
from dprm.contrib.hf.checkpoint import family_of
from tests.contrib.hf import checkpoints

LINES = ["the cat sat", "a dog"]


@pytest.fixture(scope="module")
def llada(tmp_path_factory):
    return checkpoints.llada(tmp_path_factory.mktemp("llada"))


def opened(path, lines=LINES, **settings):
    return host(str(path), lines, **{"length": 4, "trust_remote_code": True, **settings})


def test_a_model_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"there is no model 'nobody/nothing': expected a folder"):
        opened("nobody/nothing")


def test_code_of_a_checkpoint_is_run_only_when_asked_for(tmp_path):
    path = checkpoints.llada(tmp_path / "own")
    flag = tmp_path / "ran"
    code = path / "modeling_own.py"
    code.write_text(code.read_text() + f"\nopen({str(flag)!r}, 'w').write('yes')\n")
    with pytest.raises(ValueError, match=r"comes with code of its own.*--trust-remote-code"):
        opened(path, trust_remote_code=False)
    assert not flag.exists()
    opened(path)
    assert flag.exists()


def test_a_model_that_transformers_has_needs_no_trust_for_code_of_its_own(tmp_path):
    path = checkpoints.bert(tmp_path / "bert")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "nothing.Nobody"}}))
    for trusted in (False, True):
        made = opened(path, ["a [MASK]"], length=0, trust_remote_code=trusted)
        assert type(made.checkpoint.denoiser.model).__name__ == "BertForMaskedLM"


def test_code_that_cannot_be_imported(tmp_path):
    path = checkpoints.llada(tmp_path / "missing")
    code = path / "modeling_own.py"
    code.write_text(f"import nobody_has_this\n{code.read_text()}")
    with pytest.raises(ValueError, match=r"missing: .* gave ImportError: .*nobody_has_this"):
        opened(path)


def test_a_wrong_mask(llada):
    with pytest.raises(
        ValueError, match="mask_id says 5, the configuration says 3, the tokenizer says 3: expected one"
    ):
        opened(llada, mask_id=5)


def test_a_mask_outside_the_vocabulary(tmp_path):
    path = checkpoints.llada(tmp_path / "outside", mask_token_id=None)
    checkpoints.tokenizer(mask=None).save_pretrained(path)
    with pytest.raises(ValueError, match=r"mask_id is 126336: the model has a vocabulary of \d+"):
        opened(path)


def test_no_mask_at_all(tmp_path):
    path = checkpoints.bert(tmp_path / "bert", mask=None)
    with pytest.raises(ValueError, match="neither configuration nor tokenizer has a mask token: give mask_id"):
        opened(path, trust_remote_code=False)


def test_another_models_tokenizer(tmp_path):
    path = checkpoints.bert(tmp_path / "bert")
    words = checkpoints.tokenizer("[MASK]")
    words.add_tokens([f"word{index}" for index in range(40)])
    words.save_pretrained(path)
    with pytest.raises(
        ValueError, match=r"the tokenizer has \d+ tokens and the model \d+: they do not belong together"
    ):
        opened(path)


def test_a_prompt_longer_than_the_context(llada):
    with pytest.raises(
        ValueError, match=r"line 2 has 70 tokens, 74 with the answer's 4: longer than the 64 .*'cat cat"
    ):
        opened(llada, ["a dog", "cat " * 70])


def test_prompts_that_do_not_fit(llada, tmp_path):
    with pytest.raises(ValueError, match="line 2: the prompt of line 1 again"):
        opened(llada, ["a dog", "a dog"])
    with pytest.raises(ValueError, match="line 1 has messages, and the tokenizer has no chat template"):
        opened(llada, [{"messages": [{"role": "user", "content": "a dog"}]}])
    with pytest.raises(ValueError, match=r"line 1 holds no mask .*give a length"):
        opened(llada, ["a dog"], length=0)
    with pytest.raises(ValueError, match=r"line 1 holds token 999: the model has a vocabulary"):
        opened(llada, [{"tokens": [1, 999]}])
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "a dog"}\n\nnothing\n')
    with pytest.raises(ValueError, match=r"prompts.jsonl, line 3: no JSON"):
        opened(llada, path)
    path.write_text('{"prompt": "a dog", "split": "test"}\n{"prompt": "a cat"}\n')
    with pytest.raises(ValueError, match="line 2 has no split, and others have"):
        opened(llada, path)


def test_a_reward_that_raises_names_prompt_and_line(llada):
    def broken(text, line):
        raise KeyError("answer")

    made = opened(llada, [{"prompt": "a dog", "split": "fit"}], reward=broken)
    problems = made.problems("fit", 1)
    with pytest.raises(ValueError, match=r"reward failed at line 1 \(prompt 'a dog', answer .*KeyError: 'answer'"):
        made.judge(problems, problems.canvas)
    made = opened(llada, [{"prompt": "a dog", "split": "fit"}], reward=lambda text, line: 3)
    with pytest.raises(ValueError, match=r"reward gave 3.0 at line 1: expected a number in \[0, 1\]"):
        made.judge(problems, problems.canvas)


def test_a_reward_that_nobody_knows(llada):
    with pytest.raises(ValueError, match="reward is 'exakt': expected exact, number, tests"):
        opened(llada, reward="exakt")


def test_a_model_of_another_kind():
    with pytest.raises(ValueError, match="the model is of type 'gpt2': expected llada"):
        family_of(transformers.GPT2Config())


def test_a_model_that_sees_its_padding(tmp_path):
    """With absolute positions a padded prompt stands elsewhere than the same prompt alone."""
    path = checkpoints.llada(tmp_path / "absolute", answer_positions=True)
    with pytest.raises(
        ValueError, match=r"padding changes the probabilities of line 2 by .*give prompts of one length"
    ):
        opened(path)
    assert opened(path, ["a dog", "a cat"]).problems


def test_steps_and_blocks_that_do_not_divide(llada):
    with pytest.raises(ValueError, match="length is 10: expected a multiple of block, 4"):
        opened(llada, length=10, block=4)
    with pytest.raises(ValueError, match="steps is 5: expected a multiple of the 2 blocks"):
        opened(llada, length=8, block=4, steps=5)


def test_a_configuration_that_is_damaged(llada, tmp_path):
    path = tmp_path / "damaged"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "nothing"}))
    with pytest.raises(ValueError, match=r"damaged: AutoConfig gave ValueError"):
        opened(path, trust_remote_code=False)
