"""Percentile bootstrap, vectorised: intervals of a mean, of a difference of means, and of several seeds.

    Δ* = mean of d_i over n problems drawn with replacement, 5,000 times;   interval = its 2.5 % and 97.5 % quantiles

Comparisons are paired on the same problems: the interval of the difference is narrower than those of the two means.
Where the samples are of different problems each is resampled by itself. Problems that belong together, such as the
masks of one reaction, are drawn together: whole groups with replacement, and the mean over their members. Seeds share
their problems, so they are averaged problem by problem first. Shapes: n problems, S seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy
import torch
from torch import Tensor

from dprm.order.checks import check_count, check_number

# With at most this many different values, how often each is drawn says everything: one multinomial instead of n draws.
_FEW = 64
# Draws that are held in memory at a time.
_CHUNK = 4_000_000
# The 97.5 % quantile of Student's t with 1, 2, … degrees of freedom.
_STUDENT = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


class Interval(NamedTuple):
    """An estimate with the ends of its interval."""

    estimate: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        """The whole interval is above 0."""
        return self.low > 0


def mean_interval(
    values: Tensor, resamples: int = 5000, level: float = 0.95, seed: int = 0, groups: Tensor | None = None
) -> Interval:
    """Interval of the mean of values [n]; groups [n] int64 says which of them belong together."""
    return _interval(values.double().mean(), _means(values, resamples, seed, groups), level)


def paired_interval(
    treated: Tensor,
    control: Tensor,
    resamples: int = 5000,
    level: float = 0.95,
    seed: int = 0,
    groups: Tensor | None = None,
) -> Interval:
    """Interval of mean(treated) − mean(control) over the same problems [n]."""
    if treated.shape != control.shape:
        raise ValueError(f"treated has shape {tuple(treated.shape)}, control {tuple(control.shape)}: not paired")
    return mean_interval(treated.double() - control.double(), resamples, level, seed, groups)


def independent_interval(
    treated: Tensor,
    control: Tensor,
    resamples: int = 5000,
    level: float = 0.95,
    seed: int = 0,
    groups: Tensor | None = None,
    control_groups: Tensor | None = None,
) -> Interval:
    """Interval of mean(treated) − mean(control) over different problems [n] and [m], in groups [n] and [m]."""
    treated_means = _means(treated, resamples, 2 * seed, groups)
    control_means = _means(control, resamples, 2 * seed + 1, control_groups)
    return _interval(treated.double().mean() - control.double().mean(), treated_means - control_means, level)


def difference_interval(
    treated: Tensor,
    control: Tensor,
    *,
    paired: bool,
    resamples: int = 5000,
    level: float = 0.95,
    seed: int = 0,
    groups: Tensor | None = None,
) -> Interval:
    """Interval of mean(treated) − mean(control), both [n] of problems in the same groups [n].

    Args:
        paired: False where the samples belong to the order and not to the problem, as with generated molecules.
    """
    if paired:
        return paired_interval(treated, control, resamples, level, seed, groups)
    return independent_interval(treated, control, resamples, level, seed, groups, groups)


def seeds_interval(
    treated: Tensor,
    control: Tensor,
    *,
    paired: bool = True,
    resamples: int = 5000,
    level: float = 0.95,
    seed: int = 0,
    groups: Tensor | None = None,
) -> tuple[Interval, float | None]:
    """Several seeds on the same problems and against the same control: their average difference, and their spread.

    What makes a problem easy for one seed makes it easy for all, and all are compared with one control: resampling
    every seed by itself would count the same luck several times over, and be too sure.

    Args:
        treated: [S,n]. control: [n].

    Returns:
        The interval of the average over seeds and problems, and the standard deviation of the seeds' own means.
    """
    if treated.dim() != 2 or not len(treated):
        raise ValueError(f"treated has shape {tuple(treated.shape)}: expected [seeds, problems]")
    average = treated.double().mean(0)
    interval = difference_interval(
        average, control, paired=paired, resamples=resamples, level=level, seed=seed, groups=groups
    )
    return interval, spread(treated.double().mean(1))


def resampled_means(terms: Tensor, resamples: int, seed: int = 0) -> Tensor:
    """[R,F] float64 means of rows of terms [N,F], drawn with replacement; one seed draws the same rows of any terms."""
    means = []
    for picks in _picks(len(terms), resamples, seed):
        count = torch.zeros(picks.shape, dtype=torch.float64).scatter_add_(1, picks, torch.ones_like(picks).double())
        means.append(count @ terms.double() / len(terms))
    return torch.cat(means)


def percentile_interval(estimate: float, values: Tensor, level: float = 0.95) -> Interval:
    """An estimate with the ends of the interval of its resampled values [R]."""
    return _interval(torch.tensor(estimate), values.double(), level)


def student_interval(means: Tensor) -> Interval:
    """The 95 % interval of the expectation of a few numbers [S], S ≥ 2, one a seed: mean ± t · sd/√S.

    For what has one number a seed and no problems to resample; a bootstrap of so few numbers would be too narrow.
    """
    count, mean = len(means), float(means.double().mean())
    half = student(count - 1) * float(means.double().std()) / count**0.5
    return Interval(mean, mean - half, mean + half)


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t; beyond ten degrees of freedom by its expansion around the normal one."""
    check_count("freedom", freedom, 1)
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def spread(means: Tensor) -> float | None:
    """The standard deviation of some seeds' means [S]; None of a single one."""
    return float(means.std()) if len(means) > 1 else None


