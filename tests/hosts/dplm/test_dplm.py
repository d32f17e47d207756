"""Protein domains: two streams, a bit head, tasks, and a sampler in which visible tokens compete again."""

import json

import pytest
import torch

from dprm.data.fasta import Alphabet, read_fasta
from dprm.decode import Cumulative
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.host.rollout import Decode
from dprm.hosts.dplm import domains, tokens
from dprm.hosts.dplm.host import Proteins, hidden_in
from dprm.hosts.dplm.model import build
from dprm.order import Order
from dprm.report.sensitivity import sensitivity_table
from dprm.train.denoiser import Denoiser, load_weights, save_weights
from dprm.train.masks import RandomMasks
from dprm.train.objective import masked_cross_entropy
from dprm.train.transformer import Config

CONFIG = Config(tokens.VOCABULARY, width=32, depth=1, heads=2, sides=tokens.SIDES)


def proteins(count, seed=0):
    """Random domains of 40 residues or a few more."""
    draw = torch.Generator().manual_seed(seed)
    made = []
    for row in range(count):
        length = 40 + row % 5
        letters = torch.randint(0, 20, (length,), generator=draw).tolist()
        states = torch.randint(0, 8, (length,), generator=draw).tolist()
        made.append(("".join(tokens.AMINO[i] for i in letters), "".join(tokens.STATES[i] for i in states)))
    return made


@pytest.fixture
def stocked(tmp_path, monkeypatch):
    """A cache with 160 small domains of 80 superfamilies."""
    listed = {
        f"d{row}": {"Sequence": letters, "DSSP": states, "SCCS": f"b.{row // 2}.1.0"}
        for row, (letters, states) in enumerate(proteins(160))
    }
    listed["short"] = {"Sequence": "ACD", "DSSP": "HHH", "SCCS": "a.1.1.1"}
    listed["odd"] = {"Sequence": "X" * 40, "DSSP": "H" * 40, "SCCS": "a.1.1.1"}
    listed["uneven"] = {"Sequence": "A" * 41, "DSSP": "H" * 40, "SCCS": "a.1.1.1"}
    (tmp_path / "all.json").write_text(json.dumps(listed))
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    return domains.prepare(tmp_path / "all.json", tmp_path / "dplm" / "domains")[1]


def host(task="both", seed=0):
    return Proteins(Denoiser(build(CONFIG, seed)), task=task)


# ---- data ------------------------------------------------------------------------------------------------------------


def test_domains_are_prepared_and_a_superfamily_is_in_one_split(stocked):
    assert stocked == ["160 domains of 80 superfamilies; 3 left out, most of them too short or too long"]
    every = domains.domains()
    parts = [set(every.split(name).family.tolist()) for name in ("train", "fit", "select", "test")]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 80


def test_what_was_encoded_is_shown_again():
    sequences, structures = zip(*proteins(3))
    canvas = tokens.encoded(list(sequences), list(structures))
    assert [tokens.streams(row) for row in canvas.tolist()] == list(zip(sequences, structures))
    assert all(tokens.shown(token) for token in range(tokens.VOCABULARY))


def test_the_four_tasks_of_training_come_equally_often_and_one_alone_sees_nothing_of_the_other(stocked):
    data = domains.DomainData(0, torch.device("cpu"))
    clean, answer = data.batch(0, 800)
    residue, structure = clean != tokens.PAD, tokens.STRUCTURE
    both = (answer & structure).any(1) & (answer & ~structure).any(1)
    alone = (clean == tokens.MASK).any(1)
    folding = (answer & structure).any(1) & ~both & ~alone
    inverse = (answer & ~structure).any(1) & ~both & ~alone
    for share in (both, alone, folding, inverse):
        assert 0.19 < float(share.float().mean()) < 0.31
    assert torch.equal(clean[alone] == tokens.MASK, (residue & ~answer)[alone])
    shown = RandomMasks(data, 64).canvases(0)
    assert not (shown.masked & (shown.clean == tokens.MASK)).any()


