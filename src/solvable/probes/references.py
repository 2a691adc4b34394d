"""Learned shares that theory predicts: spectral learner, Bayes-optimal limit, kernel."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.best_overlaps import STEP, best_overlaps
from solvable.models.multi_index.hierarchical.predict import predict
from solvable.models.sequential.predict import moments_of
from solvable.models.sequential.target import make_target
from solvable.models.sequential.theory import predict_from
from solvable.probes.kernel import kernel_levels
from solvable.probes.targets import MOST_FEATURES, quadratic_target, settings_of

SPECTRAL, BAYES, KERNEL = "spectral learner", "Bayes-optimal", "rbf-kernel"
"""Names of the references."""

Curve = Callable[[np.ndarray], np.ndarray]
"""Function from sample sizes, shape (m,), to shares, shape (m, p)."""


def hermite_shares(link: Any, degree: int = 40) -> np.ndarray:
    """Return the part of a link's variance in each Hermite degree, from 0 (no variance) on."""
    squares = np.asarray(link.hermite(degree)) ** 2
    squares[0] = 0.0
    return np.asarray(squares / squares.sum())


def _of_overlaps(channel: AdditiveChannel, overlaps: np.ndarray) -> np.ndarray:
    """Share of each feature for squared overlaps q of its direction, shape (..., p)."""
    # s_k = sum_l w_l q_k^l with the share w_l of degree l in the link's variance   (probe 11)
    found = np.zeros(overlaps.shape)
    for k, link in enumerate(channel.links):
        for degree, weight in enumerate(hermite_shares(link)):
            if weight > 1e-9:
                found[..., k] += weight * overlaps[..., k] ** degree
    return found


def channel_of(target: str, parameters: Any) -> tuple[AdditiveChannel, int] | None:
    """Return the target as a multi-index model with its dimension, if it is one."""
    if target == "sequential-recovery":
        made = make_target(parameters, 0)
        gaussian = made.inputs == "gaussian" or made.degree == 1
        if not gaussian or made.readout != "identity" or made.first_layer != "orthonormal":
            return None
        links = (make_link("he2"),) * made.features
        weights = tuple(float(weight) for weight in made.weights)
        return AdditiveChannel(links, weights, made.label_noise**2), made.input_columns
    if target in ("hierarchical-multi-index", "separable-multi-index", "single-index"):
        return parameters.channel, parameters.dimension
    return None


def _energies(target: str, parameters: Any) -> tuple[dict[int, float], float, int] | None:
    """Variance of the target in each Hermite degree, label noise, and number of Gaussian inputs."""
    found = channel_of(target, parameters)
    if found is not None:
        channel, dimension = found
        energies: dict[int, float] = {}
        for link, a in zip(channel.links, channel.amplitudes, strict=True):
            whole = float(np.sum(np.asarray(link.hermite(40))[1:] ** 2))
            for degree, weight in enumerate(hermite_shares(link)):
                if weight > 1e-6 and degree <= 20:
                    energies[degree] = energies.get(degree, 0.0) + a**2 * whole * float(weight)
        return energies, channel.noise, dimension
    if target == "quadratic-network":
        made = quadratic_target(parameters, 0)
        return {2: 2 * float(np.mean(made.strengths**2))}, parameters.noise, parameters.dimension
    if target == "sequential-recovery" and parameters.degree == 2:
        made_target = make_target(parameters, 0)
        if made_target.readout != "identity" or made_target.inputs != "hermite":
            return None
        low = made_target.degree_two_energy
        high = made_target.index_variance - low
        return {2: low, 4: high}, made_target.label_noise**2, parameters.dimension
    return None


def _kernel(target: str, parameters: Any, names: tuple[str, ...]) -> Curve | None:
    found = _energies(target, parameters)
    if found is None:
        return None
    energies, noise, dimension = found
    channel = channel_of(target, parameters)

    def shares(sizes: np.ndarray) -> np.ndarray:
        rows = []
        for n in sizes:
            levels = kernel_levels(float(n), dimension, energies, noise)
            if channel is not None:
                weights = [hermite_shares(link) for link in channel[0].links]
                row = [sum(w[k] * levels[k] for k in levels) for w in weights]
            else:
                low = levels[2]
                row = [levels.get(4, low) if name.startswith("feature") else low for name in names]
            rows.append(row[: len(names)])
        return np.array(rows)

    return shares


def _bayes(target: str, parameters: Any) -> Curve | None:
    found = channel_of(target, parameters)
    if found is None:
        return None
    channel, dimension = found
    if not channel.noise > 0 or any(link.parity != "even" for link in channel.links):
        return None

    def shares(sizes: np.ndarray) -> np.ndarray:
        top = 3 * ceil(log(float(sizes.max()) / dimension, STEP) / 3)
        table = best_overlaps(channel, max(top, 1))
        overlaps = np.array([table.at(float(n) / dimension) for n in sizes])
        return _of_overlaps(channel, overlaps)

    return shares


def _spectral(target: str, parameters: Any) -> Curve | None:
    if target == "sequential-recovery" and parameters.readout == "identity":
        # s_k = c_k^4 for least squares on many fresh rows   (probe 11)
        moments = moments_of(parameters)
        return lambda sizes: np.asarray(predict_from(moments, sizes).squared_overlap) ** 2
    if target == "hierarchical-multi-index":
        plain = parameters.model_copy(update={"readout": "none", "deflation": 0})

        def shares(sizes: np.ndarray) -> np.ndarray:
            rows = []
            for n in sizes:
                setting = plain.model_copy(update={"sample_ratio": float(n) / plain.dimension})
                rows.append(np.array(predict(setting)["squared_overlap"], dtype=float))
            return _of_overlaps(plain.channel, np.array(rows))

        return shares
    return None


def reference_shares(
    reference: str, target: str, settings: str, names: tuple[str, ...], sizes: np.ndarray
) -> np.ndarray | None:
    """Shares of all named features at these sizes, shape (m, p), NaN where unknown; None if no theory."""
    if ":" in target:
        return None
    try:
        parameters = settings_of(target, settings)
        if reference == KERNEL:
            curve = _kernel(target, parameters, names)
        else:
            curve = (_bayes if reference == BAYES else _spectral)(target, parameters)
        found = None if curve is None else curve(sizes)
    except (InvalidParameter, NotConverged):
        return None
    if found is None:
        return None
    whole = np.full((len(sizes), len(names)), np.nan)
    kept = min(found.shape[1], len(names), MOST_FEATURES if reference != KERNEL else len(names))
    whole[:, :kept] = found[:, :kept]
    return whole


def half_samples(sizes: np.ndarray, shares: np.ndarray) -> float:
    """Return the sample size at which a share first passes one half; NaN if it does not.

    Between two sizes the share is linear in log n. The result is infinite if the share stays below one
    half, and 0 if it is above at the smallest size.
    """
    rising = np.maximum.accumulate(np.nan_to_num(shares, nan=-np.inf))
    above = np.flatnonzero(rising >= 0.5)
    if not above.size:
        return float("inf")
    k = int(above[0])
    if k == 0:
        return 0.0
    low, high = rising[k - 1], rising[k]
    if not np.isfinite(low):
        return float(sizes[k])
    part = (0.5 - low) / (high - low)
    return float(np.exp((1 - part) * np.log(sizes[k - 1]) + part * np.log(sizes[k])))
