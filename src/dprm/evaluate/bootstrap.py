"""Percentile bootstrap, vectorised: intervals of a mean, of a difference of means, and of several seeds.

    Δ* = mean of d_i over n problems drawn with replacement, 5,000 times;   interval = its 2.5 % and 97.5 % quantiles

Comparisons are paired on the same problems: the interval of the difference is narrower than those of the two means.
Where the samples are of different problems each is resampled by itself. Seeds are analysed one by one, then averaged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy
import torch
from torch import Tensor

from dprm.order.checks import check_count, check_number

# With at most this many different values, how often each is drawn says everything: one multinomial instead of n draws.
_FEW = 64


class Interval(NamedTuple):
    """An estimate with the ends of its percentile interval."""

    estimate: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        """The whole interval is above 0."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """The whole interval is below 0."""
        return self.high < 0


def mean_interval(values: Tensor, resamples: int = 5000, level: float = 0.95, seed: int = 0) -> Interval:
    """Interval of the mean of values [n]."""
    return _interval(values.double().mean(), _means(values, resamples, seed), level)


def paired_interval(
    treated: Tensor, control: Tensor, resamples: int = 5000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Interval of mean(treated) − mean(control) over the same problems [n]."""
    if treated.shape != control.shape:
        raise ValueError(f"treated has shape {tuple(treated.shape)}, control {tuple(control.shape)}: not paired")
    return mean_interval(treated.double() - control.double(), resamples, level, seed)


def independent_interval(
    treated: Tensor, control: Tensor, resamples: int = 5000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Interval of mean(treated) − mean(control) over different problems [n] and [m]."""
    means = _means(treated, resamples, 2 * seed) - _means(control, resamples, 2 * seed + 1)
    return _interval(treated.double().mean() - control.double().mean(), means, level)


def seeds_interval(
    values: Tensor, resamples: int = 5000, level: float = 0.95, seed: int = 0
) -> tuple[Interval, list[Interval]]:
    """Several seeds [seeds,n], for example of paired differences: the interval of their average, and of every seed.

    Problems are resampled inside every seed, by themselves; what varies between seeds shows in the single intervals.
    """
    if values.dim() != 2 or not len(values):
        raise ValueError(f"values has shape {tuple(values.shape)}: expected [seeds, problems]")
    means = torch.stack([_means(row, resamples, seed * len(values) + index) for index, row in enumerate(values)])
    single = [_interval(row.double().mean(), part, level) for row, part in zip(values, means)]
    return _interval(values.double().mean(), means.mean(0), level), single


def _means(values: Tensor, resamples: int, seed: int) -> Tensor:
    """[resamples] float64, the means of `values` drawn with replacement."""
    check_count("resamples", resamples, 1)
    if values.dim() != 1 or not len(values):
        raise ValueError(f"values has shape {tuple(values.shape)}: expected at least one number in a vector")
    x = values.double().cpu()
    different, often = torch.unique(x, return_counts=True)
    if len(different) <= _FEW:
        share = often.numpy() / len(x)
        drawn = numpy.random.default_rng(seed).multinomial(len(x), share, size=resamples)
        means: Tensor = torch.from_numpy(drawn).double() @ different / len(x)
        return means
    generator = torch.Generator().manual_seed(seed)
    parts = []
    # A few million draws at a time.
    chunk = max(1, 4_000_000 // len(x))
    for start in range(0, resamples, chunk):
        picks = torch.randint(len(x), (min(chunk, resamples - start), len(x)), generator=generator)
        parts.append(x[picks].mean(1))
    return torch.cat(parts)


def _interval(estimate: Tensor, means: Tensor, level: float) -> Interval:
    check_number("level", level, 0, 1, open_low=True)
    tail = (1 - level) / 2
    low, high = torch.quantile(means, torch.tensor([tail, 1 - tail], dtype=torch.float64)).tolist()
    return Interval(float(estimate), low, high)
