"""Hugging Face checkpoints of masked diffusion models: denoisers, hosts, generation, rewards."""

from dprm.contrib.hf.checkpoint import Checkpoint, load
from dprm.contrib.hf.denoiser import Denoiser
from dprm.contrib.hf.generate import Generated, custom_generate, generate
from dprm.contrib.hf.host import TextHost, host, opened

__all__ = [
    "Checkpoint",
    "Denoiser",
    "Generated",
    "TextHost",
    "custom_generate",
    "generate",
    "host",
    "load",
    "opened",
]
