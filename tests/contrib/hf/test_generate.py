"""Generation from Python, by command, and through `generate` of transformers."""

import dataclasses
import json

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.cli.answers import canvas
from dprm.contrib.hf import custom_generate, generate, host, small
from dprm.decode import HoldBack
from tests.contrib.hf import checkpoints

LINES = ["the cat sat on the mat", "a dog", "two red cat ran"]
SETTINGS = {"length": 8, "block": 4, "steps": 8, "trust_remote_code": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    checkpoints.llada(folder / "llada")
    checkpoints.llada2(folder / "llada2")
    small.save_words(folder / "words")
    return folder


def test_answers_come_in_the_order_of_the_prompts_whatever_the_batch(folder):
    made = host(str(folder / "llada"), LINES, temperature=0.7, **SETTINGS)
    listed = [list(generate(made, seed=3, rows=rows)) for rows in (1, 2, 8)]
    assert listed[0] == listed[1] == listed[2]
    assert [each.prompt for each in listed[0]] == LINES
    assert all(sorted(each.step_map) == list(range(1, 9)) for each in listed[0])
    assert listed[0] != list(generate(made, seed=4))


def test_a_lower_top_p_draws_from_fewer_tokens(folder):
    def drawn(**settings):
        made = host(str(folder / "llada"), LINES, **SETTINGS, **settings)
        return [[each.tokens for each in generate(made, seed=seed)] for seed in range(4)]

    greedy = drawn()[0]
    assert all(answers == greedy for answers in drawn(temperature=1.0, top_p=1e-6))
    assert all(answers == greedy for answers in drawn(temperature=1.0, top_k=1))
    assert len({str(answers) for answers in drawn(temperature=1.0)}) == 4


def test_the_end_of_the_text_waits_when_it_is_held(folder):
    plain = host(str(folder / "llada"), LINES, length=8, block=8, steps=8, trust_remote_code=True)
    # What is revealed first of all is now the end of the text.
    first = {each.tokens[each.step_map.index(1)] for each in generate(plain)}
    ending = dataclasses.replace(plain.checkpoint, ends=tuple(first))
    held = host("llada", LINES, checkpoint=ending, hold_end=True, length=8, block=8, steps=8)
    assert held.decoding.guard == HoldBack(tuple(first))
    steps = []
    assert [each.step_map for each in generate(held, on_step=steps.append)] != [e.step_map for e in generate(plain)]
    for step in steps:
        ends = torch.isin(step.reading.tokens, torch.tensor(list(first)))
        others_left = (step.eligible & ~ends).any(1)
        assert not (step.choice.mask & ends)[others_left].any()


def test_what_stands_behind_the_end_is_no_answer(folder):
    made = host(str(folder / "llada"), LINES[:1], **SETTINGS)
    asked, row = made.asked.facts[0], made.asked.canvas[0].tolist()
    words = made.checkpoint.tokenizer.convert_tokens_to_ids(
        ["a", "dog", "<|eot_id|>", "cat", "cat", "cat", "cat", "cat"]
    )
    row[asked.first : asked.last] = words
    assert made.text(row, asked) == "a dog"


def run(command):
    return CliRunner().invoke(app, command)


def test_the_command_answers_and_writes_a_trace(folder, tmp_path):
    line = small.prompts("test", 1)[0]
    trace = tmp_path / "trace.jsonl"
    arguments = ["generate", "--model", str(folder / "words"), "--prompt", line["prompt"], "--trace", str(trace)]
    arguments += ["--length", "48", "--block", "48", "--width", "8", "--trust-remote-code"]
    result = run(arguments)
    assert result.exit_code == 0, result.output
    (noted,) = [json.loads(each) for each in trace.read_text().splitlines()]
    assert noted["answer"] in result.output
    assert (noted["calls"], max(noted["step_map"]), len(noted["tokens"])) == (6, 6, 48)
    assert noted["policy"] is None
    assert f"{noted['kept']} tokens in 6 model calls" in result.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "expected --prompt TEXT"),
        (["--prompt", "a dog", "--signal", "random", "--policy", "p.dprm"], "--policy and --signal are both orders"),
        (["--prompt", "a dog", "--chat"], "the tokenizer has no chat template"),
        (["--prompt", "a dog"], "say --trust-remote-code"),
    ],
)
def test_the_command_says_what_does_not_fit(folder, more, said):
    trusted = [] if "--trust" in said else ["--trust-remote-code"]
    result = run(["generate", "--model", str(folder / "llada"), *trusted, *more])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_conversation_goes_through_the_chat_template(folder):
    words = checkpoints.tokenizer()
    words.chat_template = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}the"
    made = host(str(folder / "llada"), LINES, **SETTINGS).checkpoint
    chat = dataclasses.replace(made, tokenizer=words)
    asked = host("llada", [{"messages": [{"role": "was", "content": "a dog"}]}], checkpoint=chat, length=4, block=4)
    prompt = asked.asked.canvas[0, :-4].tolist()
    assert words.convert_ids_to_tokens(prompt) == ["was", "a", "dog", "the"]


def test_the_live_view_shows_the_prompt_what_is_new_and_what_is_hidden(folder):
    made = host(str(folder / "llada"), LINES[:1], **SETTINGS)
    steps = []
    list(generate(made, on_step=steps.append))
    step = steps[0]
    shown = canvas(
        made,
        step.state.tokens[0].tolist(),
        step.reading.tokens[0].tolist(),
        step.choice.mask[0].tolist(),
        step.state.given[0].tolist(),
    )
    assert shown.plain.count("·") == 7
    assert sum("bold green" in str(span.style) for span in shown.spans) == 1
    assert shown.plain.startswith("thecat")


def test_transformers_generates_through_the_same_door(folder):
    made = host(str(folder / "llada2"), LINES[:1], **SETTINGS)
    model, words = made.checkpoint.denoiser.model, made.checkpoint.tokenizer
    run = custom_generate(words, length=8, block=4, steps=8)
    inputs = words(LINES[0], return_tensors="pt")
    sequences = model.generate(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], custom_generate=run
    )
    (expected,) = generate(made)
    assert sequences[0, -8:].tolist() == expected.tokens
    other = custom_generate(words, dprm.Order(signal="random"), length=8, block=4, steps=8)(model, inputs["input_ids"])
    assert not torch.equal(other, sequences)
    with pytest.raises(ValueError, match="whose last blocks differ: generate them apart"):
        run(model, torch.zeros(2, 5, dtype=torch.int64), attention_mask=torch.tensor([[1] * 5, [0] * 3 + [1] * 2]))
