"""Prompts: lines of text become canvases with masks.

A line is a JSON object with one of
    {"prompt": "Two and two is"}                        text, tokenized as the tokenizer has it
    {"messages": [{"role": "user", "content": …}]}      a conversation, through the tokenizer's chat template
    {"tokens": [12, 4, 77]}                             tokens
and whatever else the reward reads, such as "answer". "split" (fit, select or test) says where a line belongs, "group"
which lines belong together. Shapes: N prompts, L positions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dprm.contrib.hf.denoiser import ATTENTION, Denoiser
from dprm.data.draws import row_hash
from dprm.host.host import Problems
from dprm.host.identity import word
from dprm.order.files import read_whole

_KINDS = ("prompt", "messages", "tokens")
_SPLITS = ("fit", "select", "test")


@dataclass(frozen=True)
class Asked:
    """What is known of one prompt.

    Attributes:
        line: its number in the file, from 1. text: for messages. entry: the line, for the reward.
        first, last: where its answer stands on the canvas.
    """

    line: int
    text: str
    entry: Mapping[str, Any]
    first: int
    last: int


@dataclass(frozen=True)
class Form:
    """How prompts become canvases.

    Attributes:
        length: positions of an answer behind its prompt; 0: a prompt has its own masks.
        masks: (tokens of a prompt, length) → masks behind it. left: padding stands on the left.
        mask_id, pad_id: tokens.
        vocabulary: V. longest: positions that the model was made for. width: positions of every canvas; None: of the
            longest one.
    """

    tokenizer: Any
    length: int
    masks: Callable[[int, int], int]
    left: bool
    mask_id: int
    pad_id: int
    vocabulary: int
    longest: int | None
    width: int | None = None

    @classmethod
    def of(cls, denoiser: Denoiser, tokenizer: Any, length: int, mask_id: int, pad_id: int) -> Form:
        """That of a model."""
        return cls(
            tokenizer, length, denoiser.masks, denoiser.left, mask_id, pad_id, denoiser.vocabulary, denoiser.longest
        )

    def tokens(self, entry: Mapping[str, Any]) -> tuple[list[int], int]:
        """The canvas of a prompt, without padding, and where its answer begins."""
        kind = next((kind for kind in _KINDS if kind in entry), None)
        if kind is None:
            raise ValueError(f"has {', '.join(map(repr, entry)) or 'nothing'}: expected one of {', '.join(_KINDS)}")
        if kind == "tokens":
            listed = entry["tokens"]
            if not isinstance(listed, list) or any(type(token) is not int or token < 0 for token in listed):
                raise ValueError(f"tokens is {str(listed)[:60]}: expected a list of whole numbers from 0")
            asked = list(listed)
        elif kind == "messages":
            if getattr(self.tokenizer, "chat_template", None) is None:
                raise ValueError("has messages, and the tokenizer has no chat template: give prompt instead")
            text = self.tokenizer.apply_chat_template(entry["messages"], add_generation_prompt=True, tokenize=False)
            asked = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        else:
            if not isinstance(entry["prompt"], str):
                raise ValueError(f"prompt is {type(entry['prompt']).__name__}: expected text")
            asked = list(self.tokenizer(entry["prompt"])["input_ids"])
        if not self.length:
            self._check(asked)
            return asked, 0
        closing = self._closing(asked) if kind == "prompt" else []
        asked = asked[: len(asked) - len(closing)]
        tokens = [*asked, *[self.mask_id] * self.masks(len(asked), self.length), *closing]
        self._check(tokens)
        return tokens, len(asked)

    def _closing(self, tokens: list[int]) -> list[int]:
        """The closing token that a tokenizer of sentences adds: it stays last, the answer belongs to the sentence."""
        closing = getattr(self.tokenizer, "sep_token_id", None) or getattr(self.tokenizer, "eos_token_id", None)
        return tokens[-1:] if not self.left and tokens and tokens[-1] == closing else []

    def _check(self, tokens: list[int]) -> None:
        if self.mask_id not in tokens:
            raise ValueError(f"holds no mask {self.mask_id}: write the mask into the prompt, or give a length")
        if max(tokens) >= self.vocabulary:
            raise ValueError(f"holds token {max(tokens)}: the model has a vocabulary of {self.vocabulary}")
        most = self.width or self.longest
        if most is not None and len(tokens) > most:
            asked = len(tokens) - tokens.count(self.mask_id)
            raise ValueError(
                f"has {asked} tokens, {len(tokens)} with the answer's {self.length}: longer than the {most} of the "
                "model"
            )

    def problems(self, lines: Sequence[tuple[int, Mapping[str, Any]]]) -> tuple[Problems, list[str]]:
        """Problems of numbered lines, and one line for each that does not fit and is left out."""
        rows, asked, left_out = list[tuple[list[int], int]](), list[tuple[int, Mapping[str, Any]]](), list[str]()
        first: dict[str, int] = {}
        for number, entry in lines:
            identity = word({name: part for name, part in entry.items() if name not in ("split", "group")})
            if identity in first:
                left_out.append(f"line {number}: the prompt of line {first[identity]} again")
                continue
            try:
                tokens = self.tokens(entry)
            except ValueError as error:
                left_out.append(f"line {number} {error} ({_shown(entry)!r})")
                continue
            first[identity] = number
            rows.append(tokens)
            asked.append((number, entry))
        return self._posed(rows, asked), left_out

    def _posed(self, rows: list[tuple[list[int], int]], asked: list[tuple[int, Mapping[str, Any]]]) -> Problems:
        width = self.width or max((len(tokens) for tokens, _ in rows), default=0)
        canvas = torch.full((len(rows), width), self.pad_id)
        attention = torch.zeros(canvas.shape, dtype=torch.bool)
        facts, keys, groups = [], [], []
        for row, ((tokens, begins), (number, entry)) in enumerate(zip(rows, asked)):
            start = width - len(tokens) if self.left else 0
            canvas[row, start : start + len(tokens)] = torch.tensor(tokens)
            attention[row, start : start + len(tokens)] = True
            first = start + begins
            last = first + self.length if self.length else start + len(tokens)
            facts.append(Asked(number, _shown(entry), entry, first, last))
            told = {name: part for name, part in entry.items() if name not in (*_KINDS, "split", "group")}
            keys.append([int(word(tokens, told), 16) >> 2])
            groups.append([int(word("group", entry["group"]), 16) >> 2] if "group" in entry else keys[-1])
        key, group = (row_hash(torch.tensor(part).view(-1, 1)) for part in (keys, groups))
        context = None if bool(attention.all()) else {ATTENTION: attention}
        return Problems(canvas, key, facts, context, group)


def read_lines(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    """The numbered JSON objects of a file."""
    if not path.exists():
        raise ValueError(f"there is no file {path} of prompts")
    lines: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in enumerate(read_whole(path).decode("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: no JSON ({error.msg} at column {error.colno})") from None
        if not isinstance(entry, dict):
            raise ValueError(f"{path}, line {number}: expected an object such as {{'prompt': …}}")
        if entry.get("split", "fit") not in _SPLITS:
            raise ValueError(
                f"{path}, line {number}: split is {entry['split']!r}, expected one of {', '.join(_SPLITS)}"
            )
        lines.append((number, entry))
    return lines


def _shown(entry: Mapping[str, Any], most: int = 80) -> str:
    """A prompt in a message."""
    kind = next((kind for kind in _KINDS if kind in entry), None)
    told: Any = entry[kind] if kind else entry
    told = told[-1].get("content", told) if kind == "messages" and told else told
    text = str(told)
    return text if len(text) <= most else text[: most - 1] + "…"
