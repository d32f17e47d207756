"""Checkpoints of every family, through the same door as real ones."""

import pytest
import torch

import dprm
from dprm.contrib.hf import host
from dprm.host.rollout import Decode
from tests.contrib.hf import checkpoints, upstream

LINES = [
    {"prompt": "the cat sat on the mat", "split": "fit"},
    {"prompt": "a dog", "split": "fit"},
    {"prompt": "two red cat ran", "split": "fit"},
]
INFILL = [
    {"prompt": "the <m> sat on the mat <m> <m>", "split": "fit"},
    {"prompt": "a <m> ran <m>", "split": "fit"},
    {"prompt": "<m> <m> dog was red", "split": "fit"},
]
PROTEINS = [{"prompt": text, "split": "fit"} for text in ("MKT<mask>LLVA<mask>G", "AG<mask><mask>", "QQ<mask>WYAA")]


def marked(lines, mask):
    return [{**line, "prompt": line["prompt"].replace("<m>", mask)} for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


def opened(folder, family):
    if family == "bert":
        return host(str(checkpoints.bert(folder / family)), marked(INFILL, "[MASK]"))
    if family == "bert, masks behind":
        return host(str(checkpoints.bert(folder / "bert-behind")), LINES, length=5)
    if family == "esm":
        return host(str(checkpoints.esm(folder / family)), PROTEINS)
    path = str(getattr(checkpoints, family)(folder / family))
    return host(path, LINES, length=8, block=4, steps=8, trust_remote_code=True)


FAMILIES = ["llada", "bert", "bert, masks behind", "esm"]


@pytest.fixture(scope="module", params=FAMILIES)
def made(request, folder):
    return opened(folder, request.param)


def decoded(made, rows=None, **changes):
    changed = made.with_decoding(**changes) if changes else made
    problems = made.problems("fit", 3)
    problems = problems if rows is None else problems[torch.tensor(rows)]
    return Decode().result(changed, problems, 0, made.model())


def test_a_checkpoint_decodes_to_the_end_and_its_answers_are_text(made):
    result = decoded(made)
    assert not (result.tokens == made.decoding.mask_id).any()
    asked = made.problems("fit", 3).facts[0]
    assert isinstance(made.text(result.tokens[0].tolist(), asked), str)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_rows_do_not_depend_on_their_batch(made, temperature):
    together = decoded(made, temperature=temperature)
    for row in range(3):
        alone = decoded(made, [row], temperature=temperature)
        assert torch.equal(alone.tokens[0], together.tokens[row])
        assert torch.equal(alone.step_map[0], together.step_map[row])


def test_padding_is_left_out(made):
    """A padded row has the probabilities of the same row without padding."""
    problems = made.problems("fit", 3)
    attention = problems.context["attention"]
    assert not attention.all()
    p = made.model()(problems.canvas, problems.context).softmax(-1)
    for row in range(3):
        alone = made.model()(problems.canvas[row : row + 1, attention[row]]).softmax(-1)
        assert torch.allclose(p[row, attention[row]], alone[0], atol=1e-5)


def test_an_empty_policy_is_the_familys_own_order_to_the_bit(made):
    empty = Decode(dprm.Order(signal=made.decoding.signal)).result(made, made.problems("fit", 3), 0, made.model())
    own = decoded(made)
    assert torch.equal(empty.tokens, own.tokens)
    assert torch.equal(empty.step_map, own.step_map)


def test_special_tokens_are_no_answer_of_a_masked_language_model(folder):
    made = opened(folder, "bert")
    special = set(made.checkpoint.tokenizer.all_special_ids)
    result = decoded(made)
    assert not special & set(result.tokens[result.step_map > 0].tolist())


def test_masks_stand_before_the_closing_token(folder):
    made = opened(folder, "bert, masks behind")
    problems = made.problems("fit", 1)
    words = made.checkpoint.tokenizer.convert_ids_to_tokens(problems.canvas[0].tolist())
    assert words == ["[CLS]", *["the", "cat", "sat", "on", "the", "mat"], *["[MASK]"] * 5, "[SEP]"]


@pytest.mark.parametrize(("length", "block", "steps"), [(8, 8, 8), (8, 4, 4), (12, 6, 8), (10, 10, 4)])
@pytest.mark.parametrize("ties", [False, True])
def test_llada_decodes_as_the_public_function_does_ties_included(folder, length, block, steps, ties):
    path = folder / "llada-native"
    if not path.exists():
        checkpoints.llada(path)
    made = host(str(path), LINES, length=length, block=block, steps=steps, trust_remote_code=True)
    model = made.checkpoint.denoiser.model
    if ties:
        # So few probabilities that most positions share theirs with others.
        model.forward = coarse(model.forward)
    problems = made.problems("fit", 3)
    own = decoded(made)
    prompt, attention = problems.canvas[:, :-length], problems.context["attention"][:, :-length].long()
    expected = upstream.llada(model, prompt, attention, length, block, steps, made.decoding.mask_id)
    assert torch.equal(own.tokens, expected)
    assert own.nfe == steps


def coarse(forward):
    """The model with logits in whole numbers of half precision."""

    def rounded(*arguments, **settings):
        output = forward(*arguments, **settings)
        output.logits = output.logits.div(6).round().clamp(-1, 1).bfloat16()
        return output

    return rounded


def test_ties_are_really_there(folder):
    made = host(str(checkpoints.llada(folder / "ties")), LINES, length=8, block=8, steps=4, trust_remote_code=True)
    model = made.checkpoint.denoiser.model
    model.forward = coarse(model.forward)
    problems = made.problems("fit", 3)
    _, confidence = upstream.seen(made.model()(problems.canvas, problems.context), made.decoding.mask_id)
    assert all(len(row[-8:].unique()) < 8 for row in confidence)
