"""Examples that Hypothesis draws: the same on every run here, others with `pytest --hypothesis-profile search`.

Without an accelerator Triton's interpreter runs the kernels: said before anything imports Triton.
"""

import os

import torch
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile("same", derandomize=True, max_examples=60, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("same")
