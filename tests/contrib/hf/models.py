"""Models of a layer that are called as Dream, LLaDA-2.x and LLaDA-V are; this file is copied beside their weights."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast


class TinyConfig(PretrainedConfig):
    model_type = "Dream"

    def __init__(self, vocab_size=32, hidden_size=32, max_position_embeddings=128, **others):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.num_hidden_layers, self.num_attention_heads = 1, 1
        super().__init__(**others)


class LLaDA2Config(TinyConfig):
    model_type = "llada2_moe"

    def __init__(self, **settings):
        super().__init__(**settings)


class LLaDAVConfig(TinyConfig):
    model_type = "llava_llada"

    def __init__(self, **settings):
        super().__init__(**settings)


class Body(nn.Module):
    """Two rounds of attention of one head with rotary positions, and a linear layer."""

    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)

    def forward(self, input_ids=None, inputs_embeds=None, attention_mask=None, position_ids=None, cache=None):
        h = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        rows, length, width = h.shape
        if position_ids is None:
            position_ids = torch.arange(length, device=h.device).expand(rows, length)
        if attention_mask is not None and attention_mask.dim() == 2:
            attention_mask = attention_mask.bool()[:, None, None, :]
        frequency = 100.0 ** (-torch.arange(0, width, 2, device=h.device) / width)
        angle = (position_ids.unsqueeze(-1) * frequency).unsqueeze(1)
        for layer in range(2):
            q, k, v = self.qkv(F.layer_norm(h, (width,))).unsqueeze(1).chunk(3, dim=-1)
            q, k = turned(q, angle), turned(k, angle)
            if cache is not None:
                k, v = cache.update(k, v, layer, {})
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask).squeeze(1)
            h = h + torch.tanh(self.mix(mixed))
        return (F.layer_norm(h, (width,)),)


def turned(x, angle):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], dim=-1)


class Tiny(PreTrainedModel, GenerationMixin):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = Body(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        if hasattr(module, "weight"):
            module.weight.data.normal_(0.0, 0.02)

    def get_input_embeddings(self):
        return self.model.embed_tokens


class DreamModel(Tiny):
    """Logits at i speak of position i + 1; attention is "full", or bool of four dimensions."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, use_cache=None, return_dict=None):
        if isinstance(attention_mask, str):
            assert attention_mask == "full"
            attention_mask = None
        hidden = self.model(input_ids, attention_mask=attention_mask, position_ids=position_ids)[0]
        return CausalLMOutputWithPast(logits=self.lm_head(hidden))


class LLaDA2MoeModelLM(Tiny):
    """Asks for an additive mask of four dimensions."""

    config_class = LLaDA2Config

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        use_cache=None,
        return_dict=None,
    ):
        assert attention_mask.dim() == 4
        mask, cache = attention_mask.to(self.dtype), past_key_values if use_cache else None
        hidden = self.model(input_ids, attention_mask=mask, position_ids=position_ids, cache=cache)[0]
        return CausalLMOutputWithPast(logits=self.lm_head(hidden))


class LlavaLLaDAModelLM(Tiny):
    """A body that is called with embeddings, and a head."""

    config_class = LLaDAVConfig

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None):
        hidden = self.model(input_ids, inputs_embeds=inputs_embeds, attention_mask=attention_mask)[0]
        return CausalLMOutputWithPast(logits=self.lm_head(hidden))
