"""A checkpoint with prompts and a reward as a host: for fits, comparisons, reports and whatever else takes one.

host = dprm.contrib.hf.host("GSAI-ML/LLaDA-8B-Instruct", "gsm8k.jsonl", "number", trust_remote_code=True)
learned = dprm.learn(host, calls=10_000)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.hf.checkpoint import Checkpoint, load
from dprm.contrib.hf.denoiser import ATTENTION, Denoiser, Length
from dprm.contrib.hf.prompts import Asked, Form, read_lines
from dprm.contrib.hf.rewards import Reward, resolve_reward
from dprm.data.lines import nothing_left
from dprm.decode.decoding import Decoding
from dprm.decode.guards import HoldBack
from dprm.host.host import Host, Problems
from dprm.host.identity import model_word
from dprm.host.metrics import Metric
from dprm.host.variants import divided

Prompts = Path | str | Sequence[str | Mapping[str, Any]]


class TextHost(Host):
    """What `host` gives."""

    domain = "answers to prompts"
    ordered = "answer positions"
    metrics = (Metric("reward"),)

    def __init__(self, checkpoint: Checkpoint, form: Form, reward: Reward | None, name: str):
        """`asked` are all prompts, in their order."""
        self.checkpoint, self.form, self.name = checkpoint, form, name
        self._reward = reward
        self.asked: Problems
        self._stock: dict[str, Problems] = {}
        self.device = next(checkpoint.denoiser.parameters()).device

    def model(self) -> Denoiser:
        return self.checkpoint.denoiser

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """As many as there are, in the order of the file."""
        if split not in self._stock:
            listed = ", ".join(self._stock) or "no split"
            raise ValueError(f"split is {split!r}: the prompts of host {self.name} are of {listed}")
        return self._stock[split][:count]

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        if self._reward is None:
            raise ValueError(f"host {self.name} has no reward: name one, such as exact, number or tests")
        scores = []
        for asked, row in zip(problems.facts, tokens.tolist(), strict=True):
            text = self.text(row, asked)
            try:
                scores.append(float(self._reward(text, asked.entry)))
            except Exception as error:
                where = f"line {asked.line} (prompt {asked.text!r}, answer {text[:80]!r})"
                raise ValueError(f"reward failed at {where}: {type(error).__name__}: {error}") from error
            if not 0.0 <= scores[-1] <= 1.0:
                raise ValueError(f"reward gave {scores[-1]} at line {asked.line}: expected a number in [0, 1]")
        return torch.tensor(scores)

    def text(self, row: Sequence[int], asked: Asked) -> str:
        """The answer on a canvas [L]: to the first end of text; of a prompt with masks of its own, all of it."""
        answer = list(row[asked.first : asked.last])
        if self.form.length:
            ends = [answer.index(end) for end in self.checkpoint.ends if end in answer]
            answer = answer[: min(ends, default=len(answer))]
        text: str = self.checkpoint.tokenizer.decode(answer, skip_special_tokens=True)
        return text

    def show(self, token: int) -> str:
        marks = {self.checkpoint.pad_id: "", **dict.fromkeys(self.checkpoint.ends, "□"), self.checkpoint.mask_id: "·"}
        if token in marks:
            return marks[token]
        text: str = self.checkpoint.tokenizer.decode([token])
        return text

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """Lines as `prompts` describes them."""
        posed, left_out = self.form.problems(read_lines(path))
        if not len(posed):
            raise nothing_left(path, left_out)
        return self._here(posed), left_out

    def _here(self, posed: Problems) -> Problems:
        """Problems on the device of the model."""
        context = None
        if isinstance(posed.context, Mapping):
            context = {name: column.to(self.device) for name, column in posed.context.items()}
        told = {name: getattr(posed, name).to(self.device) for name in ("canvas", "key", "group")}
        return replace(posed, **told, context=context)

    def keep(self, lines: Sequence[tuple[int, Mapping[str, Any]]], where: str) -> None:
        """Pose these prompts, divided by their own `split`, or else half fit and a quarter each select and test."""
        posed, left_out = self.form.problems(lines)
        if left_out:
            more = f"; and {len(left_out) - 3} more" if len(left_out) > 3 else ""
            raise ValueError(f"{where}: {'; '.join(left_out[:3])}{more}")
        if not len(posed):
            raise ValueError(f"{where} has no prompt")
        # One width for all: a row is then the same in whatever batch it stands.
        self.form = replace(self.form, width=posed.canvas.shape[1])
        posed = self.asked = self._here(posed)
        told = [asked.entry.get("split") for asked in posed.facts]
        if any(told) and not all(told):
            raise ValueError(f"{where}: line {posed.facts[told.index(None)].line} has no split, and others have")
        if all(told):
            rows = {split: [row for row, each in enumerate(told) if each == split] for split in dict.fromkeys(told)}
            self._stock = {str(split): posed[torch.tensor(index)] for split, index in rows.items()}
        else:
            self._stock = {split: posed[index] for split, index in divided(posed).items() if len(index)}


def host(
    path: str,
    prompts: Prompts,
    reward: str | Reward | None = None,
    *,
    length: int | None = None,
    block: int | None = None,
    steps: int | None = None,
    name: str | None = None,
    family: str | None = None,
    mask_id: int | None = None,
    trust_remote_code: bool = False,
    hold_end: bool = False,
    head_where_asked: bool = False,
    reuse_blocks: bool = False,
    temperature: float = 0.0,
    top_p: float = 1.0,
    top_k: int = 0,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str = "auto",
    checkpoint: Checkpoint | None = None,
    **decoding: Any,
) -> TextHost:
    """A checkpoint at work on prompts; with no policy it decodes as its family's own generation does.

    Args:
        path: a folder of `save_pretrained`, or a name in the local cache of the hub.
        prompts: a JSONL file, or its lines as objects or texts; see `prompts`.
        reward: `exact`, `number`, `tests`, `module:function`, `path.py:function`, or a function of (text, line).
        length: masked positions behind a prompt; 0: prompts have their own. block, steps: of the family's generation.
        name: of the host, which a policy remembers; None: the last part of the path.
        hold_end: reveal the end of the text when nothing else is left to reveal in its block.
        head_where_asked: compute the output head where something may be revealed only; saves most of its work and its
            memory, and waits for an accelerator once a step.
        reuse_blocks: keep keys and values of blocks that are done, in models where that is exact (LLaDA-2.x); waits
            for an accelerator once a step.
        family, mask_id, trust_remote_code, dtype: see `checkpoint.load`. checkpoint: one that is loaded already.
        decoding: other fields of `Decoding`, such as count, states and state_of.
    """
    loaded = checkpoint or load(
        path, family=family, mask_id=mask_id, trust_remote_code=trust_remote_code, device=device, dtype=dtype
    )
    denoiser = loaded.denoiser
    asked = denoiser.length_of(Length(length, block, steps))
    denoiser.settle(asked)
    made = TextHost(
        loaded,
        Form.of(denoiser, loaded.tokenizer, asked.length or 0, loaded.mask_id, loaded.pad_id),
        None if reward is None else resolve_reward(reward),
        name or loaded.name,
    )
    own = denoiser.decoding(asked, loaded.forbid, top_p, top_k, loaded.ends)
    if hold_end:
        own["guard"] = HoldBack(loaded.ends)
    made.decoding = Decoding(mask_id=loaded.mask_id, temperature=temperature, **{**own, **decoding})
    if isinstance(prompts, Path | str):
        made.keep(read_lines(Path(prompts)), str(prompts))
    else:
        listed = [{"prompt": entry} if isinstance(entry, str) else entry for entry in prompts]
        made.keep(list(enumerate(listed, 1)), "prompts")
    # A checkpoint that was opened before has been looked at as it is.
    if denoiser.plain:
        _check_padding(made)
    made.weights = model_word(made)
    if head_where_asked and denoiser.own_head is None:
        denoiser.leave_head()
    if reuse_blocks:
        denoiser.keep_blocks(loaded.mask_id)
    return made


@torch.no_grad()
def _check_padding(made: TextHost) -> None:
    """Raise where a model does not leave padding out: its answers would depend on the longest prompt."""
    posed = made.asked
    if posed.context is None:
        return
    attention = posed.context[ATTENTION]  # type: ignore[call-overload, index]
    row = int(attention.sum(1).argmin())
    inside = attention[row]
    padded = made.model()(posed.canvas[row : row + 1], {ATTENTION: attention[row : row + 1]})[0, inside]
    alone = made.model()(posed.canvas[row : row + 1, inside])[0]
    far = float((padded.float().softmax(-1) - alone.float().softmax(-1)).abs().max())
    if not far < 0.05:
        raise ValueError(
            f"{made.name}: padding changes the probabilities of line {posed.facts[row].line} by {far:.2g}: this copy "
            "of the model does not leave padding out, or its positions are absolute; give prompts of one length"
        )


def opened(path: str, *, prompts: Path | str | None = None, reward: str | None = None, **settings: Any) -> TextHost:
    """What `hf:PATH` names on the command line."""
    if prompts is None:
        raise ValueError(f"hf:{path} needs prompts: give --prompts FILE.jsonl")
    if reward is None:
        raise ValueError(f"hf:{path} needs a reward: give --reward exact, number, tests, or module:function")
    return host(path, prompts, reward, **settings)
