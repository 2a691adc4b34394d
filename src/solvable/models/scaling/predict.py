"""Prediction of what two-layer networks of a posterior learn of a Hermite target."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.scaling.constants import specialisation
from solvable.models.scaling.large_deviation import large_deviation, readout_scale
from solvable.models.scaling.overlap import profile
from solvable.models.scaling.parameters import CurseParameters

LAW_EDGES = np.linspace(0.0, 4.0, 41)
"""Edges of the bins of |u| in which neurons are counted."""


def outlier_edge(dimension: int) -> float:
    """|u| beyond which a neuron is an outlier: three standard deviations of the prior."""
    return 3 / sqrt(dimension)


def predict(parameters: CurseParameters) -> Metrics:
    """What the posterior at this size learns, and the energies of full alignment."""
    best = specialisation(parameters.activation, parameters.degree)
    alpha = max(0.0, 1 - best.R / parameters.scaled_samples)
    chi = readout_scale(parameters.readout, parameters.width)
    ratio = parameters.width / parameters.dimension
    found: Metrics = {
        "alignment": alpha,
        "outliers": best.neurons * alpha * sqrt(chi * ratio),
        "outlier_overlap": best.u,
        "outlier_rest": best.r,
        "bulk_rest": 1.0,
        "onset": best.R,
        "virial": 1.0,
    }
    found = {k: (v if np.isfinite(v) else None) for k, v in found.items()}
    return found | _energies(parameters)


def _energies(parameters: CurseParameters) -> Metrics:
    """Chernoff energy of full alignment, exact and with the rest of the weights held, over its order."""
    names = {"energy": False, "energy_held": True}
    found: Metrics = {}
    for name, reduced in names.items():
        try:
            found[name] = (
                parameters.kappa
                / parameters.unit
                * large_deviation(
                    dimension=parameters.dimension,
                    width=parameters.width,
                    degree=parameters.degree,
                    activation=parameters.activation,
                    readout=parameters.readout,
                    reduced=reduced,
                ).energy
            )
        except NotConverged as error:
            return dict.fromkeys(names) | {NO_PREDICTION: f"no energy: {error}"}
    return found


def chance(parameters: CurseParameters, prediction: Metrics) -> Metrics:
    """Metrics of networks of the prior, which have seen no samples."""
    d, edge = parameters.dimension, 3.0
    tail = erfc(edge / sqrt(2))
    chi = readout_scale(parameters.readout, parameters.width)
    shape, near = profile(parameters.activation), 0.01
    # theta.grad U = theta^2 + (1/kappa) sum_nu (f - y)(f + w.df/dw), of which the prior's mean has
    # P E[f^2 + f w.df/dw] = (P / chi) (K + K' / 2) with K' = dK / dlog s
    powers = shape.power(np.exp(np.array([-near, 0.0, near])))
    pull = (powers[1] + (powers[2] - powers[0]) / (4 * near)) / chi
    weights = parameters.width * (d + 1)
    return {
        "alignment": 0.0,
        "alignment_prior": 0.0,
        "alignment_planted": 0.0,
        "outliers": parameters.width * tail,
        # E[|z| ; |z| > 3] / Pr[|z| > 3]
        "outlier_overlap": 2 * exp(-(edge**2) / 2) / sqrt(2 * pi) / tail / sqrt(d),
        "outlier_rest": (d - 1) / d,
        "bulk_rest": (d - 1) / d,
        "virial": 1 + parameters.samples * float(pull) / (parameters.kappa * weights),
    }
