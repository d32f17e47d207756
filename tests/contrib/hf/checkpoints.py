"""Tiny random checkpoints in each family's format, saved with a tokenizer and loaded through the door of a real one."""

import json
import shutil
from pathlib import Path

import torch

from dprm.contrib.hf import small_llada
from tests.contrib.hf import models

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "red", "blue", "one", "two", "three", "four", "is", "was"]


def tokenizer(mask="<|mdm_mask|>", **special):
    """A fast tokenizer of a few words; `special` are other special tokens by their role."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    named = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "<|endoftext|>", **special}
    if mask is not None:
        named["mask_token"] = mask
    listed = [*dict.fromkeys(named.values()), "<|eot_id|>", *WORDS]
    made = Tokenizer(models.WordLevel({token: index for index, token in enumerate(listed)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, **named)


def randomised(model, scale=0.3, seed=0):
    """The model with weights that make it sure of something."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
    return model.eval()


def with_code(folder: Path, code: Path, kinds: dict[str, str]) -> None:
    """The code of a model beside its weights, and the classes that the configuration then names."""
    shutil.copy(code, folder / "modeling_own.py")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {auto: f"modeling_own.{kind}" for auto, kind in kinds.items()}
    (folder / "config.json").write_text(json.dumps(config))


def llada(folder: Path, **changes) -> Path:
    """A checkpoint in LLaDA's format."""
    words = tokenizer()
    shape = {"vocab_size": len(words), "embedding_size": len(words) + 8, "max_sequence_length": 64}
    config = small_llada.LLaDAConfig(**{**shape, "mask_token_id": words.mask_token_id, "n_kv_heads": 1, **changes})
    randomised(small_llada.LLaDAModelLM(config)).save_pretrained(folder)
    kinds = {"AutoConfig": "LLaDAConfig", "AutoModel": "LLaDAModelLM", "AutoModelForCausalLM": "LLaDAModelLM"}
    with_code(folder, Path(small_llada.__file__), kinds)
    words.save_pretrained(folder)
    return folder


def bert(folder: Path, mask="[MASK]") -> Path:
    """BERT with a tokenizer that puts [CLS] and [SEP] around a text."""
    from tokenizers import processors
    from transformers import BertConfig, BertForMaskedLM

    words = tokenizer(mask, cls_token="[CLS]", sep_token="[SEP]")
    ends = [("[CLS]", words.cls_token_id), ("[SEP]", words.sep_token_id)]
    words.backend_tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=40, pad_token_id=words.pad_token_id, **size)
    randomised(BertForMaskedLM(config)).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def esm(folder: Path) -> Path:
    """ESM-2 with its own tokenizer."""
    from transformers import EsmConfig, EsmForMaskedLM, EsmTokenizer

    letters = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-", "<null_1>", "<mask>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(letters))
    words = EsmTokenizer(str(folder / "vocab.txt"))
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = EsmConfig(
        vocab_size=len(letters),
        mask_token_id=letters.index("<mask>"),
        pad_token_id=1,
        max_position_embeddings=64,
        position_embedding_type="rotary",
        token_dropout=True,
        **size,
    )
    randomised(EsmForMaskedLM(config)).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def tiny(folder: Path, config: str, kind: str, auto: str) -> Path:
    """A checkpoint of one of the models of `models.py`."""
    words = tokenizer()
    made = getattr(models, config)(
        vocab_size=len(words) + 3, mask_token_id=words.mask_token_id, eos_token_id=words.eos_token_id
    )
    randomised(getattr(models, kind)(made), 0.5).save_pretrained(folder)
    with_code(folder, Path(models.__file__), {"AutoConfig": config, auto: kind})
    words.save_pretrained(folder)
    return folder


def dream(folder: Path) -> Path:
    return tiny(folder, "TinyConfig", "DreamModel", "AutoModel")


def llada2(folder: Path) -> Path:
    return tiny(folder, "LLaDA2Config", "LLaDA2MoeModelLM", "AutoModelForCausalLM")


def llada_v(folder: Path) -> Path:
    return tiny(folder, "LLaDAVConfig", "LlavaLLaDAModelLM", "AutoModelForCausalLM")
