"""Canvases and conditional tables: what a denoiser says about every partially masked sequence.

A canvas is a tuple of L symbols from {0..V-1, V}, where V is the mask. A conditional table has shape
(V+1,)*L + (L, V): entry [canvas, i, y] is p(token y at position i | canvas). At a visible position the row is the
one-hot of the visible token. Knows nothing about rewards or orders.
"""

from collections.abc import Callable

import numpy as np

MAX_CANVASES = 20_000
"""(V+1)^L above this is refused: everything in `dprm.theory` enumerates canvases one by one."""

Conditionals = np.ndarray | Callable[[tuple[int, ...]], np.ndarray]


def check_table(name: str, values: np.ndarray) -> np.ndarray:
    """The argument `name`, a number for every sequence, as float64 [V, ..., V]; or an error that says what is wrong."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim < 1 or len(set(table.shape)) != 1:
        raise ValueError(f"{name} must have shape (V,)*L, got {table.shape}")
    length, vocab = table.ndim, table.shape[0]
    if vocab < 2 or (vocab + 1) ** length > MAX_CANVASES:
        raise ValueError(f"V must be at least 2 and (V+1)^L at most {MAX_CANVASES}, got L={length}, V={vocab}")
    if not np.all(np.isfinite(table)):
        raise ValueError(f"{name} is NaN or infinite at x={np.argwhere(~np.isfinite(table))[0].tolist()}")
    return table


def check_joint(joint: np.ndarray) -> np.ndarray:
    """A joint law p(x) over V^L."""
    joint = check_table("joint", joint)
    if joint.min() < 0:
        raise ValueError(f"joint has a negative entry: {joint.min()}")
    if abs(joint.sum() - 1.0) > 1e-9:
        raise ValueError(f"joint must sum to 1, it sums to {joint.sum()}")
    return joint


def check_reward(reward: np.ndarray | None, reward_range: tuple[float, float]) -> np.ndarray:
    """R(x) over V^L inside the declared range."""
    if reward is None:
        raise ValueError("reward is required: an array of shape (V,)*L")
    reward = check_table("reward", reward)
    low, high = reward_range
    outside = np.argwhere((reward < low) | (reward > high))
    if len(outside):
        x = tuple(outside[0].tolist())
        raise ValueError(f"reward must lie in reward_range={reward_range}, it is {reward[x]} at x={list(x)}")
    return reward


def check_conditionals(conditionals: Conditionals, length: int, vocab: int) -> np.ndarray:
    """A full table from an array or from a callable canvas -> [L, V]; visible rows are overwritten by one-hots."""
    shape = (vocab + 1,) * length + (length, vocab)
    if callable(conditionals):
        rows = np.stack([conditionals(canvas) for canvas in np.ndindex(*shape[:length])])
        conditionals = rows.reshape(*shape[:length], *rows.shape[1:])
    table = np.array(conditionals, dtype=np.float64)
    if table.shape != shape:
        raise ValueError(f"conditionals must have shape (V+1,)*L + (L, V) = {shape}, got {table.shape}")
    for i in range(length):
        for token in range(vocab):
            table[(slice(None),) * i + (token,)][..., i, :] = np.eye(vocab)[token]
    if not np.all(np.isfinite(table)) or table.min() < 0:
        raise ValueError("conditionals must be finite and non-negative")
    gap = np.abs(table.sum(-1) - 1.0)
    if gap.max() > 1e-9:
        worst = np.argwhere(gap == gap.max())[0].tolist()
        raise ValueError(f"conditionals must sum to 1 over tokens; canvas {worst[:-1]}, position {worst[-1]} does not")
    return table


def conditionals_of(joint: np.ndarray) -> np.ndarray:
    """The exact conditionals p(x_i = y | visible tokens) of a joint law.

    Appending the sum over an axis as its entry V turns the joint into the mass of every canvas at once; a conditional
    is then a ratio of two entries. A canvas of mass 0 gets the uniform law (only parallel reveals can reach one).
    """
    length, vocab = joint.ndim, joint.shape[0]
    mass = joint
    for axis in range(length):
        mass = np.concatenate([mass, mass.sum(axis, keepdims=True)], axis)
    table = np.empty((vocab + 1,) * length + (length, vocab))
    for i in range(length):
        rows = np.moveaxis(mass, i, -1)
        total = rows[..., vocab:]
        law = np.where(total > 0, rows[..., :vocab] / np.where(total > 0, total, 1.0), 1.0 / vocab)
        np.moveaxis(table, i, 0)[..., i, :] = law  # whatever is at i itself
    return check_conditionals(table, length, vocab)
