"""Regulatory DNA: the oracle is what its formula says, judges are apart, designs are written and read back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from dprm.cli import app
from dprm.data.fasta import read_fasta
from dprm.data.packages import cache
from dprm.decode import Fixed
from dprm.evaluate.arms import arms_of
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from dprm.evaluate.finetunings import finetunings
from dprm.host.rollout import Decode
from dprm.hosts.sdpo import bases, classifier, greedy, matrices, motifs, sites, words
from dprm.hosts.sdpo.host import TASK, TRAININGS, RegulatoryDNA
from dprm.order import Order, Policy
from dprm.report.finetunings import contrast_table, phase_table
from dprm.train.denoiser import Denoiser, save_weights
from dprm.train.transformer import Config, Transformer


def random_bases(rows, length=200, seed=0):
    return torch.randint(0, 4, (rows, length), generator=torch.Generator().manual_seed(seed))


def other_strand(tokens):
    return 3 - tokens.flip(1)


def tiny():
    return RegulatoryDNA(Denoiser(Transformer(Config(bases.VOCABULARY, width=32, depth=1, heads=2))))


# ---- the oracle ------------------------------------------------------------------------------------------------------


def test_a_scan_is_the_best_place_on_either_strand():
    tokens, scores = random_bases(3, 60), motifs.scan(random_bases(3, 60))
    for factor, matrix in enumerate(matrices.counts().values()):
        odds, width = matrices.log_odds(matrix), matrix.shape[1]
        for row in range(3):
            both = [
                strand[row, at : at + width] for strand in (tokens, other_strand(tokens)) for at in range(61 - width)
            ]
            best = max(float(odds[site, torch.arange(width)].sum()) for site in both)
            assert scores[row, factor].item() == pytest.approx(best, abs=1e-4)


def test_the_strand_does_not_matter_and_a_site_of_every_factor_is_worth_one():
    tokens = random_bases(20)
    torch.testing.assert_close(motifs.motif_score(tokens), motifs.motif_score(other_strand(tokens)))
    best = torch.cat([matrices.log_odds(matrix).argmax(0) for matrix in matrices.counts().values()])
    perfect = torch.cat([best, torch.zeros(200 - len(best), dtype=torch.int64)]).unsqueeze(0)
    assert motifs.motif_score(perfect).item() == pytest.approx(1.0)
    assert 0.05 < float(motifs.motif_score(tokens).mean()) < 0.4


def test_every_place_has_the_score_that_fimo_gives_it():
    memelite = pytest.importorskip("memelite", reason="needs memelite==0.5.0, a motif scanner: it is no dependency")
    tokens, listed = random_bases(3, 60), matrices.counts()
    smoothed = {name: matrix + matrices.PSEUDO / 4 for name, matrix in listed.items()}
    probability = {name: (matrix / matrix.sum(0)).numpy() for name, matrix in smoothed.items()}
    # With a threshold of 1 every place is a hit but those of the lowest scores; pseudo-counts are in already.
    hits = memelite.fimo(probability, bases.one_hot(tokens).numpy().astype("int8"), eps=0.0, threshold=1.0)
    scores = motifs.places(tokens)
    for factor, table in enumerate(hits):
        for hit in table.itertuples():
            strand = factor + (len(listed) if hit.strand == "-" else 0)
            assert scores[hit.sequence_name, strand, hit.start].item() == pytest.approx(hit.score, abs=1e-4)
        best = torch.tensor(table.groupby("sequence_name")["score"].max().to_numpy())
        torch.testing.assert_close(motifs.scan(tokens)[:, factor], best.float())


def test_the_shipped_matrices_are_those_of_the_registry():
    source = (
        cache() / matrices.MATRICES.package / f"{matrices.MATRICES.sha256[:12]}-{Path(matrices.MATRICES.inside).name}"
    )
    listed = json.loads(matrices.SHIPPED.read_text())
    assert listed["identifiers"] == matrices.LIVER
    for name, matrix in matrices.counts().items():
        assert matrix.shape[0] == 4, name
    if source.is_file():
        assert matrices.of_database(source) == listed["matrices"]


def test_words_are_counted_as_they_stand():
    tokens = random_bases(5, 12)
    counts = bases.word_counts(tokens)
    letters = bases.decoded(tokens)
    for row, text in enumerate(letters):
        for number in range(64):
            word = "".join("ACGT"[number // 4**power % 4] for power in (2, 1, 0))
            assert counts[row, number] == sum(text[at : at + 3] == word for at in range(10))
    assert torch.equal(bases.encoded(letters), tokens)
    own, real = counts.sum(0).double(), words.reference()
    expected = torch.corrcoef(torch.stack([own, real]))[0, 1]
    torch.testing.assert_close(words.word_correlation(counts.sum(0, keepdim=True))[0], expected)
    assert words.word_correlation(torch.zeros(1, 64)).tolist() == [0.0]


# ---- the held-out judge ----------------------------------------------------------------------------------------------


def test_the_classifier_reads_both_strands_and_learns_what_tells_the_cells_apart():
    tokens = random_bases(600)
    positive = torch.arange(600) % 4 == 0
    tokens[positive, 90:98] = torch.tensor([0, 2, 3, 3, 1, 0, 0, 2])
    part = sites.Sites(tokens.to(torch.uint8), (~positive).to(torch.uint8), torch.full((600,), 4), torch.ones(600))
    model = classifier.trained(part, epochs=6, rows=32, rate=5e-3)
    p = classifier.hepg2(model, tokens)
    assert classifier.area(p, positive) > 0.95
    torch.testing.assert_close(p, classifier.hepg2(model, other_strand(tokens)))


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    scores, positive = torch.tensor([0.1, 0.9, 0.4, 0.6]), torch.tensor([False, True, True, False])
    assert classifier.area(scores, positive) == pytest.approx(3 / 4)


# ---- sites -----------------------------------------------------------------------------------------------------------


def table(path, rows=96):
    letters = bases.decoded(random_bases(rows, seed=1))
    chromosomes = [*range(1, 23), "X", "Y"]
    lines = ["chr\tsequence\tTAG\ttotal_signal"]
    for row, text in enumerate(letters):
        cell = ("HepG2_ENCLB029COU", "K562_ENCLB843GMH")[row % 2]
        lines.append(f"chr{chromosomes[row % 24]}\t{text}\t{cell}\t{row}.5")
    lines += [f"chr3\t{'N' * 200}\tHepG2_E\t1", "chr3\tACGT\tHepG2_E\t1", f"chrM\t{letters[0]}\tHepG2_E\t1"]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_sites_are_prepared_and_what_does_not_fit_is_named(tmp_path):
    _, lines = sites.prepare(table(tmp_path / "sites.txt"), tmp_path)
    assert "line 98: position 1 is 'N': an unknown base cannot be scored" in lines[0]
    assert "line 99: it has 4 letters: expected 200" in lines[1]
    assert lines[-1].startswith("96 sites: 40 generator, 48 classifier, 4 select, 4 test; 3 left out")


def test_no_chromosome_is_in_two_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    sites.prepare(table(tmp_path / "sites.txt"), tmp_path / "sdpo" / "sites")
    every = sites.sites()
    chromosomes = [set(every.part(name).chromosome.tolist()) for name in ("generator", "classifier", "select", "test")]
    assert sum(map(len, chromosomes)) == len(set().union(*chromosomes)) == 24


# ---- the host --------------------------------------------------------------------------------------------------------


def test_problems_of_splits_differ_and_answers_are_judged_by_what_was_not_rewarded_as_well():
    host = tiny()
    keys = [set(host.problems(split, 50, seed).key.tolist()) for split in ("fit", "test") for seed in (0, 1)]
    assert len(set().union(*keys)) == 200
    problems = host.problems("test", 6)
    rollout = Decode().answer(host, problems, 0, host.model())
    assert (rollout.tokens < bases.MASK).all()
    assert rollout.scores.shape == (6, 3)
    assert torch.equal(rollout.scores[:, 0], motifs.motif_score(rollout.tokens))
    torch.testing.assert_close(host.reward(rollout.scores), rollout.scores[:, 0].double())
    together = host.judge_set(problems, rollout.tokens)
    motif, success = rollout.scores[:, :2].mean(0).tolist()
    assert together["total"] == pytest.approx(motif * success * together["3-mer correlation"])


def test_metrics_of_the_set_are_resampled_by_output():
    host = tiny()
    problems = host.problems("select", 12)
    card = compare(host.with_decoding(count=Fixed(50)), problems, arms_of(host, ["confidence"]), split="select").card
    assert card.arms["greedy substitution"].calls["oracle"] == 6001
    for name in ("3-mer correlation", "total"):
        for arm in card.arms.values():
            metric = arm.metrics[name]
            assert metric.low <= metric.mean <= metric.high
        metric = card.arms["confidence"].metrics[name]
        assert metric.delta_low < metric.delta < metric.delta_high


def test_the_likelihood_is_that_of_the_reference_and_the_same_for_any_batch():
    host, tokens = tiny(), random_bases(4)
    whole = host.log_likelihood(tokens)
    torch.testing.assert_close(whole[2:3], host.log_likelihood(tokens[2:3]))
    assert (whole < 0).all()
    assert abs(float(whole.mean()) / 200 - torch.tensor(5.0).log().neg().item()) < 0.5


def test_designs_are_written_with_their_scores_and_read_back(tmp_path):
    host = tiny()
    problems = host.problems("test", 5)
    rollout = Decode().answer(host, problems, 0, host.model())
    assert host.write(tmp_path / "designs.fa", problems, rollout) == ["5 sequences, 5 of them different"]
    records, left_out = read_fasta(tmp_path / "designs.fa", bases.DNA)
    assert not left_out
    assert {record.letters for record in records} == set(bases.decoded(rollout.tokens))
    headers = [line for line in (tmp_path / "designs.fa").read_text().splitlines() if line.startswith(">")]
    scores = [float(header.split("motif=")[1].split()[0]) for header in headers]
    assert scores == sorted(scores, reverse=True)
    assert "hepg2=" in headers[0]


def test_designs_are_generated_by_command(tmp_path):
    save_weights(tmp_path / "w.safetensors", Transformer(Config(bases.VOCABULARY, width=32, depth=1, heads=2)), {})
    out = tmp_path / "designs.fa"
    asked = ["generate", "sdpo", "-n", "4", "--out", str(out), "--weights", f"{tmp_path}/w.safetensors"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    records, left_out = read_fasta(out, bases.DNA)
    assert (len(records), left_out) == (4, [])


def test_biopython_reads_the_designs(tmp_path):
    parser = pytest.importorskip("Bio.SeqIO")
    host = tiny()
    problems = host.problems("test", 3)
    host.write(tmp_path / "designs.fa", problems, Decode().answer(host, problems, 0, host.model()))
    records = list(parser.parse(tmp_path / "designs.fa", "fasta"))
    assert [len(record.seq) for record in records] == [200, 200, 200]
    assert "motif=" in records[0].description


@pytest.mark.parametrize(
    ("letters", "said"),
    [
        ("N" + "_" * 199, "position 1 is 'N': an unknown base cannot be scored; _ where a position is to be filled"),
        ("E" + "_" * 199, "position 1 is 'E': expected bases ACGT"),
        ("ACGT_", "it has 5 letters: expected 200"),
        ("A" * 200, "it has no _ to design"),
    ],
)
def test_a_file_that_does_not_fit_is_explained(tmp_path, letters, said):
    (tmp_path / "mine.fa").write_text(f">good\n{'_' * 100}{'ACGT' * 25}\n>bad\n{letters}\n")
    problems, left_out = tiny().read_problems(tmp_path / "mine.fa")
    assert problems.facts == ["good"]
    assert int((problems.canvas == bases.MASK).sum()) == 100
    assert said in left_out[0]


@pytest.mark.parametrize(("text", "said"), [("", "is empty"), ("ACGT\n", "is no FASTA file")])
def test_a_file_without_records_is_a_clear_error(tmp_path, text, said):
    (tmp_path / "mine.fa").write_text(text)
    with pytest.raises(ValueError, match=said):
        tiny().read_problems(tmp_path / "mine.fa")


def test_greedy_substitution_makes_the_best_single_change_and_counts_its_calls():
    tokens = random_bases(2)
    changed = greedy.best_substitution(tokens)
    assert ((changed != tokens).sum(1) == 1).all()
    before = motifs.motif_score(tokens)
    for row in range(2):
        best = before[row]
        for place in range(200):
            others = tokens[row].repeat(3, 1)
            others[:, place] = (others[:, place] + torch.arange(1, 4)) % 4
            best = max(best, motifs.motif_score(others).max())
        assert motifs.motif_score(changed)[row].item() == pytest.approx(float(best), abs=1e-6)
        every = greedy.substitution_scores(tokens)[row]
        one_other = tokens[row].repeat(4, 1)
        one_other[:, 73] = torch.arange(4)
        torch.testing.assert_close(every[:, 73], motifs.motif_score(one_other))
    host = tiny()
    problems = host.problems("test", 2)
    native = Decode().answer(host, problems, 0, host.model())
    rollout = greedy.GreedySubstitution(rounds=2).answer(host, problems, 0, host.model())
    assert (rollout.scores[:, 0] > native.scores[:, 0]).all()
    assert ((rollout.tokens != native.tokens).sum(1) <= 2).all()
    assert (rollout.nfe == native.nfe + 1 + 2 * 600).all()
    perfect = torch.cat([matrices.log_odds(matrix).argmax(0) for matrix in matrices.counts().values()])
    perfect = torch.nn.functional.pad(perfect, (0, 200 - len(perfect))).unsqueeze(0)
    assert torch.equal(greedy.best_substitution(perfect), perfect)


def test_a_file_without_a_base_to_design_is_an_error(tmp_path):
    (tmp_path / "mine.fa").write_text(f">done\n{'ACGT' * 50}\n")
    with pytest.raises(ValueError, match=r"no problem that can be used: done: it has no _ to design"):
        tiny().read_problems(tmp_path / "mine.fa")


ARMS = ["native", "start", "confidence-progressive", "uncertainty-progressive"]
LEARNED = ["dprm", "dprm-random", "dprm 2 phases", "dprm-random 2 phases"]
CONTROLS = ["shuffled values", "gate only", "count only", "no shortlist"]


@pytest.mark.slow
def test_fine_tunings_of_two_seeds_are_one_card_with_five_numbers_of_every_arm(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    sites.prepare(table(tmp_path / "sites.txt"), tmp_path / "sdpo" / "sites")
    out = tmp_path / "card.json"
    asked = ["study", "sdpo", "--tiny", "--limit", "6", "--seeds", "2", "--widths", "50", "--split", "test"]
    asked += ["--out", str(out), "--work", f"{tmp_path}/w"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    card = Card.load(out)
    policies = [arm for arm in card.arms if arm in LEARNED]
    assert policies == LEARNED
    assert (card.reference, card.seeds, card.count, card.paired) == ("native", [0, 1], 6, False)
    controls = [name for name, arm in card.arms.items() if arm.ablates is not None]
    assert {name.partition(", ")[2] for name in controls} <= set(CONTROLS)
    assert {card.arms[name].ablates for name in controls} == {"dprm", "dprm-random"}
    assert set(ARMS + LEARNED + controls) | {"greedy substitution"} == set(card.arms)
    numbers = ["motif", "hepg2", "log_likelihood", "3-mer correlation", "total"]
    assert all(list(arm.metrics) == numbers for arm in card.arms.values())
    assert all(arm.metrics["total"].spread is not None for arm in card.arms.values())
    trained = card.notes["trainings"]
    assert len({arms[arm]["weights"] for arms in trained.values() for arm in arms}) == 2 * 8
    assert card.notes["looks"] == dict.fromkeys(LEARNED, 0)
    stored = card.notes["phases"]
    assert [stored[arm]["phases"] for arm in LEARNED] == [1, 1, 2, 2]
    assert [stored[arm]["cells"] for arm in LEARNED] == [10, 10, 20, 20]
    told = card.notes["contrasts"]
    assert {entry["control"] for entry in told if entry["treated"] == "dprm"} >= {"confidence-progressive"}
    assert all(each["low"] <= each["estimate"] <= each["high"] for entry in told for each in entry["metrics"].values())
    tables = contrast_table({"card.json": card}), phase_table({"card.json": card})
    assert len(tables[0].splitlines()) == 2 + len(told)
    assert [line.split(" | ")[0] for line in tables[1].splitlines()[2:]] == [f"| {arm}" for arm in LEARNED]
    # Phases have weights of their own, and the other arms are not trained again.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "w").glob("seed-*/*ive.safetensors")}
    assert CliRunner().invoke(app, [*asked, "--set", "phases=1"]).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    refused = CliRunner().invoke(app, [*asked, "--orders", "random"])
    assert refused.exit_code == 2
    assert "--orders is not for sdpo" in refused.output


@pytest.mark.slow
def test_every_arm_of_a_fine_tuning_answers_with_its_own_weights_and_order(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    sites.prepare(table(tmp_path / "sites.txt"), tmp_path / "sdpo" / "sites")
    trainings = replace(TRAININGS.rehearsal(), phases=(1,), widths=(50,))
    made = finetunings("sdpo", TASK, trainings, {}, limit=3, seeds=2, folder=tmp_path / "w")
    for seed in (0, 1):
        for arm, order in (("native", None), ("confidence-progressive", Order(signal="confidence"))):
            own = TASK.load(tmp_path / "w" / f"seed-{seed}" / f"{arm}.safetensors").with_decoding(count=Fixed(50))
            answers = Decode(order).answer(own, own.problems("select", 3), seed, own.model())
            assert torch.equal(made.rollouts[arm][seed].tokens, answers.tokens)
        policy = Policy.load(tmp_path / "w" / f"seed-{seed}" / "dprm.dprm")
        own = TASK.load(tmp_path / "w" / f"seed-{seed}" / "dprm.safetensors").with_decoding(count=Fixed(50))
        answers = Decode(Order.from_policy(policy)).answer(own, own.problems("select", 3), seed, own.model())
        assert torch.equal(made.rollouts["dprm"][seed].tokens, answers.tokens)
    entry = next(each for each in made.card.notes["contrasts"] if each["treated"] == "dprm")
    assert entry["control"] == "confidence-progressive"
    metrics = made.card.arms
    for name in ("motif", "total"):
        apart = metrics["dprm"].metrics[name].mean - metrics["confidence-progressive"].metrics[name].mean
        assert entry["metrics"][name]["estimate"] == pytest.approx(apart, abs=1e-6)
