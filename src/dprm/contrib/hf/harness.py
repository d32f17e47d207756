"""A checkpoint under several orders in lm-evaluation-harness, from one load.

    evaluate(load(path), {"confidence": None, "mine": order}, ["gsm8k"], limit=100)

An order says in which sequence an answer comes about; it gives no likelihood to a text. So tasks that generate can be
evaluated, and tasks that compare likelihoods are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dprm.contrib.hf.checkpoint import Checkpoint
from dprm.contrib.hf.generate import Generated, generate
from dprm.contrib.hf.host import TextHost, host
from dprm.order.order import Order

try:
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager
except ImportError:
    raise ValueError('lm-evaluation-harness is not installed: `pip install "dprm[eval]"`') from None


class HarnessModel(LM):  # type: ignore[misc]
    """A checkpoint under one order.

    Attributes:
        settings: of `host`: length, block, steps and others. order: None: the family's own.
        tokens, calls: so far; tokens behind the end of an answer are not counted.
    """

    def __init__(self, checkpoint: Checkpoint, order: Order | None, seed: int, rows: int, settings: Mapping[str, Any]):
        super().__init__()
        self.checkpoint, self.order, self.seed, self.rows = checkpoint, order, seed, rows
        self.settings = dict(settings)
        self.tokens = self.calls = 0

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """One answer a request, cut where the task says that it ends."""
        contexts = [request.args[0] for request in requests]
        asked = list(dict.fromkeys(contexts))
        posed = self._host(asked)
        answers = dict(zip(asked, generate(posed, self.order, seed=self.seed, rows=self.rows)))
        self.calls += sum(answers[context].calls for context in contexts)
        return [self._cut(posed, answers[request.args[0]], request.args[1]) for request in requests]

    def _host(self, contexts: Sequence[str]) -> TextHost:
        return host(self.checkpoint.path, contexts, checkpoint=self.checkpoint, **self.settings)

    def _cut(self, posed: TextHost, answer: Generated, told: Mapping[str, Any]) -> str:
        """The text to the first stop, and its tokens counted."""
        until = told.get("until") or []
        stops = [until] if isinstance(until, str) else list(until)
        ends = [answer.answer.index(stop) for stop in stops if stop and stop in answer.answer]
        text = answer.answer[: min(ends, default=len(answer.answer))]
        kept = answer.kept
        if ends:
            decode = posed.checkpoint.tokenizer.decode
            lengths = range(answer.kept + 1)
            kept = next(n for n in lengths if len(decode(answer.tokens[:n], skip_special_tokens=True)) >= len(text))
        self.tokens += kept
        return text

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        raise ValueError("the task compares likelihoods, and an order gives none: choose a task that generates")

    loglikelihood_rolling = loglikelihood

    @property
    def tokenizer_name(self) -> str:
        return str(self.checkpoint.path).replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str:
        return self.checkpoint.tokenizer.chat_template or ""

    def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> str:
        text: str = self.checkpoint.tokenizer.apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=add_generation_prompt
        )
        return text


def evaluate(
    checkpoint: Checkpoint,
    orders: Mapping[str, Order | None],
    tasks: Sequence[str],
    *,
    limit: int | None = None,
    shots: int | None = None,
    chat: bool = False,
    folder: Path | None = None,
    seed: int = 0,
    rows: int = 8,
    **settings: Any,
) -> dict[str, Any]:
    """What the harness says of every order, with digests of policies and of the documents that were asked.

    Args:
        limit: documents of every task; None: all. shots: examples before each. chat: through the chat template.
        folder: where tasks of one's own are. settings: of `host`, such as length, block, steps, temperature.
    """
    manager = TaskManager(include_path=None if folder is None else str(folder))
    said: dict[str, Any] = {}
    for name, order in orders.items():
        model = HarnessModel(checkpoint, order, seed, rows, settings)
        told = simple_evaluate(
            model=model,
            tasks=list(tasks),
            num_fewshot=shots,
            limit=limit,
            apply_chat_template=chat,
            task_manager=manager,
            bootstrap_iters=1000,
        )
        said[name] = {
            "policy": None if order is None else order.policy().digest,
            "results": told["results"],
            "documents": {task: documents(samples) for task, samples in told["samples"].items()},
            "tokens": model.tokens,
            "calls": model.calls,
            "tokens per call": model.tokens / max(1, model.calls),
        }
    return {
        "model": checkpoint.path,
        "seed": seed,
        "settings": {"shots": shots, "chat": chat, **settings},
        "orders": said,
    }


def documents(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many documents were asked, and a digest of them, whatever their order."""
    hashes = sorted({str(sample["doc_hash"]) for sample in samples})
    return {"count": len(hashes), "digest": hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]}
