"""Bayes message passing on a sum of even links, from a start near the true directions."""

from __future__ import annotations

from functools import partial

import numpy as np

from solvable.errors import NotConverged
from solvable.message_passing.channels import AdditiveChannel
from solvable.message_passing.loop import GaussianSensors, Start, settle
from solvable.message_passing.sum_channel import LEAST_VARIANCE, SumChannel
from solvable.models.multi_index.best_overlaps import INFORMED


def informed_overlaps(
    channel: AdditiveChannel,
    X: np.ndarray,
    y: np.ndarray,
    directions: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray | None:
    """Squared overlap with each true direction (p,) of the fixed point; None without convergence."""
    d, p = directions.shape
    # The start is independent of the samples, so its messages are 0.
    near = INFORMED * np.sqrt(d) * directions
    near = near + np.sqrt(INFORMED * (1 - INFORMED)) * rng.standard_normal((d, p))
    start = Start(near, (1 - INFORMED) * np.eye(p), np.zeros((len(y), p)))
    messages = partial(SumChannel(channel).messages, y)
    try:
        found = settle(
            GaussianSensors(X), messages, start, schedule=((0.6, 60), (0.8, 150)), tolerance=1e-2,
            least_variance=LEAST_VARIANCE,
        )  # fmt: skip
    except NotConverged:
        return None
    along = np.sum(found.estimate * directions, axis=0) ** 2
    norms = np.sum(found.estimate**2, axis=0)
    if norms.max() > 4 * d:  # posterior means have squared norms of about d or less
        return None
    return np.asarray(along / np.maximum(norms, 1e-300))
