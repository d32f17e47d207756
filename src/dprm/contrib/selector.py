"""What an engine calls: a policy beside one model, the state of its requests, and the choice of one step.

The engine makes its own choice first. That says how many positions are revealed; the policy says which. Where the
policy would not change the decision, the engine's own choice stands as it is, ties included. Nothing here waits for an
accelerator. Shapes: B requests, L positions of a block, V vocabulary.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.contrast import contrast
from dprm.contrib.engine_reading import ALIKE, OF_CONFIDENCE, OfEngine, reading_of, scored
from dprm.contrib.requests import Requests
from dprm.fit.traces import Recorder, Reveals, Traces
from dprm.order.checks import check_count, check_shape
from dprm.order.order import Order
from dprm.order.policy import Policy, PolicyError

_NO_MASK = "dprm chooses among masked positions, and a model without a mask has none"


class Selector:
    """A policy beside one model of an engine.

    Args:
        policy: a policy, or its file; None is the engine's own order, to record it.
        mask_id: the token that hides a position. vocabulary: V of the logits, if the engine knows it.
        signal: what the engine itself ranks by; a policy that corrects another order is refused.
        guidance: None as stored; 0 is the engine's own order, for an A/B test.
        explore: draw positions where nothing is known yet, so that traces tell more than the engine's own order.
        traces: where choices are written, on one rank only.
        contrasts: write down, too, what a head is learned from; only what is drawn has it, so `explore` has to be on.

    Raises:
        PolicyError: the policy does not belong to this model or engine. ValueError: the model has no mask token.
    """

    def __init__(
        self,
        policy: Policy | str | os.PathLike[str] | None,
        *,
        mask_id: int | None,
        vocabulary: int | None = None,
        signal: str = "confidence",
        guidance: float | None = None,
        explore: bool = False,
        traces: Recorder | str | os.PathLike[str] | None = None,
        contrasts: bool = False,
    ):
        if mask_id is None or mask_id < 0:
            raise ValueError(f"mask_id is {mask_id}: {_NO_MASK}")
        self.mask_id = check_count("mask_id", mask_id, 0)
        self.vocabulary = vocabulary
        if vocabulary is not None and mask_id >= vocabulary:
            raise ValueError(f"mask_id is {mask_id}: outside the vocabulary of {vocabulary}")
        if isinstance(policy, str | os.PathLike):
            policy = Policy.load(policy)
        if policy is None:
            policy = Order(signal=signal).policy()
        if policy.signal["name"] not in ALIKE.get(signal, (signal,)):
            raise PolicyError(
                f"this policy corrects the order by {policy.signal['name']}, and this engine ranks by {signal}: "
                "fit one on traces of this engine"
            )
        self.policy = policy
        self._check_notes(self._model)
        rule = "soft_bon" if explore and policy.rule == "top_m" else None
        self.order = Order.from_policy(policy, rule=rule, guidance=guidance, explore=explore)
        if contrasts and (traces is None or not explore):
            raise ValueError("contrasts is True: they are of draws and go to traces; expected explore=True and traces")
        self.contrasts = contrasts
        self.traces: Recorder | None = Traces(Path(traces)) if isinstance(traces, str | os.PathLike) else traces
        if self.traces is not None:
            self.traces.expect(self.order, policy.digest, self._model)

    @property
    def silent(self) -> bool:
        """Whether the engine's own choice stands at every step."""
        return self.order.silent

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do at all."""
        return self.traces is None and self.silent

    @property
    def looks_at_logits(self) -> bool:
        """Whether the confidence of a position is not enough."""
        return self.contrasts or self.order.head is not None or self.order.signal.name not in OF_CONFIDENCE

    @property
    def _model(self) -> dict[str, int | None]:
        return {"mask_id": self.mask_id, "vocabulary": self.vocabulary}

    def expect_mask(self, engine: str, mask: Any) -> None:
        """Refuse an engine whose mask is another one, or that has none.

        Args:
            engine: the beginning of what the error says, such as "decoder has mask_id".
        """
        if mask is None:
            raise ValueError(f"{engine} None: {_NO_MASK}")
        if int(mask) != self.mask_id:
            raise ValueError(f"{engine} {mask}: expected that of the selector, {self.mask_id}")

    def expect_vocabulary(self, logits: Tensor) -> None:
        """Refuse logits [..., V] of a model with another vocabulary."""
        tokens = logits.shape[-1]
        if self.vocabulary is not None and tokens != self.vocabulary:
            raise ValueError(f"logits has {tokens} tokens: expected the vocabulary of {self.vocabulary}")
        self._check_notes({"vocabulary": tokens})

    def _check_notes(self, model: dict[str, int | None]) -> None:
        """What a policy says of its model must be true of this one."""
        for name, value in model.items():
            fitted = self.policy.notes.get(name)
            if fitted is not None and value is not None and fitted != str(value):
                raise PolicyError(f"this policy was fitted with {name} = {fitted}, and this model has {value}")

    @torch.no_grad()
    def select(
        self,
        own: Tensor,
        confidence: Tensor | None,
        candidates: Tensor,
        requests: Requests,
        *,
        logits: Tensor | None = None,
        tokens: Tensor | None = None,
        aux: Tensor | None = None,
        score: Tensor | None = None,
        progress: Tensor | None = None,
    ) -> Tensor:
        """The positions to reveal now, as many in each row as the engine itself would.

        Args:
            own: [B,L] bool, the engine's own choice. candidates: [B,L] bool, what it chose among.
            confidence: [B,L], the number the engine ranks by, a probability; None: that of the tokens under the logits.
            logits: [B,L,V], needed where confidence is not given, or is not all that the policy looks at.
            tokens: [B,L], what each position would receive; default the most probable token.
            aux: [B,L] int, the state of every position, for a policy that has several.
            score: [B,L], log ψ of an engine that ranks by something else, such as confidence with its own noise.
            progress: [B], for an engine that takes tokens back; None: the share of the block that is revealed.

        Returns:
            [B,L] bool.
        """
        check_shape("own", own, tuple(candidates.shape), "the engine's choice, one flag a position")
        if len(requests.names) != len(candidates):
            raise ValueError(
                f"requests has {len(requests.names)} rows: expected {len(candidates)}, those of candidates"
            )
        if logits is not None:
            self.expect_vocabulary(logits)
        own = own & candidates
        if self.idle:
            return own
        if self.order.cells.aux > 1 and aux is None:
            raise ValueError(f"this policy has {self.order.cells.aux} states of a position: expected aux")
        reading = reading_of(self.mask_id, confidence, candidates, logits, tokens, self.looks_at_logits)
        seeds = requests.seeds() if self.order.draws and not self.silent else None
        progress = requests.progress(candidates) if progress is None else progress
        order = self.order
        if score is not None:
            order = copy.copy(order)
            order.signal, reading = OfEngine(), scored(reading, torch.where(candidates, score, 0.0))
        choice = order.select(reading, candidates, own.sum(1), progress, aux=aux, seed=seeds)
        changed = choice.changed.unsqueeze(1)
        mask = torch.where(changed, choice.mask, own)
        if self.traces is not None:
            drawn = None
            if self.contrasts and seeds is not None:
                drawn = contrast(order, reading, candidates, own, mask, progress, aux, seeds)
            known = {"aux": aux, "changed": choice.changed, "progress": progress, "contrast": drawn}
            self.record(mask, reading.confidence, candidates, requests, **known)
        return mask

    def revise(
        self,
        before: Tensor,
        after: Tensor,
        logits: Tensor,
        requests: Requests,
        *,
        tokens: Tensor | None = None,
        eligible: Tensor | None = None,
        aux: Tensor | None = None,
    ) -> Tensor:
        """[B,L] tokens of a block after a step, from what the engine made of it: the same number of reveals.

        What the engine changed where nothing was masked stays changed.

        Args:
            before, after: [B,L] tokens around the engine's own step. logits: [B,L,V] of that step.
            tokens: [B,L], what each position would receive; default the most probable token.
            eligible: [B,L] bool, for texts in which the mask may stand as itself; None: all masked positions.
        """
        self.expect_vocabulary(logits)
        if self.idle:
            return after
        masked = before == self.mask_id if eligible is None else (before == self.mask_id) & eligible
        own = masked & (after != self.mask_id)
        tokens = torch.where(own, after, logits.argmax(-1) if tokens is None else tokens)
        # Where the mask itself is most probable, nothing could be revealed.
        chosen = self.select(
            own, None, masked & (tokens != self.mask_id), requests, logits=logits, tokens=tokens, aux=aux
        )
        return torch.where(chosen, tokens, torch.where(masked, before, after))

    def record(
        self,
        mask: Tensor,
        confidence: Tensor,
        candidates: Tensor,
        requests: Requests,
        *,
        aux: Tensor | None = None,
        changed: Tensor | None = None,
        progress: Tensor | None = None,
        contrast: Tensor | None = None,
    ) -> None:
        """Take down what was revealed, whoever chose it. `select` does that itself.

        Args:
            mask, confidence, candidates: [B,L]. changed: [B] bool, whether the policy changed the step; None: no.
            contrast: [B,F], see `contrib.contrast`.
        """
        if self.traces is None:
            raise ValueError("this Selector has no traces: it was made without a folder for them")
        exact = torch.where(candidates, confidence.float(), 0.0).clamp(0.0, 1.0)
        cells = self.order.cells
        first = cells.first_of_phase(requests.progress(candidates) if progress is None else progress)
        cell = cells.index(first, exact, aux)
        if changed is None:
            changed = torch.zeros_like(candidates[:, 0])
        taken = mask & candidates
        self.traces.record(Reveals(requests.names, requests.first, candidates, taken, cell, exact, changed, contrast))
