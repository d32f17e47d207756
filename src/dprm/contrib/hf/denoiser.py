"""What the families of Hugging Face checkpoints share: a model called as its family calls it, and read as it reads.

A family is a subclass with a file of its own. It says how the model is loaded and called, and how its own generation
decodes. Shapes: B rows, L positions, V vocabulary, D width.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from dprm.decode.hidden import Hidden
from dprm.decode.reader import Gumbel, Logits, logits_of
from dprm.order.checks import can_look
from dprm.order.reading import Reading

# What belongs to a row besides its canvas, see `decode.rows`.
ATTENTION, EMBEDDINGS, EMBEDDED = "attention", "embeddings", "embedded"
Context = Mapping[str, Tensor]
# Numbers of a piece of the logits.
_PIECE = 2**25


@dataclass(frozen=True)
class Length:
    """How long an answer is, and how its family decodes it; what is None is as the family has it.

    Attributes:
        length: masked positions behind a prompt; 0: the prompt has its own masks.
        block: positions of a block. steps: of the whole answer.
    """

    length: int | None = None
    block: int | None = None
    steps: int | None = None


class Denoiser(torch.nn.Module):
    """Tokens [B,L], and what belongs to their rows → logits [B,L,V], aligned with the tokens.

    Attributes:
        family: its name.
        model_types: of the configurations that it is found by. loader: what loads it in transformers.
        mask_id: of its public checkpoints; None where only the tokenizer knows.
        ends: tokens that end an answer, besides the tokenizer's own.
        left: prompts are padded on the left.
        head: where its output head is; empty: it cannot be left to the decoder.
        words_only: special tokens are never revealed; otherwise only the mask is not.
        lengths: the family's own settings.
    """

    family: ClassVar[str]
    model_types: ClassVar[tuple[str, ...]] = ()
    loader: ClassVar[str] = "AutoModel"
    mask_id: ClassVar[int | None] = None
    ends: ClassVar[tuple[str, ...]] = ()
    left: ClassVar[bool] = True
    head: ClassVar[str] = ""
    words_only: ClassVar[bool] = False
    lengths: ClassVar[Length] = Length(128, 32, 128)

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model: Any = model.eval().requires_grad_(False)
        self.takes = frozenset(inspect.signature(model.forward).parameters)
        # Public code asks its configuration for these, and newer configurations do not answer.
        plain = {"use_cache": False, "return_dict": True}
        self.told = {name: value for name, value in plain.items() if name in self.takes}

        self.own_head: torch.nn.Module | None = None

    @torch.no_grad()
    def forward(self, tokens: Tensor, context: Context | None = None) -> Tensor | Hidden:
        output = self.logits(tokens, dict(context or {}))
        return output if self.own_head is None else Hidden(output, self._headed)

    @property
    def plain(self) -> bool:
        """Whether a call gives the logits of every position."""
        return self.own_head is None

    def leave_head(self) -> None:
        """From now on give what the output head would be computed of; `decode` does it where something may be revealed.

        The model is called as before, with an identity in place of its head.
        """
        place, _, name = self.head.rpartition(".")
        try:
            owner = self.model.get_submodule(place)
            self.own_head = owner.get_submodule(name)
        except AttributeError:
            raise ValueError(f"the model has no output head of its own at {self.head!r} to be left out") from None
        owner._modules[name] = torch.nn.Identity()

    def keep_blocks(self, mask_id: int) -> None:
        """From now on keep keys and values of what is done from call to call; only where that changes nothing."""
        raise ValueError(
            f"models of family {self.family} see every position from every other: kept keys and values would be stale; "
            "they are exact in block-causal models, llada2"
        )

    def _headed(self, states: Tensor) -> Tensor:
        """Logits [n,V] of states [n,D]."""
        assert self.own_head is not None
        # Models that hand out float32 have made it of what their head gave.
        logits: Tensor = self.own_head(states.to(next(self.own_head.parameters()).dtype)).to(states.dtype)
        return logits

    def logits(self, tokens: Tensor, context: dict[str, Tensor]) -> Tensor:
        """[B,L,V]; context has `attention` [B,L] bool, False at padding, where any row is padded."""
        raise NotImplementedError(f"{type(self).__name__} says nothing about calling its model")

    @property
    def vocabulary(self) -> int:
        """V, as the embedding has it."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def longest(self) -> int | None:
        """The longest canvas the model was made for, where its configuration says so."""
        config = self.model.config
        names = ("max_position_embeddings", "max_sequence_length")
        return next((int(size) for name in names if (size := getattr(config, name, None))), None)

    @classmethod
    def decoding(
        cls, length: Length, forbid: tuple[int, ...], top_p: float, top_k: int, ends: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        """The fields of `Decoding` by which the family's own generation decodes.

        Args:
            forbid: tokens that are never revealed, the mask among them. ends: tokens that end an answer.
        """
        return {"reader": OwnSoftmax(forbid, top_p, top_k)}

    def masks(self, asked: int, length: int) -> int:
        """How many masks stand behind a prompt of so many tokens for an answer of a length."""
        return length

    def settle(self, length: Length) -> None:
        """Be told the settings that the model itself depends on."""

    @classmethod
    def length_of(cls, asked: Length) -> Length:
        """The settings that were asked for, filled up with the family's own, and checked."""
        length = asked.length if asked.length is not None else cls.lengths.length
        block = asked.block if asked.block is not None else cls.lengths.block
        return replace(asked, length=length, block=block if block is None else min(block, length or block))


@dataclass(frozen=True)
class OwnSoftmax(Logits):
    """Logits whose confidence is `torch.softmax` over all tokens in the type of the model, as public generation has it.

    In bfloat16 many confidences are equal. The order takes the leftmost of them; `torch.topk`, which public code uses,
    promises nothing.
    """

    def look(
        self, output: Any, temperature: float, gumbel: Gumbel, eligible: Tensor, confidence_of: str
    ) -> tuple[Tensor, Reading]:
        tokens = self.draw(output, temperature, gumbel, eligible)
        return tokens, self.read(output, tokens if confidence_of == "drawn" else None, eligible)

    def read(self, output: Any, tokens: Tensor | None, eligible: Tensor | None = None) -> Reading:
        reading = super().read(output, tokens, eligible)
        p = softmax_at(logits_of(output), reading.tokens, eligible).float()
        return replace(reading, confidence=p)


def softmax_at(logits: Tensor, tokens: Tensor, eligible: Tensor | None = None) -> Tensor:
    """[B,L] softmax(logits)[tokens] in the type of the logits, piece by piece: a copy of all would be gigabytes.

    Args:
        eligible: [B,L] bool; 0 elsewhere.
    """
    flat, picked = logits.flatten(0, 1), tokens.flatten()
    # To know which positions are eligible would stop an accelerator: there all are read.
    number = eligible.flatten().nonzero().flatten() if eligible is not None and can_look(logits) else None
    if number is not None:
        flat, picked = flat[number], picked[number]
    count = max(1, _PIECE // logits.shape[-1])
    starts = range(0, len(flat), count)
    pieces = [flat[i : i + count].softmax(-1).gather(1, picked[i : i + count].unsqueeze(1)).squeeze(1) for i in starts]
    p = torch.cat([logits.new_zeros(0), *pieces])
    if number is not None:
        return p.new_zeros(tokens.numel()).index_copy_(0, number, p).view(tokens.shape)
    p = p.view(tokens.shape)
    return p if eligible is None else torch.where(eligible, p, 0)


def positions_of(attention: Tensor) -> Tensor:
    """[B,L] int64, the place of every token in its own text; 0 at padding."""
    return (attention.long().cumsum(1) - 1).clamp(min=0)
