"""Nothing that is added to a model waits for an accelerator: no value of a tensor is looked at in a step."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dprm.contrib.hf import host
from dprm.contrib.hf.denoiser import OwnSoftmax
from dprm.decode import begin
from dprm.decode.reader import Logits
from tests.contrib.hf import checkpoints

# What makes Python wait for a value, or for a number of values.
LOOKS = ("_local_scalar_dense", "nonzero", "equal", "masked_select", "unique")


class Looks(TorchDispatchMode):
    """Counts looks at values."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.split(".")[0]
        by_flags = name == "index" and any(part is not None and part.dtype == torch.bool for part in args[1])
        self.count += by_flags or any(name.startswith(look) for look in LOOKS)
        return function(*args, **(kwargs or {}))


def looks(function, *arguments):
    with Looks() as mode:
        function(*arguments)
    return mode.count


def test_the_counter_counts():
    assert looks(lambda: bool(torch.ones(1).all())) == 1
    assert looks(lambda: torch.ones(3)[torch.ones(3).bool()]) > 0
    assert looks(lambda: torch.ones(3).sum() + 1) == 0


@pytest.mark.parametrize("family", ["llada", "dream", "llada2", "llada_v"])
def test_a_step_of_a_family_looks_at_nothing(family, tmp_path):
    path = str(getattr(checkpoints, family)(tmp_path / family))
    made = host(path, ["the cat sat on the mat", "a dog"], length=8, block=4, steps=8, trust_remote_code=True)
    asked, decoding = made.asked, made.decoding
    assert asked.context is not None
    assert looks(made.model(), asked.canvas, asked.context) == 0
    output = made.model()(asked.canvas, asked.context)
    reading = decoding.reader.read(output, None)
    state = begin(asked.canvas, decoding, 0, asked.context)
    eligible = asked.canvas == decoding.mask_id
    assert looks(decoding.count, reading, eligible, state.window_step) == 0
    if decoding.window is not None:
        assert looks(decoding.window, state, eligible) == 0
    plain = Logits(decoding.reader.forbid)
    assert isinstance(decoding.reader, OwnSoftmax)
    assert looks(decoding.reader.read, output, None) == looks(plain.read, output, None)


@pytest.mark.parametrize("family", ["bert", "esm"])
def test_a_masked_language_model_looks_no_more_than_it_does_by_itself(family, tmp_path):
    prompts = {"bert": ["a [MASK] ran", "the [MASK] sat on the mat"], "esm": ["AG<mask>", "MKT<mask>LLVA"]}
    made = host(str(getattr(checkpoints, family)(tmp_path / family)), prompts[family])
    asked, model = made.asked, made.checkpoint.denoiser.model
    mask = asked.context["attention"].long()
    alone = looks(lambda: model(input_ids=asked.canvas, attention_mask=mask))
    assert looks(made.model(), asked.canvas, asked.context) == alone
