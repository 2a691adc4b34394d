"""Posterior of the direction of a channel given labels, with and without noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.message_passing.line_posterior import LinePosterior
from solvable.message_passing.outputs import (
    GaussianOutput,
    Message,
    Messages,
    Posterior,
    output_message,
)
from solvable.message_passing.preimages import PreimagePosterior

Outputs = Callable[[np.ndarray, np.ndarray], Posterior]
"""Function from cavity means (n, p) and their variance (p, p) to the posterior of each sample."""


def posterior_given(output: GaussianOutput, labels: np.ndarray) -> Outputs:
    """Return the function that maps cavity means and variance to the posterior of z given labels."""
    y = np.asarray(labels, dtype=np.float64)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise InvalidData(f"labels have shape {y.shape}; allowed: (n,), finite.")
    # The posterior P(z | y, omega, V) ~ N(z; omega, V) P(y | z) has error 1e-9, because the nodes resolve
    # likelihood and cavity. Without noise the nodes are the preimages of the label.
    if output.n_directions != 1:
        raise InvalidParameter(
            f"the channel has {output.n_directions} directions; allowed: 1, because message passing "
            "supports single-index channels only."
        )
    return LinePosterior(output, y) if output.noise else PreimagePosterior(output, y)


def messages_of(posterior: Outputs) -> Messages:
    """Messages g = V^-1 (E[z | y, omega, V] - omega) computed from a posterior."""

    def given(omega: np.ndarray, V: np.ndarray) -> Message:
        return output_message(posterior(omega, V), omega, V)

    return given
