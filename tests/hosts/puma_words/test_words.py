"""Word problems: stories that mean what they compute, an exact verifier, splits that never meet, cells."""

import random
import re
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dprm
from dprm.data.splits import SPLITS
from dprm.hosts.puma_words import cells as word_cells
from dprm.hosts.puma_words import problems as word_problems
from dprm.hosts.puma_words import words
from dprm.hosts.puma_words.stories import ASIDE, CLAUSES, OPENING, THEMES
from dprm.hosts.puma_words.verifier import verify
from dprm.train.masks import RandomMasks
from dprm.train.pool import ProgressivePool
from dprm.train.transformer import Transformer

MIX = {2: 300, 3: 300, 4: 300}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Arrays are small: threads would spend their time waiting for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def made():
    return {steps: word_problems.generate("train", 1_500, steps, seed=3) for steps in (2, 3, 4)}


def replay(numbers, answer, text):
    """(reward is 1, steps are right), by evaluating the text as Python does."""
    if not re.fullmatch(r"(\d+[-+*/]\d+=\d+;)*#\d+", text, re.ASCII):
        return False, False
    written = re.findall(r"\d+", text)
    if any(len(number) > 3 or (number[0] == "0" and number != "0") for number in written):
        return False, False
    *steps, last = text.split(";")
    known, sound = list(numbers), bool(steps)
    for step in steps:
        left, right = step.split("=")
        operands = [int(part) for part in re.split(r"[-+*/]", left)]
        sound &= "/0" not in left and eval(left) == int(right) and all(operand in known for operand in operands)
        known.append(int(right))
    return int(last[1:]) == answer, sound and known[-1] == int(last[1:])


def test_the_canvas_is_small():
    assert words.VOCABULARY <= 256
    assert words.LENGTH <= 128
    assert words.MASK == words.VOCABULARY - 1


def test_the_vocabulary_is_the_one_that_weights_were_trained_with():
    assert zlib.crc32(" ".join((words.CHARACTERS, *words.WORDS)).encode()) == 3446089948


def test_a_clause_computes_with_every_number_it_mentions_and_with_no_other():
    for clause in CLAUSES:
        used = set(re.findall(r"[xy]", clause.program))
        mentioned = {slot for slot in "xy" if f"{{{slot}}}" in clause.text}
        if clause.role == ASIDE or (clause.role == OPENING and not clause.program):
            assert (used, mentioned) == (set(), {"x"}), clause
        else:
            assert used == mentioned, clause
        constants = {operand for step in clause.steps() for operand in step if operand.isdigit()}
        assert ("half" in clause.text or "share the money" in clause.text) == ("2" in constants), clause
        assert ("for a week" in clause.text) == ("7" in constants), clause
        assert ("dozen" in clause.text) == ("12" in constants), clause
        assert len(clause.steps()) == len(clause.program.split()), clause


def test_every_problem_comes_with_a_right_answer_in_the_admissible_range(made):
    for steps, problems in made.items():
        assert problems.steps.shape == (1_500, steps, 4)
        assert 1 <= int(problems.steps[..., 3].min()) <= int(problems.steps[..., 3].max()) <= 999
        for (numbers, answer), row in zip(problems.listed(), problems.tokens.tolist()):
            text = words.read_answer(row)
            assert text.count(";") == steps
            assert text.endswith(f";#{answer}")
            assert replay(numbers, answer, text) == (True, True)


def test_the_numbers_of_a_problem_are_those_of_its_text_and_the_constants_its_words_imply(made):
    for problems in made.values():
        for (numbers, _), row in zip(problems.listed(), problems.tokens.tolist()):
            text = words.write_prompt(row)
            implied = [2] * bool(re.search("half|share the money", text.lower()))
            implied += [7] * ("for a week" in text) + [12] * ("dozen" in text)
            assert sorted(numbers) == sorted([*map(int, re.findall(r"\d+", text)), *implied]), text


