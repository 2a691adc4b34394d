"""The posterior of a channel's directions given labels, whatever the channel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.errors import InvalidData
from solvable.message_passing.grid_posterior import SpacePosterior
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
    r"""Posterior of z for labels of a channel, as a function of the cavity.

    .. math:: P(z\mid y,\omega,V)\propto\mathcal N(z;\omega,V)\,P(y\mid z)

    Notes
    -----
    One direction to about 1e-9: nodes resolve both likelihood and cavity, or are the preimages of a
    label without noise. Two directions to about 1e-6, three to about 1e-3, on a grid. Derived;
    ``tests/message_passing/test_posterior.py`` (adaptive quadrature, closed forms).
    """
    y = np.asarray(labels, dtype=np.float64)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise InvalidData(f"labels have shape {y.shape}; allowed: (n,), finite.")
    if output.n_directions > 1:
        return SpacePosterior(output, y)
    return LinePosterior(output, y) if output.noise else PreimagePosterior(output, y)


def messages_of(posterior: Outputs) -> Messages:
    r"""Messages of a posterior, for the loop.

    .. math:: g=V^{-1}(E[z\mid y,\omega,V]-\omega)

    Notes
    -----
    arXiv:2405.15480; ``tests/message_passing/test_posterior.py`` (finite differences).
    """

    def given(omega: np.ndarray, V: np.ndarray) -> Message:
        return output_message(posterior(omega, V), omega, V)

    return given
