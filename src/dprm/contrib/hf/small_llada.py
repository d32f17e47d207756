"""A model whose checkpoints have LLaDA's format: names of weights, fields of the configuration, arguments of `forward`.

This file is copied beside the weights of a small checkpoint, as the code that comes with it; it knows nothing of dprm.
With `head_norm` and `answer_positions` off it computes what the public model computes from the same weights. On, they
add what our small models have: queries and keys normalised per head, learned positions besides the rotary ones.
Shapes: B rows, L positions, D width, H heads, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast


class LLaDAConfig(PretrainedConfig):
    """The fields of LLaDA's configuration that are read here, and two of our own."""

    model_type = "llada"

    def __init__(
        self,
        vocab_size: int = 64,
        embedding_size: int | None = None,
        d_model: int = 32,
        n_heads: int = 2,
        n_kv_heads: int | None = None,
        n_layers: int = 2,
        mlp_hidden_size: int | None = None,
        mlp_ratio: int = 4,
        rope_theta: float = 10_000.0,
        rms_norm_eps: float = 1e-5,
        max_sequence_length: int = 256,
        weight_tying: bool = False,
        mask_token_id: int | None = None,
        head_norm: bool = False,
        answer_positions: bool = False,
        **others: Any,
    ):
        self.vocab_size, self.embedding_size = vocab_size, embedding_size
        self.d_model, self.n_heads, self.n_layers = d_model, n_heads, n_layers
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        self.mlp_ratio = mlp_ratio
        self.mlp_hidden_size = mlp_ratio * d_model if mlp_hidden_size is None else mlp_hidden_size
        self.rope_theta, self.rms_norm_eps = rope_theta, rms_norm_eps
        self.max_sequence_length, self.weight_tying = max_sequence_length, weight_tying
        self.mask_token_id = mask_token_id
        self.head_norm, self.answer_positions = head_norm, answer_positions
        others["tie_word_embeddings"] = weight_tying
        super().__init__(**others)


class Block(nn.Module):
    """h ← h + Attention(norm h), h ← h + SwiGLU(norm h)."""

    def __init__(self, config: LLaDAConfig):
        super().__init__()
        width, eps = config.d_model, config.rms_norm_eps
        self.heads, self.size = config.n_heads, config.d_model // config.n_heads
        narrow = config.n_kv_heads * self.size
        self.attn_norm, self.ff_norm = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = nn.Linear(width, narrow, bias=False), nn.Linear(width, narrow, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.ff_proj = nn.Linear(width, config.mlp_hidden_size, bias=False)
        self.up_proj = nn.Linear(width, config.mlp_hidden_size, bias=False)
        self.ff_out = nn.Linear(config.mlp_hidden_size, width, bias=False)
        if config.head_norm:
            self.q_norm, self.k_norm = nn.RMSNorm(self.size, eps), nn.RMSNorm(self.size, eps)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, bias: Tensor | None) -> Tensor:
        rows, length, width = h.shape
        x = self.attn_norm(h)
        q, k, v = (part(x).view(rows, length, -1, self.size) for part in (self.q_proj, self.k_proj, self.v_proj))
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = _rotated(q.transpose(1, 2), cos, sin), _rotated(k.transpose(1, 2), cos, sin), v.transpose(1, 2)
        share = self.heads // k.shape[1]
        k, v = k.repeat_interleave(share, dim=1), v.repeat_interleave(share, dim=1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=None if bias is None else bias.to(q.dtype))
        h = h + self.attn_out(mixed.transpose(1, 2).reshape(rows, length, width))
        x = self.ff_norm(h)
        written: Tensor = self.ff_out(F.silu(self.ff_proj(x)) * self.up_proj(x))
        return h + written


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The pairs (x_i, x_{i+size/2}) turned by the angle of their position."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


class LLaDAModelLM(PreTrainedModel):
    """Tokens [B,L], or their embeddings [B,L,D] → logits [B,L,V]."""

    config_class = LLaDAConfig
    base_model_prefix = "model"

    def __init__(self, config: LLaDAConfig):
        super().__init__(config)
        rows = config.embedding_size or config.vocab_size
        parts = {
            "wte": nn.Embedding(rows, config.d_model),
            "blocks": nn.ModuleList(Block(config) for _ in range(config.n_layers)),
            "ln_f": nn.RMSNorm(config.d_model, config.rms_norm_eps),
        }
        if not config.weight_tying:
            parts["ff_out"] = nn.Linear(config.d_model, rows, bias=False)
        if config.answer_positions:
            parts["wpe"] = nn.Embedding(config.max_sequence_length, config.d_model)
        self.model = nn.Module()
        self.model.transformer = nn.ModuleDict(parts)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.data.normal_(0.0, 0.02)

    def get_input_embeddings(self) -> Any:
        return self.model.transformer["wte"]

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        attention_mask: Tensor | None = None,
        attention_bias: Tensor | None = None,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        parts = self.model.transformer
        h = parts["wte"](input_ids) if inputs_embeds is None else inputs_embeds
        length, size = h.shape[1], self.config.d_model // self.config.n_heads
        if "wpe" in parts:
            h = h + parts["wpe"].weight[:length]
        frequency = 1.0 / self.config.rope_theta ** (torch.arange(0, size, 2, device=h.device).float() / size)
        angle = torch.outer(torch.arange(length, device=h.device).float(), frequency)
        if attention_mask is not None:
            hidden = (1.0 - attention_mask.float()) * torch.finfo(torch.float32).min
            attention_bias = hidden[:, None, None, :] if attention_bias is None else attention_bias
        for block in parts["blocks"]:
            h = block(h, angle.cos(), angle.sin(), attention_bias)
        h = parts["ln_f"](h)
        logits = F.linear(h, parts["wte"].weight) if self.config.weight_tying else parts["ff_out"](h)
        return CausalLMOutputWithPast(logits=logits)