@pytest.mark.parametrize(("task", "structure", "sequence"), [("folding", 1.0, 0.0), ("inverse", 0.0, 1.0)])
def test_a_task_hides_what_it_says(task, structure, sequence):
    true = tokens.encoded(*map(list, zip(*proteins(8))))
    hidden = hidden_in(true, task)
    residue = true != tokens.PAD
    for stream, share in ((tokens.STRUCTURE, structure), (~tokens.STRUCTURE, sequence)):
        assert torch.equal((hidden & stream).sum(1), (share * (residue & stream).sum(1)).long())


def test_the_task_of_both_hides_the_same_stretch_of_both_streams():
    true = tokens.encoded(*map(list, zip(*proteins(8))))
    hidden = hidden_in(true, "both")
    assert torch.equal(hidden[:, : tokens.LONGEST], hidden[:, tokens.LONGEST :])
    for row in hidden[:, : tokens.LONGEST]:
        where = row.nonzero().flatten()
        assert 20 < len(where) == int(where[-1] - where[0]) + 1
    assert len({int(row.float().argmax()) for row in hidden}) > 3


# ---- the bit head ----------------------------------------------------------------------------------------------------


def test_a_code_is_as_probable_as_its_bits_together():
    model, canvas = build(CONFIG), tokens.encoded(*map(list, zip(*proteins(2))))
    with torch.no_grad():
        logits, head = model(canvas), super(type(model), model).forward(canvas)
    codes = logits[:, : tokens.LONGEST].softmax(-1)
    p = head[:, : tokens.LONGEST, tokens.FIRST_STATE : tokens.FIRST_STATE + 3].sigmoid()
    for code in range(8):
        bits = [p[..., bit] if code >> bit & 1 else 1 - p[..., bit] for bit in range(3)]
        torch.testing.assert_close(codes[..., tokens.FIRST_STATE + code], bits[0] * bits[1] * bits[2])
    assert float(codes[..., : tokens.FIRST_STATE].sum()) == 0.0
    assert float(logits[:, tokens.LONGEST :].softmax(-1)[..., tokens.FIRST_STATE :].sum()) == 0.0


def test_the_confidence_of_a_structure_token_is_the_geometric_mean_of_its_bits():
    made = host()
    canvas = torch.full((2, tokens.LENGTH), tokens.MASK)
    output = made.model()(canvas)
    reading = made.decoding.reader.read(output, None)
    p = output.softmax(-1).amax(-1)
    structure = tokens.STRUCTURE
    torch.testing.assert_close(reading.confidence[:, structure], p[:, structure] ** (1 / 3))
    torch.testing.assert_close(reading.confidence[:, ~structure], p[:, ~structure])


def test_its_weights_are_kept_and_read_back(tmp_path):
    model = build(CONFIG, seed=3)
    save_weights(tmp_path / "w.safetensors", model, {})
    again, _ = load_weights(tmp_path / "w.safetensors", build=lambda facts: build(Config(**facts)))
    canvas = tokens.encoded(*map(list, zip(*proteins(2))))
    torch.testing.assert_close(again(canvas), model(canvas), atol=0.02, rtol=0.01)


@pytest.mark.slow
def test_it_learns_both_streams(stocked):
    model, law = build(CONFIG), RandomMasks(domains.DomainData(0, torch.device("cpu")), 16)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(60):
        shown = law.canvases(step)
        loss = masked_cross_entropy(model(shown.noisy), shown)
        torch.autograd.backward(loss)
        optimiser.step(), optimiser.zero_grad()
        losses.append(loss.item())
    assert sum(losses[-5:]) < sum(losses[:5])


# ---- the sampler and the judge ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [None, 1.0])
@pytest.mark.parametrize("task", ["folding", "inverse", "both"])
def test_visible_tokens_compete_again_and_each_stream_gets_its_own_tokens(task, temperature):
    made = host().at(f"{task} 6")
    problems = made.posed(tokens.encoded(*map(list, zip(*proteins(4)))), torch.arange(4))
    rollout = Decode(Order(signal="random"), temperature).answer(made, problems, 0, made.model())
    hidden = problems.canvas == tokens.MASK
    structure = tokens.STRUCTURE.expand_as(hidden)
    assert (rollout.tokens[hidden & structure] >= tokens.FIRST_STATE).all()
    assert (rollout.tokens[hidden & structure] < tokens.MASK).all()
    assert (rollout.tokens[hidden & ~structure] < tokens.FIRST_STATE).all()
    assert torch.equal(rollout.tokens[~hidden], problems.canvas[~hidden])
    assert (rollout.nfe == 6).all()
    # At every step all hidden positions are chosen among: more decisions than there are positions.
    assert (rollout.picks > hidden.sum(1)).all()


