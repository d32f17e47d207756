"""Loading a checkpoint: which family it is of, its model, its tokenizer, its mask; what does not fit is said here.

Code that comes with a checkpoint is run only where the caller says so.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dprm.contrib.hf.denoiser import Denoiser
from dprm.contrib.hf.older import OwnCode

# One module a family; the last one takes whatever has a masked-language head.
FAMILIES = {
    "llada": "dprm.contrib.hf.llada:LLaDA",
    "llada_v": "dprm.contrib.hf.llada_v:LLaDAV",
    "llada2": "dprm.contrib.hf.llada2:LLaDA2",
    "dream": "dprm.contrib.hf.dream:Dream",
    "masked_lm": "dprm.contrib.hf.masked_lm:MaskedLM",
}


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint.

    Attributes:
        path: as it was asked for. mask_id, pad_id: tokens. ends: tokens that end an answer.
    """

    path: str
    denoiser: Denoiser
    tokenizer: Any
    mask_id: int
    pad_id: int
    ends: tuple[int, ...]

    @property
    def forbid(self) -> tuple[int, ...]:
        """Tokens that are never revealed."""
        special = self.tokenizer.all_special_ids if self.denoiser.words_only else ()
        return tuple(dict.fromkeys((self.mask_id, *special)))

    @property
    def name(self) -> str:
        """The last part of its path."""
        return Path(self.path).name or self.path


def load(
    path: str,
    *,
    family: str | None = None,
    mask_id: int | None = None,
    trust_remote_code: bool = False,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str = "auto",
) -> Checkpoint:
    """A checkpoint of a folder, or of the local cache of the hub.

    Args:
        family: one of `FAMILIES`; None: as the configuration says.
        mask_id: None: that of the configuration, of the tokenizer, or of the family's public checkpoints.
        trust_remote_code: run the code that comes with the checkpoint.
        dtype: of the weights; "auto": as they are stored.

    Raises:
        ValueError: no such model, code that is not trusted, an unknown family, a mask or vocabulary that does not fit.
    """
    try:
        import transformers
    except ImportError:
        raise ValueError('transformers is not installed: `pip install "dprm[hf]"`') from None
    # Without an answer transformers would ask on the terminal.
    trusted = {"trust_remote_code": bool(trust_remote_code)}
    config = _loaded(path, transformers.AutoConfig, trusted)
    kind = family_of(config, family)
    own = own_model(kind, config) if trust_remote_code else None
    if own is None:
        model = _loaded(path, getattr(transformers, kind.loader), {**trusted, "dtype": dtype})
    else:
        model = _loaded(path, OwnCode(own), {"config": config, "dtype": dtype})
    tokenizer = _loaded(path, transformers.AutoTokenizer, trusted)
    denoiser = kind(model.to(device))
    return checked(path, denoiser, tokenizer, mask_id)


def checked(path: str, denoiser: Denoiser, tokenizer: Any, mask_id: int | None = None) -> Checkpoint:
    """A model and its tokenizer, after mask and vocabulary were compared."""
    vocabulary = denoiser.vocabulary
    if len(tokenizer) > vocabulary:
        raise ValueError(
            f"{path}: the tokenizer has {len(tokenizer)} tokens and the model {vocabulary}: they do not belong together"
        )
    config = denoiser.model.config
    told = {
        "mask_id": mask_id,
        "the configuration": getattr(config, "mask_token_id", None),
        "the tokenizer": getattr(tokenizer, "mask_token_id", None),
    }
    known = {who: token for who, token in told.items() if token is not None}
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{who} says {token}" for who, token in known.items())
        raise ValueError(f"{path}: {listed}: expected one mask")
    mask = next(iter(known.values()), denoiser.mask_id)
    if mask is None:
        raise ValueError(f"{path}: neither configuration nor tokenizer has a mask token: give mask_id")
    if not 0 <= mask < vocabulary:
        raise ValueError(f"{path}: mask_id is {mask}: the model has a vocabulary of {vocabulary}")
    ends = [getattr(tokenizer, "eos_token_id", None), getattr(config, "eos_token_id", None)]
    listed_tokens = tokenizer.get_vocab()
    ends += [listed_tokens.get(name) for name in denoiser.ends]
    ends = [token for part in ends for token in (part if isinstance(part, list | tuple) else [part])]
    chosen = tuple(dict.fromkeys(token for token in ends if isinstance(token, int) and token != mask))
    pad = next((p for p in (tokenizer.pad_token_id, *chosen) if p is not None and p != mask), 0)
    return Checkpoint(path, denoiser, tokenizer, mask, pad, chosen)


def family_of(config: Any, name: str | None = None) -> type[Denoiser]:
    """The family of a configuration, or the one that is named."""
    if name is not None:
        if name not in FAMILIES:
            raise ValueError(f"family is {name!r}: expected one of {', '.join(FAMILIES)}")
        return _named(name)
    for each in map(_named, FAMILIES):
        if config.model_type in each.model_types:
            return each
    from transformers import MODEL_FOR_MASKED_LM_MAPPING

    if type(config) in MODEL_FOR_MASKED_LM_MAPPING or "AutoModelForMaskedLM" in (
        getattr(config, "auto_map", None) or {}
    ):
        return _named("masked_lm")
    known = [kind for each in map(_named, FAMILIES) for kind in each.model_types]
    raise ValueError(
        f"the model is of type {config.model_type!r}: expected {', '.join(known)} or one with a masked-language head; "
        f"name a family if it is called like one of {', '.join(FAMILIES)}"
    )


def _named(name: str) -> type[Denoiser]:
    module, _, attribute = FAMILIES[name].partition(":")
    kind: type[Denoiser] = getattr(importlib.import_module(module), attribute)
    return kind


def own_model(kind: type[Denoiser], config: Any) -> str | None:
    """The class of the checkpoint's own code, such as `modeling_llada.LLaDAModelLM`; None: transformers has it."""
    listed = getattr(config, "auto_map", None) or {}
    # Public checkpoints of one family name the same class differently; a masked-language head is asked for by its name.
    names = [kind.loader] if kind.words_only else [kind.loader, "AutoModelForCausalLM", "AutoModel"]
    return next((listed[name] for name in names if name in listed), None)


def _loaded(path: str, loader: Any, settings: dict[str, Any]) -> Any:
    """What `from_pretrained` gives, or one clear line."""
    try:
        return loader.from_pretrained(path, **settings)
    except (OSError, ValueError, KeyError, ImportError, AttributeError, TypeError) as error:
        said = " ".join(str(error).split())
        if "trust_remote_code" in said and not settings.get("trust_remote_code", True):
            raise ValueError(
                f"{path} comes with code of its own: read it, and say --trust-remote-code (trust_remote_code=True) "
                "to run it"
            ) from None
        if not os.path.isdir(path) and isinstance(error, OSError):
            raise ValueError(
                f"there is no model {path!r}: expected a folder with config.json, weights and tokenizer, "
                "or a model of the local Hugging Face cache"
            ) from None
        raise ValueError(f"{path}: {loader.__name__} gave {type(error).__name__}: {said[:300]}") from error
