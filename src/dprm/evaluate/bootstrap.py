"""Percentile bootstrap, vectorised: intervals of a mean and of a paired difference of means.

    Δ* = mean of d_i over n problems drawn with replacement, 5,000 times;   interval = its 2.5 % and 97.5 % quantiles

Comparisons are paired on the same problems: the interval of the difference is narrower than those of the two means.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.checks import check_count, check_number


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
    check_count("resamples", resamples, 1)
    check_number("level", level, 0, 1, open_low=True)
    if values.dim() != 1 or not len(values):
        raise ValueError(f"values has shape {tuple(values.shape)}: expected at least one number in a vector")
    x = values.double()
    generator = torch.Generator().manual_seed(seed)
    means = []
    # A few million draws at a time.
    chunk = max(1, 4_000_000 // len(x))
    for start in range(0, resamples, chunk):
        picks = torch.randint(len(x), (min(chunk, resamples - start), len(x)), generator=generator)
        means.append(x[picks].mean(1))
    tail = (1 - level) / 2
    low, high = torch.quantile(torch.cat(means), torch.tensor([tail, 1 - tail], dtype=torch.float64)).tolist()
    return Interval(float(x.mean()), low, high)


def paired_interval(
    treated: Tensor, control: Tensor, resamples: int = 5000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Interval of mean(treated) − mean(control) over the same problems [n]."""
    if treated.shape != control.shape:
        raise ValueError(f"treated has shape {tuple(treated.shape)}, control {tuple(control.shape)}: not paired")
    return mean_interval(treated.double() - control.double(), resamples, level, seed)
