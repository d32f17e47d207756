"""The hosts of the paper, each a folder that holds only what is its own: data, reward, decoding, recipe.

They are found by name; a host's own module is imported when it is asked for. A person's own host is found by
`package.module:attr`, `path.py:attr` or the entry point group `dprm.hosts`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dprm.data.packages import DataSets
from dprm.host import weights as committed
from dprm.host.finding import find, installed, scheme_of
from dprm.host.host import Host
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import Trainings

__all__ = ["ENTRIES", "Entry", "class_of", "data_of", "difficulty_in_words", "load", "task_of", "trainings_of"]


@dataclass(frozen=True)
class Entry:
    """What is known of a host without loading it.

    Attributes:
        module: where its TASK and its TRAININGS are; its `load`, where others have trained its model.
        weights: file of its small model; empty where others have trained it. command: what makes that file, or gets it.
        data: the module of its DATA, where it has data that is not generated.
        counted: what the number of a difficulty counts, such as clues.
    """

    name: str
    domain: str
    ordered: str
    module: str
    weights: str
    command: str
    data: str = ""
    counted: str = ""

    @property
    def present(self) -> bool:
        """Whether its weights are there, undamaged, or come with a package."""
        return self.state in ("here", "elsewhere")

    @property
    def state(self) -> str:
        """Of its weights: here, missing, or damaged; elsewhere, where others have trained its model."""
        if not self.weights:
            return "elsewhere"
        try:
            self.checked_weights()
        except committed.WeightsError:
            return "damaged" if committed.present(self.weights) else "missing"
        return "here"

    def checked_weights(self) -> Path:
        """The file of its weights; an error says how to get them."""
        return committed.checked(self.weights, self.command)


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry(
            "dmpo",
            "Countdown: reach a target from given numbers",
            "response positions",
            "dprm.hosts.dmpo.host",
            "dmpo.safetensors",
            "dprm train dmpo --law random --minutes 6 --device cuda --out weights/dmpo.safetensors",
            counted="numbers",
        ),
        Entry(
            "prism",
            "Countdown, answered by search with self-verification",
            "reveal positions in search",
            "dprm.hosts.dmpo.prism",
            "prism.safetensors",
            "dprm train prism --steps 400 --rows 256 --rate 0.0005 --limit 128 --compile"
            " --out weights/prism.safetensors",
        ),
        Entry(
            "puma",
            "Sudoku 9×9",
            "blank cells",
            "dprm.hosts.puma.host",
            "puma.safetensors",
            "dprm train puma --law random --steps 3000 --rows 256 --device cuda --out weights/puma.safetensors",
            counted="clues",
        ),
        Entry(
            "puma_words",
            "word problems with step-by-step answers",
            "answer positions",
            "dprm.hosts.puma_words.host",
            "puma_words.safetensors",
            "dprm train puma_words --law confidence --steps 3000 --rows 512 --device cuda"
            " --out weights/puma_words.safetensors",
            counted="reasoning steps",
        ),
        Entry(
            "omni",
            "pictures of captions, 16×16 visual codes",
            "visual-code positions",
            "dprm.hosts.omni.host",
            "omni.safetensors",
            "dprm train omni --law confidence --steps 1100 --rows 32 --rate 0.003 --limit 2 --compile"
            " --out weights/omni.safetensors",
        ),
        Entry(
            "antiberty",
            "antibody heavy chains",
            "residues",
            "dprm.hosts.antiberty.host",
            "",
            "dprm data antiberty --set weights",
            "dprm.hosts.antiberty.antibodies",
        ),
        Entry(
            "sdpo",
            "regulatory DNA for liver cells",
            "bases",
            "dprm.hosts.sdpo.host",
            "sdpo.safetensors",
            "dprm data sdpo && dprm train sdpo --law random --steps 2000 --rows 64 --rate 0.002 --limit 16 --compile"
            " --out weights/sdpo.safetensors",
            "dprm.hosts.sdpo.sites",
        ),
        Entry(
            "llada_v",
            "questions about pictures of scenes",
            "answer slots",
            "dprm.hosts.llada_v.host",
            "llada_v.safetensors",
            "dprm train llada_v --law random --steps 2500 --rows 256 --rate 2e-3 --compile"
            " --out weights/llada_v.safetensors",
        ),
        Entry(
            "easy_vqa",
            "questions about pictures of easy-vqa",
            "answer slots",
            "dprm.hosts.llada_v.easy_vqa",
            "easy_vqa.safetensors",
            "dprm data easy_vqa && dprm train easy_vqa --law random --steps 600 --rows 128 --rate 2e-3 --compile"
            " --out weights/easy_vqa.safetensors",
            data="dprm.hosts.llada_v.easy_vqa",
        ),
        Entry(
            "dplm",
            "protein domains: sequence and structure",
            "residues and structure tokens",
            "dprm.hosts.dplm.host",
            "dplm.safetensors",
            "dprm data dplm && dprm train dplm --law random --steps 12000 --rows 256 --device cuda"
            " --out weights/dplm.safetensors",
            "dprm.hosts.dplm.domains",
        ),
        Entry(
            "genmol",
            "molecules in bracket-SAFE",
            "positions of the fragment text",
            "dprm.hosts.genmol.host",
            "genmol.safetensors",
            "dprm data genmol && dprm train genmol --steps 6000 --rows 128 --rate 0.002 --limit 64 --compile"
            " --out weights/genmol.safetensors",
            data="dprm.hosts.genmol.data",
        ),
        Entry(
            "dcm",
            "single cells, binned counts",
            "genes",
            "dprm.hosts.dcm.host",
            "dcm.safetensors",
            "dprm data dcm && dprm train dcm --law random --steps 3000 --rows 64 --rate 2e-3 --limit 128"
            " --out weights/dcm.safetensors",
            data="dprm.hosts.dcm.data",
        ),
    )
}


def difficulty_in_words(host: str, variant: str) -> str:
    """Such as `22-25 clues`; the variant itself where it is a name."""
    counted = ENTRIES[host].counted if host in ENTRIES else ""
    return f"{variant} {counted}" if counted and variant[:1].isdigit() else variant


def load(
    name: str,
    device: torch.device | str = "cpu",
    compiled: bool = False,
    weights: Path | str | None = None,
    **settings: Any,
) -> Host:
    """A host with its model.

    Args:
        name: one of ours, or a person's own; see the module.
        compiled: compile the model at its first call, see `Denoiser.compile`.
        weights: a checkpoint of `dprm train` instead of the committed one.
        settings: of a host with a scheme, such as the prompts of `hf:PATH`.

    Raises:
        ValueError: unknown host, missing or damaged weights, nothing to compile; the message says what to do.
    """
    scheme = scheme_of(name)
    if settings and scheme is None:
        raise ValueError(f"host {name!r} takes no {', '.join(settings)}: only hf:PATH does")
    if name in ENTRIES and not ENTRIES[name].weights:
        if weights is not None:
            raise ValueError(f"weights is {str(weights)!r}: host {name!r} has a model that others have trained")
        host: Host = _of_module(name, "load", "way to load it")(device)
    elif name in ENTRIES:
        host = task_of(name).load(ENTRIES[name].checked_weights() if weights is None else Path(weights), device)
    elif ":" in name or name in installed():
        if weights is not None:
            raise ValueError(f"weights is {str(weights)!r}: host {name!r} brings its own model")
        host = find(name) if scheme is None else find(name, device=device, **settings)
    else:
        known = ", ".join([*ENTRIES, *installed()])
        raise ValueError(
            f"there is no host {name!r}: expected one of {known}, package.module:attr, path.py:attr or hf:PATH"
        )
    if compiled:
        model = host.model()
        if not isinstance(model, Denoiser):
            raise ValueError(f"host {name!r} has a model of its own that cannot be compiled: leave out --compile")
        model.compile()
    return host


def trainings_of(name: str) -> Trainings:
    """Which trainings of one of our hosts a study compares."""
    trainings: Trainings = _of_module(name, "TRAININGS", "trainings that a study compares")
    return trainings


def task_of(name: str, data: str | None = None) -> Task:
    """What one of our hosts adds to a training.

    Args:
        data: the name of prepared data (`dprm data`); None: the host's own.
    """
    if data is not None:
        made: Task = _of_module(name, "task", "prepared data to choose from")(data)
        return made
    task: Task = _of_module(name, "TASK", "a model to train")
    return task


def picture_of(name: str) -> Callable[[Sequence[str]], str] | None:
    """What draws answers of one of our hosts as SVG; None where nothing does, or its library is not installed."""
    if name not in ENTRIES:
        return None
    try:
        drawn: Callable[[Sequence[str]], str] = _of_module(name, "PICTURE", "picture")
    except (ValueError, ImportError):
        return None
    return drawn


def class_of(name: str) -> type[Host] | None:
    """The class of one of our hosts, without a model; None for other names, or where its library is not installed."""
    if name not in ENTRIES:
        return None
    try:
        module = importlib.import_module(ENTRIES[name].module)
    except ImportError:
        return None
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Host))
    return next((found for found in classes if found.__dict__.get("name") == name), None)


def data_of(name: str) -> DataSets:
    """The data of one of our hosts."""
    entry = ENTRIES.get(name)
    data: DataSets = _of_module(name, "DATA", "data to obtain", entry.data if entry else "")
    return data


def _of_module(name: str, attribute: str, what: str, module: str | None = None) -> Any:
    """An attribute of the module of one of our hosts."""
    if name not in ENTRIES:
        raise ValueError(f"there is no host {name!r}: expected one of {', '.join(ENTRIES)}")
    module = ENTRIES[name].module if module is None else module
    try:
        value = getattr(importlib.import_module(module), attribute, None) if module else None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("dprm"):
            raise
        raise ValueError(f"host {name} needs {error.name}: pip install 'dprm[{name}]'") from None
    if value is None:
        raise ValueError(f"host {name} has no {what}")
    return value
