"""Shares during training, and the part of gradients in the hidden subspace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def fit_observed(
    learner: Any,
    X: np.ndarray,
    y: np.ndarray,
    steps: Sequence[int],
    observe: Callable[[int], None],
) -> None:
    """Train a learner, and call `observe` at the steps that it reaches.

    A step is one of the optimiser for a learner whose ``fit`` takes `observe`, a pass over the rows for
    ``partial_fit``, and a tree for ensembles with a warm start. Other learners are trained only.
    """
    if not steps:
        learner.fit(X, y)
    elif "observe" in inspect.signature(learner.fit).parameters:
        wanted = frozenset(steps)
        learner.fit(X, y, observe=lambda step: observe(step) if step in wanted else None)
    elif hasattr(learner, "partial_fit"):
        classes = {"classes": np.unique(y)} if hasattr(learner, "predict_proba") else {}
        for step in range(1, max(steps) + 1):
            learner.partial_fit(X, y, **classes)
            if step in steps:
                observe(step)
    elif trees := _trees(learner):
        name, last = trees
        for count in [step for step in steps if step <= last]:
            learner.set_params(warm_start=True, **{name: count}).fit(X, y)
            observe(count)
        learner.set_params(**{name: last}).fit(X, y)
    else:
        learner.fit(X, y)


def _trees(learner: Any) -> tuple[str, int] | None:
    """Return the parameter that counts the trees of an ensemble with a warm start, and its value."""
    known = learner.get_params() if hasattr(learner, "get_params") else {}
    names = ("n_estimators", "max_iter" if "Boosting" in type(learner).__name__ else "")
    name = next((name for name in names if "warm_start" in known and name in known), None)
    return None if name is None else (name, int(known[name]))


def gradient_inside(
    predict: Callable[[np.ndarray], np.ndarray], X: np.ndarray, directions: np.ndarray
) -> tuple[float, float]:
    """Part of the average gradient outer product in the span of directions, and of a random span.

    The columns of `directions`, shape (d, p), span the hidden subspace. Gradients are central
    differences, which are exact for functions of degree 2; a piecewise constant function has those of
    its averages.
    """
    d = X.shape[1]
    rows = X[: int(np.clip(10_000 // d, 20, 500))]  # 20,000 predictions
    gradient = np.empty_like(rows, dtype=np.float64)
    for j, unit in enumerate(0.05 * np.eye(d)):
        gradient[:, j] = predict(rows + unit) - predict(rows - unit)
    basis = np.linalg.qr(directions)[0]
    # tr(P M) / tr M with M = E[grad f grad f^T] and the projector P   (probe 14)
    whole = float(np.sum(gradient**2))
    inside = float(np.sum((gradient @ basis) ** 2)) / whole if whole > 0 else float("nan")
    return inside, basis.shape[1] / d
