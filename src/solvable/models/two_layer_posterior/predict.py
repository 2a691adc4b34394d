"""Predicted metrics of `curse-of-detail`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import erfc, exp, pi, sqrt
from typing import Any

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.two_layer_posterior.atoms import wide_limit_alignment
from solvable.models.two_layer_posterior.attention_energy import (
    adapted_alignment,
    conjugate_field,
)
from solvable.models.two_layer_posterior.feature_kernels import power_laws, strengths_of
from solvable.models.two_layer_posterior.feature_norms import norm_limits, predict_norms
from solvable.models.two_layer_posterior.large_deviation import (
    Readout,
    large_deviation,
    readout_scale,
)
from solvable.models.two_layer_posterior.neuron_counts import LAW_EDGES
from solvable.models.two_layer_posterior.one_mode import TargetMode
from solvable.models.two_layer_posterior.overlap import profile
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.posterior import posterior
from solvable.models.two_layer_posterior.sample_effect import network_of, posterior_of


def predict(parameters: CurseParameters) -> Metrics:
    """Predict the metrics of the posterior and the energies of full alignment, or a random kernel."""
    if parameters.gain:
        return {
            "strengths": listed(strengths_of(parameters)),
            "power_laws": power_laws(parameters),
            "norms": predict_norms(parameters),
            "norm_limits": norm_limits(parameters),
        }
    if parameters.second_width:
        missing = dict.fromkeys(("energy", "energy_held", *ONE_MODE))
        return _unknown(
            "the posterior of networks with two hidden layers is not solved, apart from the number of "
            "outliers behind a lazy second layer; `solvable scale` predicts exponents and energies"
        ) | {"virial": 1.0, **missing, "outliers": _behind_lazy_layer(parameters)}
    if parameters.target == "attention":
        energy = conjugate_field(parameters, 1.0)[1] * parameters.kappa / parameters.unit
        return _unknown(
            "the posterior of attention is not solved; the theory of the target's mode alone predicts "
            "how the number of samples grows"
        ) | {
            "virial": 1.0,
            "energy": energy,
            "energy_held": None,
            "one_mode_alignment": None,
            "kernel_adaptation_alignment": adapted_alignment(parameters),
        }
    if parameters.target == "parity":
        missing = dict.fromkeys(("energy", "energy_held", *ONE_MODE))
        return _unknown(
            "the posterior of networks that learn a parity is not solved; the strength of their neurons "
            "is predicted from their measured alignment"
        ) | {"virial": 1.0, **missing}
    learnt, energies = _learnt(parameters), dict(_energies(**network_of(parameters)))
    reasons = [str(part.pop(NO_PREDICTION)) for part in (learnt, energies) if NO_PREDICTION in part]
    metrics = learnt | energies | {"virial": 1.0} | _one_mode(parameters)
    return metrics | ({NO_PREDICTION: "; ".join(reasons)} if reasons else {})


LEARNT = (
    "alignment", "alignment_error", "outliers", "outlier_overlap", "outlier_rest", "bulk_rest",
    "neuron_law", "test_error", "ridge", "onset", "wide_limit_alignment",
)  # fmt: skip
"""Metrics that the theory of the posterior predicts."""


def _learnt(parameters: CurseParameters) -> Metrics:
    """Predict alignment, specialised neurons and error of the posterior."""
    if parameters.activation == "relu":
        return _unknown(
            "the activation 'relu' is not odd: the numbers of specialised neurons with u and with -u "
            "fluctuate separately, which the theory neglects. Set activation=erf or tanh."
        )
    try:
        learnt = posterior_of(parameters)
    except NotConverged as error:
        return _unknown(str(error))
    numbers = [learnt.alignment, learnt.outliers, learnt.outlier_rest, learnt.bulk_rest]
    if not np.isfinite(numbers).all():
        return _unknown(
            "the integral over the fields of the data has no finite value at these parameters"
        )
    if learnt.caveat:
        return _unknown(learnt.caveat)
    try:
        wide = wide_limit_alignment(
            **network_of(parameters), samples=parameters.samples, kappa=learnt.ridge
        )
    except NotConverged:
        wide = None
    centres = (LAW_EDGES[1:] + LAW_EDGES[:-1]) / 2
    return {
        "alignment": learnt.alignment,
        "alignment_error": learnt.error,
        "outliers": learnt.outliers,
        "outlier_overlap": learnt.outlier_overlap,
        "outlier_rest": learnt.outlier_rest,
        "bulk_rest": learnt.bulk_rest,
        "neuron_law": listed(np.interp(centres, learnt.overlap_grid, learnt.overlap_law, right=0)),
        "test_error": learnt.risk,
        "ridge": learnt.ridge,
        "onset": learnt.onset / parameters.unit,
        "wide_limit_alignment": wide,
    }


def linear_gain_of(activation: str) -> float:
    """Factor by which a lazy layer multiplies the linear part of a kernel of erf or tanh units."""
    # kappa_1² = (E sigma'(sqrt(q_1) xi))², q_1 = K_1(x, x)   (two-layer-posterior 19)
    shape = profile(activation)
    scale = np.sqrt(shape.power(np.ones(1)))
    return float((shape.coefficient(1, scale) / scale)[0] ** 2)


def _behind_lazy_layer(parameters: CurseParameters) -> float | None:
    """Predict the outliers of a first layer whose second layer is lazy."""
    variance = linear_gain_of(parameters.activation)
    variance /= readout_scale(parameters.readout, parameters.second_width)
    network = network_of(parameters) | {"readout": "standard", "readout_variance": variance}
    try:
        learnt = posterior(**network, samples=parameters.samples, kappa=parameters.kappa)
    except NotConverged:
        return None
    return None if learnt.caveat or not np.isfinite(learnt.outliers) else learnt.outliers


def _unknown(reason: str) -> Metrics:
    return {**dict.fromkeys(LEARNT), NO_PREDICTION: reason}


ONE_MODE = {
    "one_mode_alignment": TargetMode.alignment,
    "kernel_adaptation_alignment": TargetMode.adapted_alignment,
}
"""Theories of the target's mode alone: averaged over the kernel of a finite layer, and its saddle."""


