"""AntiBERTy (Ruffolo, Gray, Sulam 2021): a BERT of 26 million parameters, trained on 558 million antibody sequences.

The weights are inside the wheel `antiberty==0.1.3`. They are read as tensors alone, from an installed wheel or from the
registry; no code of the package is run. Shapes: B sequences, L tokens, V = 25 tokens.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, BertModel

from dprm.data.packages import Source
from dprm.host.weights import sha256

TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ACDEFGHIKLMNPQRSTVWY")
PAD, UNKNOWN, START, END, MASK, FIRST = range(6)
SPECIES = ("camel", "human", "mouse", "rabbit", "rat", "rhesus")
CHAINS = ("heavy", "light")
SHAPE = BertConfig(vocab_size=25, hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048)

_INSIDE = "antiberty/trained_models/AntiBERTy_md_smooth/pytorch_model.bin"
_SHA256 = "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137"
WEIGHTS = Source(
    package="antiberty",
    archive="antiberty-0.1.3-py3-none-any.whl",
    sha256="30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a",
    inside=_INSIDE,
    licence="MIT",
    about="AntiBERTy, a masked language model of antibodies",
)


class AntiBERTy(nn.Module):
    """Tokens [B,L] → logits [B,L,V]; and what a whole sequence is.

    The encoder computes in bfloat16, as our small models do on a GPU: three times as fast on a CPU that knows it.
    """

    def __init__(self, shape: BertConfig = SHAPE):
        super().__init__()
        self.bert = BertModel(shape)
        self.predictions = BertForMaskedLM(shape).cls.predictions
        self.species = nn.Linear(shape.hidden_size, len(SPECIES))
        self.chain = nn.Linear(shape.hidden_size, len(CHAINS))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.predictions(self._encoded(tokens).last_hidden_state.float())
        return logits

    @torch.no_grad()
    def classes(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities of SPECIES [B,6] and of CHAINS [B,2]."""
        pooled = self._encoded(tokens).pooler_output.float()
        return self.species(pooled).softmax(-1), self.chain(pooled).softmax(-1)

    @torch.no_grad()
    def pseudo_likelihood(self, tokens: Tensor, folds: int = 4) -> Tensor:
        """[B] geometric mean over the residues of p(residue | sequence without every `folds`-th residue)."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        residue = tokens >= FIRST
        total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
        for fold in range(folds):
            hidden = residue & (place % folds == fold)
            logits = self(tokens.masked_fill(hidden, MASK))[..., FIRST:].double()
            chosen = logits.log_softmax(-1).gather(2, (tokens - FIRST).clamp(min=0).unsqueeze(2)).squeeze(2)
            total += (chosen * hidden).sum(1)
        return (total / residue.sum(1).clamp(min=1)).exp()

    def _encoded(self, tokens: Tensor):  # type: ignore[no-untyped-def]
        with torch.autocast(tokens.device.type, torch.bfloat16):
            return self.bert(tokens, attention_mask=(tokens != PAD).long())


def weights_file() -> Path:
    """The weights, verified: of an installed wheel, or from the registry."""
    package = importlib.util.find_spec("antiberty")
    if package is None or package.origin is None:
        return WEIGHTS.obtain()
    path = Path(package.origin).parents[1] / _INSIDE
    if not path.is_file() or sha256(path) != _SHA256:
        raise ValueError(f"the installed antiberty has other weights than 0.1.3: pip install antiberty==0.1.3 ({path})")
    return path


def load(device: torch.device | str = "cpu") -> AntiBERTy:
    """The network with its weights; every tensor of it has to be there."""
    stored = torch.load(weights_file(), map_location="cpu", weights_only=True)
    renamed = {name.removeprefix("cls."): tensor for name, tensor in stored.items()}
    network = AntiBERTy()
    missing, _ = network.load_state_dict(renamed, strict=False)
    if missing:
        raise ValueError(f"the weights of AntiBERTy lack {', '.join(missing)}")
    return network.to(device).requires_grad_(False).eval()
