"""Checkpoints of every family, through the same door as real ones."""

import pytest
import torch

import dprm
from dprm.contrib.hf import denoiser, host
from dprm.contrib.hf.llada2 import Aligned
from dprm.contrib.hf.llada_v import blank, embedded
from dprm.decode import advance, begin
from dprm.fit import fit
from dprm.fit.head import HeadFit
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


FAMILIES = ["llada", "dream", "llada2", "llada_v", "bert", "bert, masks behind", "esm"]


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
    left = result.tokens == made.decoding.mask_id
    ended = getattr(made.decoding.window, "ended", lambda state, masked: torch.zeros(len(masked)).bool())
    assert torch.equal(left.any(1), ended(result.state, left))
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


@pytest.mark.parametrize(("length", "steps"), [(8, 8), (8, 4), (13, 5), (6, 20)])
@pytest.mark.parametrize("ties", [False, True])
def test_dream_decodes_as_its_own_function_does_ties_included(folder, length, steps, ties):
    path = folder / "dream-native"
    if not path.exists():
        checkpoints.dream(path)
    made = host(str(path), LINES, length=length, steps=steps, trust_remote_code=True)
    model = made.checkpoint.denoiser.model
    if ties:
        model.forward = coarse(model.forward)
    problems = made.problems("fit", 3)
    own = decoded(made)
    prompt, attention = problems.canvas[:, :-length], problems.context["attention"][:, :-length].long()
    expected = upstream.dream(model, prompt, attention, length, steps, made.decoding.mask_id)
    assert torch.equal(own.tokens, expected)
    assert own.nfe <= steps


@pytest.mark.parametrize(("length", "block", "steps"), [(8, 4, 4), (10, 8, 4), (7, 6, 5)])
@pytest.mark.parametrize("ties", [False, True])
def test_llada2_decodes_as_its_own_function_does_ties_included(folder, length, block, steps, ties):
    """Row by row, although the rows are decoded together and padded on the left."""
    path = folder / "llada2-native"
    if not path.exists():
        checkpoints.llada2(path)
    made = host(str(path), LINES, length=length, block=block, steps=steps, trust_remote_code=True)
    model = made.checkpoint.denoiser.model
    if ties:
        model.forward = coarse(model.forward)
    problems = made.problems("fit", 3)
    own = decoded(made)
    attention = torch.ones_like(problems.canvas).bool() if problems.context is None else problems.context["attention"]
    for row, inside in enumerate(attention):
        canvas = problems.canvas[row : row + 1, inside]
        prompt = canvas[:, : int((canvas != made.decoding.mask_id).sum())]
        eos = made.checkpoint.tokenizer.eos_token_id
        expected = upstream.llada2(model, prompt, length, block, steps, made.decoding.mask_id, eos=eos)
        assert torch.equal(own.tokens[row : row + 1, inside][:, : expected.shape[1]], expected)


def test_the_threshold_of_llada2_reveals_more_than_its_share(folder):
    made = host(str(checkpoints.llada2(folder / "sure")), LINES, length=8, block=8, steps=8, trust_remote_code=True)
    head = made.checkpoint.denoiser.model.lm_head
    head.weight.data *= 8
    assert decoded(made).nfe < 8


def ending(folder, name, **settings):
    """A host of LLaDA-2 some of whose texts end early."""
    path = str(checkpoints.llada2(folder / name))
    made = host(path, LINES, length=20, block=4, steps=4, trust_remote_code=True, **settings)
    denoiser = made.checkpoint.denoiser
    head = (denoiser.own_head or denoiser.model.lm_head).weight.data
    head[made.checkpoint.tokenizer.eos_token_id] = 3 * head[8:14].mean(0)
    return made


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_an_answer_of_llada2_ends_with_the_block_in_which_its_text_does(folder, temperature):
    made = ending(folder, "ending", temperature=temperature)
    result = decoded(made)
    whole = decoded(made, window=Aligned(4))
    end, mask = made.checkpoint.ends, made.decoding.mask_id
    assert result.row_nfe.sum() < whole.row_nfe.sum()
    ended = 0
    for row, (asked, all_) in enumerate(zip(result.tokens.tolist(), whole.tokens.tolist())):
        left = [place for place, token in enumerate(asked) if token == mask]
        ended += bool(left)
        until = min(left, default=len(asked))
        assert asked[:until] == all_[:until]
        assert left == list(range(until, len(asked)))
        assert not left or any(token in end for token in asked[until - 4 : until])
        fact = made.problems("fit", 3).facts[row]
        assert made.text(asked, fact) == made.text(all_, fact)
    assert ended


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("left", [False, True])
def test_kept_blocks_give_the_same_tokens_with_less_computed(folder, temperature, left):
    """Rows of other lengths leave at other times; the second decoding finds what the first has kept."""
    settings = {"temperature": temperature, "head_where_asked": left}
    whole, kept = ending(folder, "whole"), ending(folder, "kept", reuse_blocks=True, **settings)
    whole = whole.with_decoding(temperature=temperature)
    computed = []
    for each in (whole, kept):
        model = each.checkpoint.denoiser.model
        computed.append([])
        model.model.register_forward_pre_hook(
            lambda body, given, named, seen=computed[-1]: seen.append(given[0].numel()), with_kwargs=True
        )
    order = dprm.Order(signal="random")
    for rows in (None, [2, 0], [1], [0, 1, 2, 0]):
        for way in (Decode(), Decode(order)):
            problems = whole.problems("fit", 3)
            problems = problems if rows is None else problems[torch.tensor(rows)]
            expected = way.result(whole, problems, 0, whole.model())
            result = way.result(kept, problems, 0, kept.model())
            assert torch.equal(expected.tokens, result.tokens)
            assert torch.equal(expected.step_map, result.step_map)
    assert len(computed[0]) == len(computed[1])
    assert sum(computed[1]) < sum(computed[0]) / 2


