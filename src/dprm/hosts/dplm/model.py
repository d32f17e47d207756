"""The shared transformer with a bit head: a structure token is predicted bit by bit.

    log p(code) = Σ_b log p(bit_b of the code)

which is the log-softmax over all codes of Σ_b ± logit_b / 2: so the loss and the reading of logits over tokens are
those of the bits. With 13 bits the codes are not written out; with three they are eight. Shapes: B rows, L positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.hosts.dplm.tokens import BITS, FIRST_STATE, LONGEST, MASK, VOCABULARY
from dprm.train.transformer import Config, Transformer

# Far below any logit: a position of one stream has no token of the other.
_NEVER = -1e4


class BitTransformer(Transformer):
    """Tokens [B,L] → logits [B,L,30]: of letters in the sequence, of codes in the structure."""

    code_bits: Tensor

    def __init__(self, config: Config, seed: int = 0):
        super().__init__(config, seed)
        bit = torch.arange(2**BITS).unsqueeze(1) >> torch.arange(BITS) & 1
        self.register_buffer("code_bits", bit.float() - 0.5, persistent=False)

    def forward(self, tokens: Tensor, prefix: Tensor | None = None) -> Tensor:
        head = super().forward(tokens, prefix)
        logits = head.new_full((*head.shape[:2], VOCABULARY), _NEVER)
        logits[:, :LONGEST, FIRST_STATE:MASK] = head[:, :LONGEST, FIRST_STATE : FIRST_STATE + BITS] @ self.code_bits.T
        logits[:, LONGEST:, :FIRST_STATE] = head[:, LONGEST:, :FIRST_STATE]
        return logits


def build(config: Config, seed: int = 0) -> BitTransformer:
    """The model of a shape."""
    return BitTransformer(config, seed)
