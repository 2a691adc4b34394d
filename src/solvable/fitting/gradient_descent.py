"""Gradient descent for any loss: full batches, minibatches or fresh samples, observed along time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, TypeAlias

import numpy as np

from solvable.arrays import Array, as_on, check_integer, check_positive, namespace
from solvable.errors import InvalidParameter, NotConverged

Weights: TypeAlias = tuple[Array, ...]
"""Arrays that are trained together, all NumPy arrays or all tensors of one device."""

Gradient: TypeAlias = Callable[..., Weights]
"""Function of the weights and the arrays of a batch; returns one gradient for each array of weights."""


@dataclass(frozen=True)
class DescentState:
    """Weights after a number of steps."""

    step: int
    time: float  # time of gradient flow: learning rate times number of steps
    weights: Weights


def descend(
    gradient: Gradient,
    weights: Weights,
    batches: Iterator[tuple[Any, ...]],
    *,
    learning_rate: float,
    at: int | Sequence[int],
) -> Iterator[DescentState]:
    """Yield the weights after each of the steps `at`; an integer stands for every step from 1 on."""
    check_positive(learning_rate=learning_rate)
    return _states(gradient, weights, batches, float(learning_rate), checked_steps(at, least=0))


def _states(
    gradient: Gradient,
    weights: Weights,
    batches: Iterator[tuple[Any, ...]],
    learning_rate: float,
    at: tuple[int, ...],
) -> Iterator[DescentState]:
    wanted = frozenset(at)
    for step in range(at[-1] + 1):
        if step:
            weights = _stepped(gradient, weights, next(batches), learning_rate, step)
        if step in wanted:
            yield DescentState(step, learning_rate * step, weights)


def _stepped(
    gradient: Gradient, weights: Weights, batch: tuple[Any, ...], learning_rate: float, step: int
) -> Weights:
    """Weights after one step w <- w - eta grad L(w) on one batch."""
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
        slopes = gradient(weights, *batch)
        new = tuple(w - learning_rate * slope for w, slope in zip(weights, slopes, strict=True))
    if not all(bool(namespace(w).all(namespace(w).isfinite(w))) for w in new):
        raise NotConverged(
            f"the weights overflowed at step {step} with a learning rate of {learning_rate:g}. "
            "Lower the learning rate or the number of steps.",
            {"step": step},
        )
    return new


def full_batch(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield all rows at each step."""
    return repeat(arrays)


def minibatches(*arrays: Array, rows: int, rng: np.random.Generator) -> Iterator[tuple[Array, ...]]:
    """Yield `rows` rows at each step, in a new random order in each pass over the rows."""
    check_integer("rows", rows, 1, len(arrays[0]))
    while True:
        order = rng.permutation(len(arrays[0]))
        # Last rows that do not fill a batch are left out: each step averages over as many rows.
        for start in range(0, len(order) - rows + 1, rows):
            part = order[start : start + rows]
            yield tuple(array[as_on(part, array)] for array in arrays)


def fresh_batches(
    sample: Callable[[int, np.random.Generator], tuple[Any, ...]],
    *,
    rows: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Any, ...]]:
    """Yield new samples at each step, `sample(rows, rng)`: online gradient descent."""
    check_integer("rows", rows, 1)
    return (sample(rows, rng) for _ in count())


def checked_steps(steps: int | Sequence[int], *, least: int = 1) -> tuple[int, ...]:
    """Increasing numbers of steps; an integer stands for every step from 1 on."""
    wanted = tuple(range(1, steps + 1)) if isinstance(steps, (int, np.integer)) else tuple(steps)
    whole = all(isinstance(step, (int, np.integer)) for step in wanted)
    if not wanted or not whole or wanted[0] < least or any(np.diff(wanted) < 1):
        raise InvalidParameter(
            f"steps is {steps!r}; allowed: an integer of at least 1, or an increasing sequence of "
            f"integers of at least {least}."
        )
    return wanted