def test_a_fit_with_kept_blocks_is_the_fit_without(folder):
    made = [ending(folder, f"fit-{reuse}", reuse_blocks=reuse) for reuse in (False, True)]
    reward = lambda text, line: float("cat" in text)  # noqa: E731
    policies = []
    for each in made:
        each._reward, each.name = reward, "llada2"
        policies.append(fit(HeadFit(rounds=1), each, calls=300, rows=8).policy)
    assert policies[0].digest == policies[1].digest


def test_only_block_causal_models_keep_blocks(folder):
    with pytest.raises(ValueError, match="models of family llada see every position from every other"):
        host(str(checkpoints.llada(folder / "both")), LINES, length=4, reuse_blocks=True, trust_remote_code=True)


def test_embeddings_stand_where_tokens_would(folder):
    """A prompt of embeddings decodes as the tokens they are of."""
    made = host(str(checkpoints.llada_v(folder / "seen")), LINES, length=4, block=4, steps=4, trust_remote_code=True)
    problems = made.problems("fit", 3)
    table = made.checkpoint.denoiser.model.get_input_embeddings()
    prompt, attention = problems.canvas[:, :-4], problems.context["attention"][:, :-4]
    canvas = blank(table(prompt), 4, made.decoding.mask_id)
    state = begin(canvas, made.decoding, 0, embedded(table(prompt), 4, attention))
    order = made.decoding.order()
    shown = advance(made.model(), state, order, made.decoding)
    assert torch.equal(shown.tokens[:, -4:], decoded(made).tokens[:, -4:])
    picture = begin(canvas, made.decoding, 0, embedded(table(prompt).roll(1, 0), 4, attention.roll(1, 0)))
    other = advance(made.model(), picture, order, made.decoding)
    assert torch.equal(other.tokens[:, -4:], shown.tokens[:, -4:].roll(1, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("piece", [1, 50, 2**20])
def test_the_softmax_in_pieces_is_the_softmax_to_the_bit(monkeypatch, dtype, piece):
    monkeypatch.setattr(denoiser, "_PIECE", piece)
    generator = torch.Generator().manual_seed(0)
    logits = (torch.randn(3, 7, 13, generator=generator) * 4).to(dtype)
    tokens = torch.randint(13, (3, 7), generator=generator)
    whole = torch.softmax(logits, -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    assert torch.equal(denoiser.softmax_at(logits, tokens), whole)


@pytest.mark.parametrize("family", ["llada", "dream", "llada2", "llada_v"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_head_is_computed_where_something_may_be_revealed(folder, family, temperature):
    path = str(getattr(checkpoints, family)(folder / f"{family}-head"))
    settings = {"length": 8, "block": 4, "steps": 8, "trust_remote_code": True, "temperature": temperature}
    whole, lazy = host(path, LINES, **settings), host(path, LINES, head_where_asked=True, **settings)
    asked = []
    lazy.model().own_head.register_forward_pre_hook(lambda head, inputs: asked.append(len(inputs[0])))
    expected, result = decoded(whole), decoded(lazy)
    assert torch.equal(expected.tokens, result.tokens)
    assert torch.equal(expected.step_map, result.step_map)
    assert max(asked) <= 3 * 8
    assert sum(asked) < result.nfe * whole.asked.canvas.numel() / 2
    assert lazy.weights == whole.weights


def test_a_model_whose_head_is_its_embedding_keeps_it(folder):
    path = str(checkpoints.llada(folder / "tied", weight_tying=True))
    with pytest.raises(ValueError, match=r"no output head of its own at 'model.transformer.ff_out'"):
        host(path, LINES, length=4, block=4, head_where_asked=True, trust_remote_code=True)


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