def _one_mode(parameters: CurseParameters) -> Metrics:
    """Alignment in the theories of the target's mode alone, or None without convergence."""
    mode = TargetMode(**network_of(parameters), samples=parameters.samples, kappa=parameters.kappa)
    return {name: _finite(theory, mode) for name, theory in ONE_MODE.items()}


def _finite(theory: Callable[[TargetMode], float], mode: TargetMode) -> float | None:
    try:
        value = theory(mode)
    except NotConverged:
        return None
    return value if np.isfinite(value) else None


@lru_cache(maxsize=64)
def _energies(
    dimension: int, width: int, degree: int, activation: str, readout: Readout
) -> Metrics:
    """Chernoff energies of full alignment over sqrt(chi N d), exact and with fixed irrelevant weights."""
    order = sqrt(readout_scale(readout, width) * width * dimension)
    network: dict[str, Any] = {"dimension": dimension, "width": width, "degree": degree}
    network |= {"activation": activation, "readout": readout}
    try:
        return {
            name: large_deviation(**network, reduced=reduced).energy / order
            for name, reduced in (("energy", False), ("energy_held", True))
        }
    except NotConverged as error:
        return {"energy": None, "energy_held": None, NO_PREDICTION: f"no energy: {error}"}


def chance(parameters: CurseParameters, prediction: Metrics) -> Metrics:
    """Return the metrics of networks drawn from the prior."""
    if parameters.gain:
        plain = parameters.model_copy(update={"gain": 1.0})
        return {
            "strengths": listed(strengths_of(parameters, lazy=True)),
            "norms": predict_norms(plain),
        }
    if parameters.target == "attention":
        return dict.fromkeys(("alignment", "alignment_prior", "alignment_planted"), 0.0)
    if parameters.target == "parity":
        none = ("alignment", "alignment_prior", "alignment_planted", "carried_alignment")
        # a neuron of the prior has a mean square of 2/d along the two bits
        strength = sqrt(2 / parameters.dimension)
        carriers: Metrics = {"carriers": float(parameters.width), "carrier_strength": strength}
        return {**dict.fromkeys(none, 0.0), **carriers}
    d, edge = parameters.dimension, 3.0
    tail = erfc(edge / sqrt(2))
    chi = readout_scale(parameters.readout, parameters.width)
    shape, near = profile(parameters.activation), 0.01
    # The posterior has <theta.grad U> equal to the number of weights (two-layer-posterior 17). Under the
    # prior, theta.grad U = theta² + (1/kappa) sum_nu (f - y)(f + w.df/dw), and the mean of the sum is
    # P E[f² + f w.df/dw] = (P / chi) (K + K' / 2) with K' = dK / dlog s.
    powers = shape.power(np.exp(np.array([-near, 0.0, near])))
    pull = (powers[1] + (powers[2] - powers[0]) / (4 * near)) / chi
    weights = parameters.width * (d + 1)
    return {
        "alignment": 0.0,
        "adjusted_alignment": 0.0,
        "alignment_prior": 0.0,
        "alignment_planted": 0.0,
        "outliers": parameters.width * tail,
        "second_outliers": parameters.second_width * tail,
        # mean |u| of prior neurons beyond three standard deviations, E[|z| ; |z| > 3] / Pr[|z| > 3]
        "outlier_overlap": 2 * exp(-(edge**2) / 2) / sqrt(2 * pi) / tail / sqrt(d),
        "outlier_rest": (d - 1) / d,
        "bulk_rest": (d - 1) / d,
        "test_error": 1 + float(powers[1]) / chi,
        "virial": 1 + parameters.samples * float(pull) / (parameters.kappa * weights),
    }
