"""Compare orders on one host: the same problems, the same budget, the same random streams, paired intervals.

Finished batches are kept in a folder, so a comparison that is killed goes on where it was and ends in the same card,
but for the seconds, which are measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dprm.decode.counts import CountRule
from dprm.evaluate.card import Card
from dprm.evaluate.controls import best
from dprm.evaluate.diagnostics import terminal_sensitivity
from dprm.evaluate.measure import measure
from dprm.evaluate.replays import partings, replays
from dprm.evaluate.seeds import averages
from dprm.evaluate.verdict import judge
from dprm.fit.montecarlo import MONTE_CARLO, MonteCarlo
from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout, batches
from dprm.order import Order
from dprm.order.files import read_tensors, write_tensors
from dprm.order.noise import mix

_KIND = "dprm.rollout"


def compare(
    host: Host,
    problems: Problems,
    orders: dict[str, Order],
    *,
    reference: str = "confidence",
    split: str = "test",
    budget: int | CountRule | None = None,
    seed: int = 0,
    rows: int = 64,
    resamples: int = 5000,
    folder: Path | None = None,
    command: str = "",
    fits: dict[str, dict[str, str]] | None = None,
    ablates: dict[str, str] | None = None,
    best_of: int = 1,
    temperature: float = 1.0,
    local: Mapping[str, MonteCarlo] | None = None,
    on_batch: Callable[[str, int], None] | None = None,
) -> tuple[Card, dict[str, Rollout]]:
    """Decode all problems under every order.

    Args:
        reference: the order that the others are compared with.
        folder: where finished batches are kept; None keeps none.
        fits: for learned orders, what their policies say of their fit. ablates: see `with_ablations`.
        best_of: add the best of so many paths of the reference, all but the first with tokens drawn at `temperature`.
        local: add the reference with values asked of continuations of each canvas, and paid for in model calls.
        on_batch: called with (order, problems done).
    """
    if reference not in orders:
        raise ValueError(f"reference is {reference!r}: expected one of {', '.join(orders)}")
    if not len(problems):
        raise ValueError("problems is empty: there is nothing to compare")
    decoding = _Decoding(host, problems, budget, seed, rows, folder, on_batch)
    found = {name: decoding.rollout(name, order) for name, order in orders.items()}
    fits = dict(fits or {})
    if best_of > 1:
        paths = [found[reference]]
        for path in range(1, best_of):
            paths.append(decoding.rollout(f"{reference}, path {path}", orders[reference], temperature, path))
        control = f"{reference}, best of {best_of}"
        found[control], fits[control] = best(paths), {"control": control}
    for name, asking in (local or {}).items():
        found[name] = decoding.rollout(name, orders[reference], local=asking)
        fits.setdefault(name, {"estimator": MONTE_CARLO, "setting": repr(asking)})
    notes: dict[str, Any] = {"outputs": terminal_sensitivity(found).facts()}
    if seeds := averages(found, reference, fits, resamples, seed):
        notes["seeds"] = seeds
    card = Card(
        host=host.name,
        split=split,
        problems=problems.digest,
        count=len(problems),
        budget=str(host.budget if budget is None else budget),
        reference=reference,
        seed=seed,
        resamples=resamples,
        arms=measure(
            found, orders, reference, host.solved_at, fits=fits, ablates=ablates, resamples=resamples, seed=seed
        ),
        command=command,
        weights=getattr(host, "weights_digest", None),
        replays=replays(host, found, reference),
        partings=partings(found, reference),
        device=problems.canvas.device.type,
        notes=notes,
    )
    card.verdict = judge(card).facts()
    return card, found


@dataclass(frozen=True)
class _Decoding:
    """Decodes the same problems under one order after the other; finished batches are kept and not decoded again."""

    host: Host
    problems: Problems
    budget: int | CountRule | None
    seed: int
    rows: int
    folder: Path | None
    on_batch: Callable[[str, int], None] | None

    def rollout(
        self,
        name: str,
        order: Order,
        temperature: float | None = None,
        path: int = 0,
        local: MonteCarlo | None = None,
    ) -> Rollout:
        """All problems; other paths than 0 have random numbers of their own."""
        identity = self._identity(order, temperature, path, local)
        kept = self._kept(name, identity)
        done = sum(len(part.reward) for part in kept)
        for part in self._parts(self.problems[done:], order, temperature, path, local):
            kept.append(part)
            done += len(part.reward)
            self._keep(name, identity, kept)
            if self.on_batch is not None:
                self.on_batch(name, done)
        return Rollout.joined(kept)

    def _parts(
        self, problems: Problems, order: Order, temperature: float | None, path: int, local: MonteCarlo | None
    ) -> Iterator[Rollout]:
        denoiser = self.host.denoiser()
        if local is not None:
            yield from local.batches(self.host, problems, order, self.rows, denoiser)
            return
        seed = mix(self.seed, path) if path else self.seed
        for _, part in batches(
            self.host,
            problems,
            order,
            budget=self.budget,
            temperature=temperature,
            seed=seed,
            rows=self.rows,
            denoiser=denoiser,
        ):
            yield part

    def _identity(self, order: Order, temperature: float | None, path: int, local: MonteCarlo | None) -> str:
        """What a kept batch belongs to: change anything that matters and it is another."""
        keys = hashlib.sha256(self.problems.key.cpu().numpy().tobytes()).hexdigest()
        model = getattr(self.host, "weights_digest", "")
        setting = [keys, model, order.policy().digest, order.explore, self.budget, self.seed, temperature, path]
        setting += [] if local is None else [local]
        return hashlib.sha256("|".join(map(str, setting)).encode()).hexdigest()[:16]

    def _file(self, folder: Path, name: str) -> Path:
        return folder / f"{name.replace('/', ' ')}.rollout"

    def _keep(self, name: str, identity: str, parts: list[Rollout]) -> None:
        if self.folder is not None:
            whole = Rollout.joined(parts)
            tensors = {field.name: getattr(whole, field.name) for field in fields(Rollout)}
            write_tensors(self._file(self.folder, name), tensors, {"kind": _KIND, "of": identity})

    def _kept(self, name: str, identity: str) -> list[Rollout]:
        if self.folder is None or not self._file(self.folder, name).is_file():
            return []
        tensors, header = read_tensors(self._file(self.folder, name), _KIND)
        return [Rollout(**tensors)] if header["of"] == identity else []
