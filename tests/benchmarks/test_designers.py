"""tangermeme and our own greedy substitution on the same oracle, from the same sequences."""

import pytest
import torch

from benchmarks.peers.designers import MotifOracle, Tangermeme, compared
from dprm.decode import Fixed
from dprm.hosts.sdpo.bases import VOCABULARY, one_hot
from dprm.hosts.sdpo.greedy import ORACLE
from dprm.hosts.sdpo.host import RegulatoryDNA
from dprm.hosts.sdpo.motifs import motif_score
from dprm.train.denoiser import Denoiser
from dprm.train.transformer import Config, Transformer


def test_oracle_calls_buy_whole_rounds_or_a_few_places():
    assert Tangermeme.of(8001) == Tangermeme(10, 200)
    assert Tangermeme.of(8000) == Tangermeme(9, 200)
    assert Tangermeme.of(21) == Tangermeme(1, 5)
    with pytest.raises(ValueError, match="calls is 4: one place takes 5"):
        Tangermeme.of(4)


def test_the_oracle_is_the_rewarded_score_and_counts():
    tokens, oracle = torch.randint(0, 4, (3, 200), generator=torch.Generator().manual_seed(0)), MotifOracle()
    assert torch.equal(oracle(one_hot(tokens)).squeeze(1), motif_score(tokens))
    assert oracle.asked == 3


def test_both_find_as_much_and_take_the_calls_they_may():
    pytest.importorskip("tangermeme", reason="the designers' library is no dependency: pip install tangermeme==1.6.0")
    model = Transformer(Config(VOCABULARY, width=32, depth=1, heads=2))
    host = RegulatoryDNA(Denoiser(model)).with_decoding(count=Fixed(50))
    card = compared(host, host.problems("test", 4), [21, 1601], "test").card
    native, few, theirs, ours = card.arms.values()
    assert list(card.arms) == [
        "random",
        "tangermeme, 5 places",
        "tangermeme, 2 rounds",
        "greedy substitution, 2 rounds",
    ]
    assert card.notes["designers"]["2 rounds"]["same score"] == 1.0
    assert native.mean < few.mean < theirs.mean == pytest.approx(ours.mean, abs=1e-5)
    assert (few.calls[ORACLE], theirs.calls[ORACLE], ours.calls[ORACLE]) == (21, 1601, 1201)
    assert set(ours.metrics) == {"motif", "hepg2", "log_likelihood", "3-mer correlation", "total"}