def _means(values: Tensor, resamples: int, seed: int, groups: Tensor | None = None) -> Tensor:
    """[resamples] float64, the means of `values` drawn with replacement."""
    check_count("resamples", resamples, 1)
    if values.dim() != 1 or not len(values):
        raise ValueError(f"values has shape {tuple(values.shape)}: expected at least one number in a vector")
    x = values.double().cpu()
    if groups is not None:
        if groups.shape != values.shape:
            raise ValueError(f"groups has shape {tuple(groups.shape)}: expected {tuple(values.shape)}, one a problem")
        _, member, size = torch.unique(groups.cpu(), return_inverse=True, return_counts=True)
        if len(size) < len(x):
            total = torch.zeros(len(size), dtype=torch.float64).index_add_(0, member, x)
            return _group_means(total, size, resamples, seed)
    different, often = torch.unique(x, return_counts=True)
    if len(different) <= _FEW:
        share = often.numpy() / len(x)
        counts = numpy.random.default_rng(seed).multinomial(len(x), share, size=resamples)
        means: Tensor = torch.from_numpy(counts).double() @ different / len(x)
        return means
    return torch.cat([x[picks].mean(1) for picks in _picks(len(x), resamples, seed)])


def _group_means(total: Tensor, size: Tensor, resamples: int, seed: int) -> Tensor:
    """[resamples] means over the members of groups drawn with replacement.

    Args:
        total: [G] float64, the sum over every group. size: [G] int64, its members.
    """
    if len(size) == 1:
        raise ValueError("groups holds one group only: nothing shows how much groups differ; take more problems")
    return torch.cat([total[picks].sum(1) / size[picks].sum(1) for picks in _picks(len(size), resamples, seed)])


def _picks(count: int, resamples: int, seed: int) -> Iterator[Tensor]:
    """Draws with replacement from `count`, a few million at a time, [≤ resamples, count] each."""
    generator = torch.Generator().manual_seed(seed)
    chunk = max(1, _CHUNK // count)
    sizes = [min(chunk, resamples - start) for start in range(0, resamples, chunk)]
    return (torch.randint(count, (size, count), generator=generator) for size in sizes)


def _interval(estimate: Tensor, means: Tensor, level: float) -> Interval:
    check_number("level", level, 0, 1, open_low=True)
    tail = (1 - level) / 2
    low, high = torch.quantile(means, torch.tensor([tail, 1 - tail], dtype=torch.float64)).tolist()
    return Interval(float(estimate), low, high)