def test_stories_are_sentences_and_their_pronouns_agree():
    texts = [words.write_prompt(row) for row in word_problems.generate("train", 400, 3, seed=1).tokens.tolist()]
    for text in texts:
        assert re.fullmatch(r"([A-Z0-9][A-Za-z0-9 ]*[.?] ?)+", text), text
        assert text.endswith("?")
        assert "{" not in text
        assert not ({"he", "him", "his"} & set(text.lower().split()) and {"she", "her"} & set(text.lower().split()))
    assert len(set(texts)) > 390


def read_prompt(text):
    """Problem tokens [64] of an English text: words, and the digits of numbers, one by one."""
    pieces = re.findall(r"[^\W\d]+|\d|[^\w\s]", text)
    known = {**words.TOKEN, **{str(digit): digit for digit in words.DIGITS}}
    tokens = [known[piece] if piece in known else known[piece.lower()] for piece in pieces]
    return torch.tensor(tokens + [words.BLANK] * (words.PROMPT - len(tokens)))


def test_prompts_survive_reading_and_writing(made):
    for problems in made.values():
        for row in problems.tokens[:300]:
            assert torch.equal(read_prompt(words.write_prompt(row.tolist())), row[: words.PROMPT].long())


def test_problem_and_answer_keep_to_their_places(made):
    for problems in made.values():
        asked, answered = problems.tokens[:, : words.PROMPT].long(), problems.tokens[:, words.PROMPT :].long()
        assert bool(((asked < words.EOT) & ((asked < 10) | (asked >= len(words.CHARACTERS)))).all())
        assert bool(((answered < len(words.CHARACTERS)) | (answered == words.EOT)).all())
        ended = (answered == words.EOT).long()
        assert bool((ended.diff(dim=1) >= 0).all())
        blank = words.blank_canvases(problems.tokens)
        assert torch.equal(blank == words.MASK, words.answer_positions(1_500))
        assert torch.equal(blank[:, : words.PROMPT], asked)


def test_every_clause_and_every_operator_occurs_and_some_stories_distract():
    problems = [word_problems.generate("train", 8_000, steps) for steps in (2, 3, 4)]
    used = torch.cat([some.plan for some in problems])
    assert set(used.unique().tolist()) == set(range(len(CLAUSES) + 1))
    assert set(torch.cat([some.steps[..., 1].flatten() for some in problems]).tolist()) == {0, 1, 2, 3}
    aside = torch.tensor([clause.role == ASIDE for clause in CLAUSES] + [False])
    assert 0.1 < float(aside[used].any(1).float().mean()) < 0.6
    theme = torch.tensor([THEMES.index(clause.theme) for clause in CLAUSES])
    assert bool((theme[used[:, 0]] == theme[used[:, -1]]).all())


