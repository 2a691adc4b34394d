"""The posterior of a channel's directions given labels, whatever the channel."""

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
"""Posterior of each sample from cavity means (n, p) and their variance (p, p)."""


def posterior_given(output: GaussianOutput, labels: np.ndarray) -> Outputs:
    """Posterior of z for labels of a channel, as a function of the cavity."""
    y = np.asarray(labels, dtype=np.float64)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise InvalidData(f"labels have shape {y.shape}; allowed: (n,), finite.")
    # P(z | y, omega, V) ~ N(z; omega, V) P(y | z), to about 1e-9: nodes resolve both likelihood and
    # cavity, or are the preimages of a label without noise.
    if output.n_directions != 1:
        raise InvalidParameter(
            f"the channel has {output.n_directions} directions; allowed: 1. Message passing is "
            "computed for single-index channels."
        )
    return LinePosterior(output, y) if output.noise else PreimagePosterior(output, y)


def messages_of(posterior: Outputs) -> Messages:
    """Messages g = V^-1 (E[z | y, omega, V] - omega) of a posterior, for the loop."""

    def given(omega: np.ndarray, V: np.ndarray) -> Message:
        return output_message(posterior(omega, V), omega, V)

    return given
