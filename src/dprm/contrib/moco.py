"""bionemo-moco, and GenMol on it: `step_confidence` of its masked diffusion, in the order of a policy, noise and all.

    score = (log p(drawn) + randomness · (1 − step/(steps − 1)) · Gumbel) / confidence_temperature

The noise is the engine's and stays in the score: taking it out would by itself change how diverse the answers are. With
the same generator the same numbers are drawn, so an empty policy gives the engine's own answers. Shapes: B rows, L
positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch


@contextmanager
def attached(mdlm: Any, selector: Selector, state_of: Callable[[Tensor], Tensor] | None = None) -> Iterator[Watch]:
    """Have an `MDLM` of bionemo-moco, such as `sampler.mdlm` of GenMol, reveal in the order of a policy.

    Args:
        state_of: drawn tokens [B,L] → [B,L] int, the chemistry class of each, for a policy that has classes.
    """
    selector.expect_mask("mdlm has mask_index", getattr(mdlm, "mask_index", None))
    own_step, watch = mdlm.step_confidence, Watch()

    def step_confidence(
        logits: Tensor,
        xt: Tensor,
        curr_step: int,
        num_steps: int,
        logit_temperature: float = 1.0,
        randomness: float = 1.0,
        confidence_temperature: float = 1.0,
        num_tokens_unmask: int = 1,
    ) -> Tensor:
        if selector.idle:
            settings = (logit_temperature, randomness, confidence_temperature, num_tokens_unmask)
            result: Tensor = own_step(logits, xt, curr_step, num_steps, *settings)
            return result
        probability = (mdlm._subs_parameterization(logits, xt) / logit_temperature).softmax(-1)
        law = torch.distributions.Categorical(probs=probability)
        tokens: Tensor = law.sample()  # type: ignore[no-untyped-call]
        confidence = probability.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        uniform = torch.rand(xt.shape, device=logits.device, generator=mdlm.rng_generator)
        gumbel = -(-uniform.log()).log()
        noise = gumbel * randomness * (1 - curr_step / (num_steps - 1))
        masked = xt == selector.mask_id
        score = ((confidence.log() + noise) / confidence_temperature).masked_fill(~masked, -torch.inf)
        own = torch.zeros_like(masked).scatter(1, score.topk(num_tokens_unmask, dim=-1).indices, True) & masked
        aux = None if state_of is None else state_of(tokens)
        requests = watch.requests(masked)
        chosen = selector.select(own, confidence, masked, requests, logits=logits, tokens=tokens, aux=aux, score=score)
        return torch.where(chosen, tokens, xt)

    with replaced(mdlm, "step_confidence", step_confidence):
        yield watch