def test_a_seed_gives_the_same_problems_and_another_seed_others():
    one, two, other = (word_problems.generate("test", 200, 3, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(vars(one).values(), vars(two).values()))
    assert not torch.equal(one.tokens, other.tokens)


def test_splits_never_share_a_problem_nor_even_a_solution():
    templates, solutions = {}, {}
    for split in SPLITS:
        some = [word_problems.generate(split, 800, 2, seed) for seed in (0, 1)]
        texts = [words.read_answer(row) for part in some for row in part.tokens.tolist()]
        solutions[split] = set(texts)
        plans = [(*plan, *numbers) for part in some for plan, numbers in zip(part.plan.tolist(), part.numbers.tolist())]
        templates[split] = set(plans)
    for found in (templates, solutions):
        assert all(not found[a] & found[b] for a in SPLITS for b in SPLITS if a < b)


def test_distinct_problems_have_distinct_solutions():
    rows = word_problems.generate("test", 500, 2, distinct=True).tokens.tolist()
    assert len({words.read_answer(row) for row in rows}) == 500


def test_more_than_four_steps_are_an_error():
    with pytest.raises(ValueError, match="steps is 5"):
        word_problems.generate("train", 10, 5)


def test_training_sequences_are_a_function_of_the_step():
    one, two = (word_problems.WordData(MIX, seed=4) for _ in range(2))
    one.batch(0, 8)
    clean, answer = one.batch(5, 8)
    assert torch.equal(clean, two.batch(5, 8)[0])
    assert clean.shape == answer.shape == (8, words.LENGTH)
    assert clean.dtype == torch.int64
    assert bool((answer.sum(1) == words.RESPONSE).all())


NUMBERS, ANSWER = (4, 6, 5, 40), 19


@pytest.mark.parametrize(
    ("text", "reward", "steps_right", "why"),
    [
        ("4*6=24;24-5=19;#19", 1.0, True, ""),
        ("6*4=24;24-5=19;#19", 1.0, True, ""),
        ("4*6=24;24-5=19;5*4=20;20-6=14;#19", 1.0, False, "not the last result 14"),
        ("4*6=25;24-5=19;#19", 1.0, False, "4*6=25 is wrong"),
        ("20-1=19;#19", 1.0, False, "uses 20"),
        ("#19", 1.0, False, "no step"),
        ("4*6=24;24-5=19;#20", 0.1, False, "not the last result 19"),
        ("4*6=24;24+5=29;#29", 0.1, True, "final number is 29, not 19"),
        ("4*6=24;#24", 0.1, True, "final number is 24, not 19"),
        ("4/0=0;#0", 0.1, False, "4/0=0 is wrong"),
        ("4-6=0;#0", 0.1, False, "4-6=0 is wrong"),
        ("6/4=1;#1", 0.1, False, "6/4=1 is wrong"),
        ("4*6=24;24-5=19", 0.0, False, "the end"),
        ("4*6=24;24-5=19;#", 0.0, False, "the end"),
        ("4*6=24;24-5=19;#19;", 0.0, False, "step 3"),
        ("4*6=24,24-5=19;#19", 0.0, False, "step 1"),
        ("4*6=24;24-5=?9;#19", 0.0, False, "step 2"),
        ("4*6=24;24-5=19;#019", 0.0, False, "the end"),
        ("4*6=24;24-5=19;#1900", 0.0, False, "the end"),
        ("4*6=24;24-5=19;##19", 0.0, False, "the end"),
        ("4*6=24;24-5=19;#19\n", 0.0, False, "the end"),
        ("", 0.0, False, "the end"),
        ("19", 0.0, False, "the end"),
        ("４*6=24;#19", 0.0, False, "step 1"),
    ],
)
def test_verdicts(text, reward, steps_right, why):
    verdict = verify(NUMBERS, ANSWER, text)
    assert (verdict.reward, verdict.steps_right) == (reward, steps_right)
    assert (verdict.reason == "") == (why == "")
    assert why in verdict.reason


def test_damaged_answers_pass_only_when_an_independent_replay_says_so(made):
    rng = random.Random(0)
    below = unsound = 0
    for problems in made.values():
        for (numbers, answer), row in zip(problems.listed()[:700], problems.tokens.tolist()):
            for _ in range(6):
                damaged = damage(words.read_answer(row), rng)
                verdict = verify(numbers, answer, damaged)
                assert (verdict.reward == 1.0, verdict.steps_right) == replay(numbers, answer, damaged), damaged
                assert verdict.reward in (0.0, 0.1, 1.0)
                below += verdict.reward < 1.0
                unsound += verdict.reward == 1.0 and not verdict.steps_right
    assert below > 5_000
    assert unsound > 1_000


def damage(text, rng):
    """Change, drop, add or exchange a character, or drop, repeat or exchange whole steps."""
    kind, place = rng.randrange(6), rng.randrange(len(text))
    *steps, last = text.split(";")
    if kind == 0:
        return text[:place] + rng.choice(words.CHARACTERS) + text[place + 1 :]
    if kind == 1:
        return text[:place] + text[place + 1 :]
    if kind == 2:
        return text[:place] + rng.choice(words.CHARACTERS) + text[place:]
    if kind == 3:
        letters, other = list(text), rng.randrange(len(text))
        letters[place], letters[other] = letters[other], letters[place]
        return "".join(letters)
    if kind == 4:
        steps.pop(rng.randrange(len(steps)))
    else:
        rng.shuffle(steps)
        steps += [rng.choice(steps)] * rng.randrange(2)
    return ";".join([*steps, last])


def reading_of(tokens):
    return dprm.Reading(tokens, *(torch.ones_like(tokens, dtype=torch.float32) for _ in range(3)))


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_cell_states_are_end_class_and_distance(seed):
    generator = torch.Generator().manual_seed(seed)
    canvas = torch.randint(0, words.MASK, (3, words.LENGTH), generator=generator)
    hidden = torch.rand(canvas.shape, generator=generator) < torch.tensor([[0.5], [0.95], [1.0]])
    canvas = canvas.masked_fill(hidden & words.answer_positions(3), words.MASK)
    predicted = torch.randint(0, words.MASK, canvas.shape, generator=generator)
    predicted[:, -20:] = words.EOT
    found = word_cells.cell_state(canvas, reading_of(predicted))
    assert 0 <= int(found.min()) <= int(found.max()) < word_cells.STATES
    for row in range(3):
        visible = [j for j in range(words.PROMPT, words.LENGTH) if canvas[row, j] != words.MASK]
        for i in range(words.PROMPT, words.LENGTH):
            token = int(predicted[row, i])
            character = words.CHARACTERS[token] if token < len(words.CHARACTERS) else ""
            kind = next(k for k, some in enumerate(("0123456789", "+-*/", "=;#", "")) if character in some)
            kind = 3 if character == "" else kind
            distance = min((abs(i - j) for j in visible), default=1_000)
            near = 0 if distance <= 1 else 1 if distance <= 4 else 2
            assert int(found[row, i]) == ((token == words.EOT) * 4 + kind) * 3 + near


class Oracle:
    """Knows the answers; surer of digits than of anything else, and surest of the end."""

    def __init__(self, tokens):
        self.tokens = tokens.long()

    def __call__(self, canvas):
        sure = torch.where(self.tokens == words.EOT, 9.0, torch.where(self.tokens < 10, 7.0, 5.0))
        logits = torch.zeros(*canvas.shape, words.VOCABULARY)
        return logits.scatter(2, self.tokens.unsqueeze(2), sure.unsqueeze(2))


def test_cells_serve_the_decoder_and_the_streaming_pool():
    problems = word_problems.generate("fit", 6, 3)
    order = dprm.Order(aux=word_cells.STATES)
    result = dprm.decode(
        Oracle(problems.tokens),
        words.blank_canvases(problems.tokens),
        order,
        mask_id=words.MASK,
        budget=3,
        aux=word_cells.cell_state,
    )
    assert torch.equal(result.tokens, problems.tokens.long())
    pool = ProgressivePool(word_problems.WordData(MIX), 16, order, phases=8, state_of=word_cells.cell_state)
    before = pool.canvases(0).masked.sum()
    pool.advance(0, torch.randn(16, words.LENGTH, words.VOCABULARY, generator=torch.Generator().manual_seed(0)))
    assert int((pool.canvases(1).noisy == words.MASK).sum()) != int(before)


def test_the_shared_transformer_reads_the_canvas_and_its_loss_falls():
    config = words.word_config(width=64, depth=1)
    assert config.heads == 2
    model = Transformer(config)
    law = RandomMasks(word_problems.WordData(MIX), 16)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(30):
        seen = law.canvases(step)
        loss = torch.nn.functional.cross_entropy(model(seen.noisy)[seen.masked], seen.clean[seen.masked])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
