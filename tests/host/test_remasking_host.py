"""A host that breaks most assumptions: two streams of tokens, one of them predicted bit by bit, and both taken back."""

import pytest
import torch

import dprm
from dprm.decode import Decoding, Even, Remask
from dprm.host.host import SPLITS, Host, Problems
from dprm.order import Reading
from tests.host.life import lived

COLUMNS, BITS, LETTERS = 3, 3, 4
# Letters, then codes of three bits, then the mask.
FIRST_CODE, MASK = LETTERS, LETTERS + 2**BITS


# ---- the host --------------------------------------------------------------------------------------------------------


class BitHead:
    """Reads (letters [B,C,4], bits [B,C,3]): a code is as probable as its bits together; all 2^b are never listed."""

    def draw(self, output, temperature, gumbel):
        letters, bits = output[0] / temperature, output[1] / temperature
        noise = gumbel(2 * BITS)
        drawn = (letters + noise[:, :COLUMNS, :LETTERS]).argmax(-1)
        flips = bits + noise[:, COLUMNS:, :BITS] - noise[:, COLUMNS:, BITS:]
        return torch.cat([drawn, _code((flips > 0).long())], dim=1)

    def read(self, output, tokens):
        letters = dprm.read(output[0], None if tokens is None else tokens[:, :COLUMNS].clamp(max=LETTERS - 1))
        one = output[1].double().sigmoid()
        code = _code((one > 0.5).long()) if tokens is None else tokens[:, COLUMNS:].clamp(FIRST_CODE, MASK - 1)
        chosen = torch.where((code - FIRST_CODE).unsqueeze(2) >> torch.arange(BITS) & 1 == 1, one, 1 - one).prod(2)
        sure = one.maximum(1 - one)
        best, least = sure.prod(2), sure.amin(2)
        entropy = -(one.xlogy(one) + (1 - one).xlogy(1 - one)).sum(2)
        codes = (code, chosen, best * (2 - 1 / least), entropy, best)
        mine = (letters.tokens, letters.confidence, letters.margin, letters.entropy, letters.peak)
        return Reading(*(torch.cat([a, b.to(a.dtype)], dim=1) for a, b in zip(mine, codes)))


def _code(bits):
    return FIRST_CODE + (bits << torch.arange(BITS)).sum(2)


class TwoStreams(Host):
    """Every code is to be 7, every letter what its code says. Letters look surest, but only a visible code tells them;
    a code is wrong until the one to its left is visible."""

    name = "two streams"
    decoding = Decoding(
        mask_id=MASK,
        count=Even(2 * COLUMNS + 2),
        revoke=Remask(0.2),
        reader=BitHead(),
        states=2,
        state_of=lambda canvas, reading: (torch.arange(2 * COLUMNS) >= COLUMNS).expand_as(canvas).long(),
    )

    def model(self):
        def two_heads(tokens):
            code = tokens[:, COLUMNS:]
            told = torch.nn.functional.one_hot((code - FIRST_CODE).clamp(0) % LETTERS, LETTERS) * 6.0
            guess = torch.tensor([1.5, 0.0, 0.0, 0.0]).expand_as(told)
            first = torch.arange(COLUMNS) == 0
            bits = torch.where(first | (code.roll(1, 1) < MASK), 1.2, -0.6).unsqueeze(2).expand(-1, -1, BITS)
            return torch.where((code < MASK).unsqueeze(2), told, guess), bits

        return two_heads

    def problems(self, split, count, seed=0):
        key = torch.arange(count) + 10_000 * SPLITS.index(split)
        return Problems(torch.full((count, 2 * COLUMNS), MASK), key, [None] * count)

    def judge(self, problems, tokens):
        return ((tokens[:, COLUMNS:] == MASK - 1) & (tokens[:, :COLUMNS] == LETTERS - 1)).float().mean(1)


# ---- what is true of it ----------------------------------------------------------------------------------------------


def expanded(output):
    """The same two heads as logits [B,2C,12] over all tokens."""
    letters, bits = output
    rows = letters.shape[0]
    code = torch.arange(2**BITS).unsqueeze(1) >> torch.arange(BITS) & 1
    joint = torch.full((rows, 2 * COLUMNS, MASK), -torch.inf)
    joint[:, :COLUMNS, :LETTERS] = letters
    signed = torch.where(code == 1, bits.unsqueeze(2), -bits.unsqueeze(2)) / 2
    joint[:, COLUMNS:, FIRST_CODE:] = signed.sum(3)
    return joint


@pytest.mark.parametrize("given", [False, True])
def test_a_bit_head_reads_what_all_its_codes_written_out_would_read(given):
    draw = torch.Generator().manual_seed(0)
    output = torch.randn(5, COLUMNS, LETTERS, generator=draw), 2 * torch.randn(5, COLUMNS, BITS, generator=draw)
    tokens = torch.randint(0, LETTERS, (5, 2 * COLUMNS), generator=draw)
    tokens[:, COLUMNS:] += FIRST_CODE
    mine, theirs = (
        reader(logits, tokens if given else None)
        for reader, logits in ((BitHead().read, output), (dprm.read, expanded(output)))
    )
    assert torch.equal(mine.tokens, theirs.tokens)
    for name in ("confidence", "margin", "entropy", "peak"):
        torch.testing.assert_close(getattr(mine, name), getattr(theirs, name), msg=name)


def test_bits_are_drawn_as_often_as_they_are_probable():
    host, first = TwoStreams(), []
    how = {"mask_id": MASK, "temperature": 0.5, "reader": BitHead(), "until": 1, "on_step": first.append}
    dprm.decode(host.model(), host.problems("test", 4000).canvas, **how)
    code = first[0].reading.tokens[:, COLUMNS:] - FIRST_CODE
    p = torch.tensor([1.2, -0.6, -0.6]).div(0.5).sigmoid()
    one = (code.unsqueeze(2) >> torch.arange(BITS) & 1).double()
    torch.testing.assert_close(one.mean(0), p.double().unsqueeze(1).expand(-1, BITS), atol=0.03, rtol=0)
    # Bit by bit: what one of them is says nothing of the next.
    both = (one * one.roll(1, 2)).mean(0)
    torch.testing.assert_close(both, p.double().square().unsqueeze(1).expand(-1, BITS), atol=0.03, rtol=0)


def test_tokens_are_taken_back_and_everything_is_revealed_in_the_end():
    host = TwoStreams()
    problems, redrawn = host.problems("test", 200), []
    result = dprm.decode(
        host.model(),
        problems.canvas,
        mask_id=MASK,
        budget=host.decoding.count,
        revoke=host.decoding.revoke,
        reader=host.decoding.reader,
        on_step=lambda step: redrawn.append(int(step.state.redrawn.sum())),
    )
    assert redrawn[-1] > 100
    assert (result.tokens < MASK).all()
    assert (result.tokens[:, :COLUMNS] < LETTERS).all()
    assert (result.tokens[:, COLUMNS:] >= FIRST_CODE).all()


def test_it_is_fitted_compared_and_judged(tmp_path):
    learned = lived(TwoStreams(), tmp_path, "head", calls=6000)
    arms = learned.card.arms
    assert learned.card.decoding["revoke"] == "Remask(rate=0.2)"
    assert arms["confidence"].mean < 0.2
    assert arms["dprm"].mean > 0.9
    assert learned.card.verdict["verdict"] == "apply"
