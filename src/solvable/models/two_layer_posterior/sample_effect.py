"""Predicted effect of the samples of one replicate on its alignment, a control variate of mean 0."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from solvable.errors import NotConverged
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.posterior import Posterior, alignment_given, posterior


def network_of(parameters: CurseParameters) -> dict[str, Any]:
    """Arguments that describe the network and its target."""
    names = ("dimension", "width", "degree", "activation", "readout")
    return {name: getattr(parameters, name) for name in names}


def posterior_of(parameters: CurseParameters) -> Posterior:
    """Predict the posterior at the parameters of the network, its samples and kappa."""
    return _kept(**network_of(parameters), samples=parameters.samples, kappa=parameters.kappa)


_kept = lru_cache(maxsize=16)(posterior)
"""Posteriors of the last few settings, which measurement and prediction share."""


def effect_of_samples(parameters: CurseParameters, inputs: np.ndarray) -> float | None:
    """Predict how far the alignment on given samples is from its mean, or None without a prediction.

    The inputs are those along the target's direction. The effect has mean 0 over sets of samples.
    """
    # A(D) - E_D A(D)   (two-layer-posterior 21)
    if parameters.second_width or parameters.activation == "relu" or parameters.target != "hermite":
        return None
    try:
        learnt = posterior_of(parameters)
        given = alignment_given(inputs, **network_of(parameters), kappa=parameters.kappa)
    except NotConverged:
        return None
    effect = given - learnt.alignment
    return effect if np.isfinite(effect) and not learnt.caveat else None
