"""All adapters in one table: a step, or a whole generation, of each engine as it is and with a `Selector` beside it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy
import torch

import dprm
from dprm.contrib import d2cache, dinfer, dmpo, dplm, lmdeploy, mdlm, mlx_vlm, moco, puma, topk, transfer_index, vllm
from dprm.contrib.dcm import ScoreModel
from dprm.contrib.dream import OrderHook
from dprm.contrib.selector import Selector
from tests.contrib import sampler_with_topk, stand_ins, upstreams
from tests.contrib.engines import MASK, VOCABULARY, Engine

NET = upstreams.Net()


def selector(known, tmp_path=None, recorded=False, **settings):
    traces = tmp_path if recorded else None
    return Selector(known, mask_id=MASK, vocabulary=VOCABULARY, traces=traces, **settings)


def committed(fn, x, before):
    masked = before == MASK
    tokens, taken = fn(x, 0.0, "low_confidence", masked, before, masked.sum(1).clamp(max=2))
    return torch.where(taken, tokens, before)


def of_unmasking(processor, x, before):
    state = (before != MASK).long().flatten()
    after, tokens = processor(x.flatten(0, 1), before.flatten(), x.argmax(-1).flatten(), state)
    return torch.where(after.view_as(before) > 0, tokens.view_as(before), MASK)


def of_decoder(decoder, x, before):
    text = torch.cat([torch.zeros_like(before), before], dim=1)
    length = before.shape[1]
    decoder.block_init(before, 1)
    decoder.decode(x, length, 2 * length, text)
    return text[:, length:]


def of_positions(fn, x, before):
    probs = x.softmax(-1)
    sure, tokens = probs.max(-1)
    masked = before == MASK
    settings = {"transfer_index_mask": masked, "block_mask": torch.ones_like(masked), "num_transfer_tokens": 2}
    index, extra = fn(
        active_seq_idx=torch.arange(len(x)), scores=torch.where(masked, sure, -torch.inf), probs=probs, **settings
    )
    assert extra == {"kept": 1}
    after = before.clone()
    for row, places in enumerate(index):
        after[row, places] = tokens[row, places]
    return after


def of_arrays(fn, x, before):
    sure, tokens = x.softmax(-1).max(-1)
    taken = fn(sure.numpy(), (before == MASK).numpy(), 0.8)
    return torch.where(torch.from_numpy(numpy.asarray(taken)), tokens, before)


def of_requests(remasking, x, before):
    rows = [remasking.apply(input_draft=row.tolist(), logits=logits) for row, logits in zip(before, x, strict=True)]
    return torch.tensor([list(row.committed_token_ids or row.next_input_block) for row in rows])


def of_rollouts(trainer, before):
    return trainer.generate(model=NET, prompt=before, steps=4, mask_id=MASK)


def of_molecules(host, x, before):
    torch.manual_seed(0)
    return host.step_confidence(x, before, curr_step=1, num_steps=12, randomness=0.3, num_tokens_unmask=2)


def of_chance(host, before):
    torch.manual_seed(0)
    return host._ddpm_update(before, torch.full((len(before), 1), 0.6), 0.2)


def of_proteins(host, x, before):
    """Half amino acids, half structure tokens; what is hidden afterwards is the mask of its half."""
    length = before.shape[1]
    kind = (torch.arange(length) >= length // 2).long().expand_as(before)
    sure, drawn = x[..., : host.aa_mask_id].log_softmax(-1).max(-1)
    masks = torch.where(kind == 0, host.aa_mask_id, host.struct_mask_id)
    _, tokens, _ = host._reparam_decoding(
        output_tokens=torch.where(before == MASK, masks, before.clamp(max=host.aa_mask_id - 1)),
        output_scores=torch.where(before == MASK, -torch.inf, sure),
        cur_tokens=drawn,
        cur_scores=sure,
        decoding_strategy="reparam-uncond-deterministic-linear",
        xt_neq_x0=before == MASK,
        type_ids=kind,
        non_special_sym_mask=torch.ones_like(before, dtype=torch.bool),
        t=5,
        max_step=10,
    )
    return torch.where(tokens == masks, MASK, tokens)


def of_pool(pool, x):
    pool.update_with_logits(x.log_softmax(-1))
    return pool.xt


def pool_of(x, before):
    """The true tokens of the pool are the most probable ones."""
    return upstreams.PhasedMasking(torch.where(before == MASK, x.argmax(-1), before), before)


def cells(model, before, order=None):
    return dprm.decode(model, before, order, mask_id=MASK, budget=2).tokens


def inside(context, run):
    with context:
        return run()


def with_trainer(x, before, known):
    trainer = SimpleNamespace(generate=upstreams.generate)
    return inside(dmpo.attached(trainer, known), lambda: of_rollouts(trainer, before))


def with_molecules(x, before, known):
    host = upstreams.Mdlm()
    return inside(moco.attached(host, known), lambda: of_molecules(host, x, before))


def with_chance(x, before, known):
    host = upstreams.Diffusion(NET)
    return inside(mdlm.attached(host, known), lambda: of_chance(host, before))


def with_proteins(x, before, known):
    host = upstreams.Dplm()
    return inside(dplm.attached(host, known, bits=3), lambda: of_proteins(host, x, before))


def with_pool(x, before, known):
    pool = pool_of(x, before)
    return inside(puma.attached(pool, known), lambda: of_pool(pool, x))


def with_sampler(x, before, known):
    run = lambda: sampler_with_topk.sample(NET, before, 3, 6)  # noqa: E731
    return inside(topk.attached(sampler_with_topk, known, block=6), run)


def with_search(x, before, known):
    return inside(topk.attached(upstreams, known, block=12), lambda: upstreams.hierarchical(NET, before))


def with_cells(x, before, known):
    return cells(ScoreModel(lambda tokens, sigma: NET(tokens), known.mask_id), before, known.order)


# Functions and decoders: one step, in which the engine says what is masked and what was revealed.
STEPS = [
    Engine(
        "get_transfer_index",
        lambda x, before: committed(stand_ins.transfer_index, x, before),
        lambda x, before, known: committed(transfer_index.ordered(stand_ins.transfer_index, known), x, before),
        shows=("vocabulary",),
    ),
    Engine(
        "batched_remask",
        lambda x, before: stand_ins.batched_remask(x, before, MASK, 0.7)[0],
        lambda x, before, known: vllm.ordered(stand_ins.batched_remask, known)(x, before, MASK, 0.7)[0],
        shows=("mask", "vocabulary"),
    ),
    Engine(
        "RemaskingPolicy",
        lambda x, before: of_requests(stand_ins.SurestTwo(), x, before),
        lambda x, before, known: of_requests(vllm.OrderedPolicy(stand_ins.SurestTwo(), known), x, before),
        shows=("mask", "vocabulary"),
        # Its blocks are Python integers: those of each of six requests are brought back.
        waits=6,
    ),
    Engine(
        "UnmaskingProcessor",
        lambda x, before: of_unmasking(stand_ins.Unmasking(12), x, before),
        lambda x, before, known: of_unmasking(lmdeploy.OrderedUnmasking(stand_ins.Unmasking(12), known), x, before),
        shows=("vocabulary",),
    ),
    Engine(
        "ParallelDecoder",
        lambda x, before: of_decoder(stand_ins.Decoder(), x, before),
        lambda x, before, known: of_decoder(dinfer.OrderedDecoder(stand_ins.Decoder(), known), x, before),
        shows=("mask", "vocabulary"),
    ),
    Engine(
        "unmasking_fn",
        lambda x, before: of_positions(stand_ins.unmasking_fn, x, before),
        lambda x, before, known: of_positions(d2cache.ordered(stand_ins.unmasking_fn, known), x, before),
        shows=("vocabulary",),
    ),
    Engine(
        "transfer_mask",
        lambda x, before: of_arrays(stand_ins.mlx_transfer_mask, x, before),
        lambda x, before, known: of_arrays(mlx_vlm.Ordered(stand_ins.mlx_transfer_mask, known, numpy), x, before),
        arrays=True,
        head=False,
    ),
]

# The hosts of the paper, and samplers without a hook: a step, or a whole generation.
HOSTS = [
    Engine(
        "dream",
        lambda x, before: upstreams.dream(NET, before, 4),
        lambda x, before, known: upstreams.dream(NET, before, 4, OrderHook(known)),
        shows=("mask", "vocabulary"),
        # How many positions are revealed is one number for the batch.
        alone=False,
        # Before the first step, whether the text has the mask.
        waits=1,
    ),
    Engine(
        "dmpo",
        lambda x, before: of_rollouts(upstreams.TRAINER, before),
        with_trainer,
        shows=("mask", "vocabulary"),
    ),
    Engine("dllm", lambda x, before: sampler_with_topk.sample(NET, before, 3, 6), with_sampler, head=False),
    Engine("prism", lambda x, before: upstreams.hierarchical(NET, before), with_search, head=False),
    Engine(
        "moco",
        lambda x, before: of_molecules(upstreams.Mdlm(), x, before),
        with_molecules,
        shows=("mask", "vocabulary"),
        alone=False,
    ),
    Engine("dplm", lambda x, before: of_proteins(upstreams.Dplm(), x, before), with_proteins, head=False),
    Engine(
        "mdlm",
        lambda x, before: of_chance(upstreams.Diffusion(NET), before),
        with_chance,
        signal="random",
        shows=("mask", "vocabulary"),
        alone=False,
    ),
    Engine("puma", lambda x, before: of_pool(pool_of(x, before), x), with_pool, shows=("mask", "vocabulary")),
    Engine("dcm", lambda x, before: cells(lambda tokens: NET(tokens)[..., :MASK], before), with_cells, shows=("mask",)),
]
ENGINES = STEPS + HOSTS
