"""Our small word-problem model as a checkpoint in LLaDA's format, with a tokenizer and prompts: to try the door with.

python -m dprm.contrib.hf.small FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.hf import small_llada
from dprm.hosts import ENTRIES
from dprm.hosts.puma_words import words
from dprm.hosts.puma_words.problems import generate
from dprm.hosts.puma_words.verifier import verify
from dprm.train.denoiser import load_weights
from dprm.train.transformer import Transformer

# The tokens of the vocabulary that are no words, as text.
_BLANK, _EOT, _MASK = "_", "<|endoftext|>", "<|mdm_mask|>"


def save_words(folder: Path | str) -> Path:
    """Write the committed weights of `puma_words` as a checkpoint; returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    transformer, _ = load_weights(ENTRIES["puma_words"].checked_weights())
    shape = transformer.config
    config = small_llada.LLaDAConfig(
        vocab_size=shape.vocabulary,
        d_model=shape.width,
        n_heads=shape.heads,
        n_layers=shape.depth,
        mlp_hidden_size=shape.hidden,
        rms_norm_eps=float(torch.finfo(torch.float32).eps),
        max_sequence_length=words.LENGTH,
        mask_token_id=words.MASK,
        eos_token_id=words.EOT,
        pad_token_id=words.BLANK,
        head_norm=True,
        answer_positions=True,
        architectures=["LLaDAModelLM"],
        auto_map={name: f"modeling_llada.{kind}" for name, kind in _CODE.items()},
    )
    model = small_llada.LLaDAModelLM(config)
    model.load_state_dict(renamed(transformer))
    model.save_pretrained(folder)
    # transformers writes down the code of a class it knows to be registered; this one is copied as it is.
    shutil.copy(Path(small_llada.__file__), folder / "modeling_llada.py")
    (folder / "config.json").write_text(json.dumps({**config.to_dict(), "auto_map": config.auto_map}, indent=2))
    tokenizer().save_pretrained(folder)
    return folder


_CODE = {"AutoConfig": "LLaDAConfig", "AutoModel": "LLaDAModelLM", "AutoModelForCausalLM": "LLaDAModelLM"}


def renamed(transformer: Transformer) -> dict[str, Tensor]:
    """The weights of the shared transformer under LLaDA's names."""
    own = transformer.state_dict()
    home = "model.transformer"
    listed = {
        f"{home}.wte.weight": own["embedding.weight"],
        f"{home}.ln_f.weight": own["norm.weight"],
        f"{home}.ff_out.weight": own["head.weight"],
        f"{home}.wpe.weight": own["side_embeddings.0.weight"][transformer.sides[0]],
    }
    for layer in range(transformer.config.depth):
        there, here = f"{home}.blocks.{layer}", f"layers.{layer}"
        q, k, v = own[f"{here}.attention.qkv.weight"].chunk(3)
        gate, up = own[f"{here}.mlp.up.weight"].chunk(2)
        listed |= {f"{there}.{name}.weight": part for name, part in (("q_proj", q), ("k_proj", k), ("v_proj", v))}
        listed |= {f"{there}.ff_proj.weight": gate, f"{there}.up_proj.weight": up}
        listed |= {f"{there}.{name}.weight": own[f"{here}.{part}.weight"] for name, part in _PARTS.items()}
    return listed


_PARTS = {
    "attn_norm": "attention_norm",
    "ff_norm": "mlp_norm",
    "attn_out": "attention.out",
    "ff_out": "mlp.down",
    "q_norm": "attention.query_norm",
    "k_norm": "attention.key_norm",
}


def tokenizer() -> Any:
    """A fast tokenizer of the closed vocabulary: words in lower case, numbers digit by digit."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    listed = [*words.CHARACTERS, *map(str.lower, words.WORDS), _BLANK, _EOT, _MASK]
    made = Tokenizer(models.WordLevel({token: index for index, token in enumerate(listed)}, unk_token=_BLANK))
    made.normalizer = normalizers.Lowercase()
    pieces = Regex(r"[a-z]+|[0-9]|[^\sa-z0-9]")
    made.pre_tokenizer = pre_tokenizers.Split(pieces, behavior="removed", invert=True)
    made.decoder = decoders.Fuse()
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=made, eos_token=_EOT, mask_token=_MASK, pad_token=_BLANK)


def prompts(split: str, count: int, steps: int = 4) -> list[dict[str, Any]]:
    """The word problems of a split of `puma_words`, as lines of a prompt file; blanks fill the text up to 64 tokens."""
    problems = generate(split, count, steps, distinct=True)
    lines = []
    for row, (numbers, answer) in zip(problems.tokens[:, : words.PROMPT].tolist(), problems.listed()):
        text = f"{words.write_prompt(row)} {_BLANK * row.count(words.BLANK)}".strip()
        lines.append({"prompt": text, "numbers": list(numbers), "answer": answer, "split": split})
    return lines


def reward(text: str, line: Mapping[str, Any]) -> float:
    """The verifier of `puma_words`: 1 for a right final number behind well-formed steps, 0.1 for a wrong one."""
    return verify(line["numbers"], line["answer"], text).reward


def write(folder: Path, count: int = 400) -> None:
    """The checkpoint, and `words.jsonl` in it: so many problems for fit, half as many for select and for test."""
    save_words(folder)
    counts = {"fit": count, "select": count // 2, "test": count // 2}
    lines = [line for split, number in counts.items() for line in prompts(split, number)]
    (folder / "words.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