def test_the_truth_is_worth_one_and_a_stream_that_was_not_hidden_counts_as_recovered():
    true = tokens.encoded(*map(list, zip(*proteins(4))))
    for task in ("folding", "inverse", "both"):
        made = host(task)
        problems = made.posed(true, torch.arange(4))
        assert made.judge(problems, true).tolist() == [[1.0, 1.0, 1.0]] * 4
    folding = host("folding")
    problems = folding.posed(true, torch.arange(4))
    wrong = torch.where(problems.canvas == tokens.MASK, tokens.FIRST_STATE, true)
    structure, sequence, balanced = folding.judge(problems, wrong).unbind(1)
    assert (sequence == 1).all()
    assert (structure < 0.5).all()
    torch.testing.assert_close(balanced, structure.sqrt())


def test_tasks_and_steps_are_chosen_by_name_and_nonsense_is_refused():
    assert host().at("both 100").decoding.count == Cumulative(100)
    assert host().at("folding").task == "folding"
    for nonsense in ("unfold", "both x", "both 0", "both 501"):
        with pytest.raises(ValueError, match=r"difficulty is .*expected one of folding, inverse, both"):
            host().at(nonsense)


@pytest.mark.slow
def test_a_comparison_counts_changed_decisions_and_changed_outputs_apart(stocked):
    made = host().at("both 4")
    card = compare(made, made.problems("train", 12), arms_of(made, ["random"]), split="train").card
    random = card.arms["random"]
    assert random.differs > 0
    assert card.arms["confidence"].nfe == random.nfe == 4
    assert card.groups < card.count
    assert set(random.metrics) == {"structure", "sequence", "balanced"}


def test_domains_are_written_with_their_structure(tmp_path):
    made = host()
    problems = made.posed(tokens.encoded(*map(list, zip(*proteins(2)))), torch.arange(2))
    rollout = Decode().answer(made, problems, 0, made.model())
    assert made.write(tmp_path / "out.fa", problems, rollout) == ["2 domains, sequence and structure"]
    records, left_out = read_fasta(tmp_path / "out.fa", Alphabet("ACDEFGHIKLMNPQRSTVWYB", "amino acids", 1, 128))
    assert not left_out
    assert [record.name for record in records] == ["domain-1", "domain-1-dssp", "domain-2", "domain-2-dssp"]
    assert "balanced=" in (tmp_path / "out.fa").read_text().splitlines()[0]


@pytest.mark.slow
def test_what_orders_change_is_told_by_task_steps_and_sampler(stocked):
    cards = {}
    for name, variant, temperature in (("a.json", "folding 4", 0.0), ("b.json", "both 6", 1.0)):
        made = host().at(variant).with_decoding(temperature=temperature)
        cards[name] = compare(made, made.problems("train", 8), arms_of(made, ["random", "margin"]), split="train").card
    columns, _, *lines = (line.strip("| ").split(" | ") for line in sensitivity_table(cards, "results").splitlines())
    rows = [dict(zip(columns, line, strict=True)) for line in lines]
    assert [row["task and steps"] for row in rows] == ["[both 6](results/b.json)"] * 3 + [
        "[folding 4](results/a.json)"
    ] * 3
    assert [row["tokens"] for row in rows] == ["drawn at 1"] * 3 + ["argmax"] * 3
    assert [row["order"] for row in rows] == ["confidence", "random", "margin"] * 2
    arms = [*cards["b.json"].arms.items(), *cards["a.json"].arms.items()]
    for row, (order, arm) in zip(rows, arms, strict=True):
        assert row["balanced"] == f"{arm.metrics['balanced'].mean:.3f}"
        if order == "confidence":
            assert row["gate"] == "–"
        else:
            assert row["decisions changed"] == f"{arm.changed:.1%}"
            assert row["outputs that differ"] == f"{arm.differs:.1%}"
            assert row["gate"].startswith(("open", "closed"))
