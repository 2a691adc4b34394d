r"""Front door to the theory of sequential feature recovery: every predicted quantity of a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, unknown_choice
from solvable.models.sequential.finite_size import FiniteSizeMoments
from solvable.models.sequential.readout_moments import (
    check_coefficients,
    limit_couplings,
    readout_error,
)
from solvable.models.sequential.sample_kernel import QuadraticBackground
from solvable.spectra.spiked import spiked_overlap, spiked_positions, threshold_ratio
from solvable.spectra.spikes import SpikePrediction, predict_spikes, spike_excess

Method = Literal["auto", "closed form", "resolvent"]

THRESHOLD_SIZES = 24
"""Sample sizes between which the thresholds of the resolvent formula are interpolated."""


@dataclass(frozen=True)
class SequentialPrediction:
    r"""Prediction for p features, at one sample size or (leading axis m) at several.

    Attributes
    ----------
    samples : ndarray of shape () or (m,)
        :math:`n`.
    squared_overlap : ndarray of shape (p,) or (m, p)
        :math:`c_i^2` with the eigenvector of the feature, floor and rounding included.
    recovered : ndarray of bool, shape (p,) or (m, p)
        Whether the feature is out of the bulk in the limit of many features.
    threshold_samples : ndarray of shape (p,)
        :math:`n_i`; infinite for a feature that never leaves the bulk.
    eigenvalues : ndarray of shape (p,) or (m, p)
        Place of the eigenvalue of each feature; the edge of the bulk for one inside.
    bulk_edges : ndarray of shape (2,) or (m, 2)
        Lower and upper edge.
    noise_scale : ndarray of shape () or (m,)
        :math:`s=\sqrt{D\tau_2/n}`, half of the half-width.
    normalised_mse : ndarray of shape () or (m,)
        Second layer by least squares on fresh data: the sum over all features.
    normalised_mse_tail_only : ndarray of shape () or (m,)
        If recovered features were known exactly. Not the error: a lower bound that is quoted for it.
    normalised_mse_in_sample : ndarray of shape () or (m,)
        Second layer from the eigenvalues themselves, biased upwards.
    normalised_mse_shrinkage : ndarray of shape () or (m,)
        Second layer from the eigenvalues shrunk by :math:`\sqrt{(\hat\lambda^2-4s^2)_+}`.
    population_floor : ndarray of shape (p,)
        Overlap lost to the bias of true features, whatever n.
    method : {"closed form", "resolvent"}
        How the overlaps were computed.
    """

    samples: np.ndarray
    squared_overlap: np.ndarray
    recovered: np.ndarray
    threshold_samples: np.ndarray
    eigenvalues: np.ndarray
    bulk_edges: np.ndarray
    noise_scale: np.ndarray
    normalised_mse: np.ndarray
    normalised_mse_tail_only: np.ndarray
    normalised_mse_in_sample: np.ndarray
    normalised_mse_shrinkage: np.ndarray
    population_floor: np.ndarray
    method: str


@dataclass(frozen=True)
class _Spectrum:
    """What either method says of the spectrum; arrays with a leading axis of sample sizes."""

    overlap: np.ndarray
    recovered: np.ndarray
    thresholds: np.ndarray
    eigenvalues: np.ndarray
    edges: np.ndarray
    floor: np.ndarray


@dataclass(frozen=True)
class _Inputs:
    """Checked inputs, moments of the limit filled in."""

    weights: np.ndarray
    heights: np.ndarray
    noise: float
    couplings: np.ndarray
    shift: float
    n_features: int
    samples: np.ndarray
    rounding: bool


def predict_sequential(
    *,
    weights: np.ndarray,
    n_features_total: int,
    samples: float | np.ndarray,
    moments: FiniteSizeMoments | None = None,
    coefficients: np.ndarray | None = None,
    population_floor: np.ndarray | None = None,
    background: QuadraticBackground | None = None,
    method: Method = "auto",
    rounding: bool = True,
) -> SequentialPrediction:
    r"""Overlaps, thresholds, spectrum and errors of sequential feature recovery.

    For the target :math:`y=g\big(\frac1{\sqrt2}\sum_i\lambda_i(h_i^2-1)\big)` and the moment matrix
    :math:`\frac1n\sum_\mu T_\mu(F_\mu F_\mu^\top-I)`:

    .. math::
        c_i^2=\frac{(\nu_i-\tau_2)_+}{(\nu_i-\tau_2)_++\tau_{2h,i}},\quad \nu_i=\frac nD\theta_i^2,
        \qquad \mathrm{NMSE}=1-\sum_i\lambda_i^2c_i^4\quad(g=\mathrm{id}),

    or the resolvent formula for the spectrum, which is needed for :math:`n/D\lesssim30`.

    Parameters
    ----------
    weights : array of shape (p,)
        :math:`\lambda_i` of either sign, none 0; scaled to :math:`\sum_i\lambda_i^2=1` here.
    n_features_total : int
        :math:`D>p`.
    samples : float or array of shape (m,)
        :math:`n`, above 0.
    moments : FiniteSizeMoments, optional
        From :func:`~solvable.models.sequential.finite_size.finite_size_moments`: for true
        features and for label
        maps. Without them the limit of Gaussian features and unmapped labels: :math:`\tau_2=1`,
        :math:`\theta_i=\sqrt2\lambda_i\nu_1/\sqrt{E[g^2]}`.
    coefficients : array of shape (k,), optional
        Orthonormal Hermite coefficients :math:`g_0,g_1,\dots` of the readout
        (:func:`~solvable.hermite.hermite_coefficients`); the identity by default.
    population_floor : array of shape (p,), optional
        Overlap lost to the bias of true features
        (:func:`~solvable.models.sequential.population.overlap_floor` or the exact one); closed form only.
    background : QuadraticBackground, optional
        The bias itself, for the resolvent formula, which derives the floor from it.
    method : {"auto", "closed form", "resolvent"}
        "auto" takes the resolvent formula where there are moments to feed it.
    rounding : bool
        Smooth the threshold as at finite D (default), or keep the corner of infinite D.

    Returns
    -------
    SequentialPrediction
        Arrays with a leading axis if ``samples`` has one.

    Raises
    ------
    InvalidParameter
        If an argument is out of range, shapes disagree, or the resolvent formula has no moments.
    DegenerateReadout
        If the readout has :math:`\nu_1=0`.
    NotConverged
        If an edge could not be bracketed.

    Notes
    -----
    Closed form: O(m p), below 5 ms at a point. Resolvent formula: about 10 ms per sample size, and
    3 ms for each of 24 sizes behind the thresholds. arXiv:2605.14567 with constants and
    finite-size terms derived; backed by ``tests/models/sequential/test_theory.py`` (simulations and
    reference tables).

    Examples
    --------
    >>> found = predict_sequential(
    ...     weights=np.arange(1, 17) ** -1.0, n_features_total=465, samples=[64 * 465, 256 * 465]
    ... )
    >>> found.normalised_mse.round(2), found.recovered.sum(axis=1)
    (array([0.19, 0.07]), array([ 8, 16]))
    """
    if method not in ("auto", "closed form", "resolvent"):
        raise InvalidParameter(
            unknown_choice("method", method, ["auto", "closed form", "resolvent"])
        )
    g = check_coefficients(np.array([0.0, 1.0]) if coefficients is None else coefficients)
    inputs = _inputs(weights, n_features_total, samples, moments, g, rounding)
    chosen = method
    if method == "auto":
        chosen = "closed form" if moments is None else "resolvent"
    if chosen == "resolvent":
        if moments is None or population_floor is not None:
            raise InvalidParameter(
                "the resolvent formula needs moments (finite_size_moments) and takes the floor from "
                "background; allowed: moments=..., population_floor=None."
            )
        spectrum = _by_resolvent(inputs, moments, background)
    else:
        if background is not None:
            raise InvalidParameter(
                "background is given and the closed form has no use for it; allowed: "
                "population_floor, or method='resolvent'."
            )
        spectrum = _by_closed_form(inputs, population_floor)
    scale = np.sqrt(inputs.noise * n_features_total / inputs.samples)
    unit = 1.0 if moments is None else float(np.sqrt(moments.label_variance))
    linear = g.size == 1 or not np.any(g[1:])
    plain = linear and (moments is None or moments.label_map == "identity")
    errors = _errors(inputs, spectrum, scale, g, unit if plain else None)
    flat = np.ndim(samples) == 0
    return SequentialPrediction(
        samples=inputs.samples[0] if flat else inputs.samples,
        squared_overlap=spectrum.overlap[0] if flat else spectrum.overlap,
        recovered=spectrum.recovered[0] if flat else spectrum.recovered,
        threshold_samples=spectrum.thresholds,
        eigenvalues=spectrum.eigenvalues[0] if flat else spectrum.eigenvalues,
        bulk_edges=spectrum.edges[0] if flat else spectrum.edges,
        noise_scale=scale[0] if flat else scale,
        normalised_mse=errors[0][0] if flat else errors[0],
        normalised_mse_tail_only=errors[1][0] if flat else errors[1],
        normalised_mse_in_sample=errors[2][0] if flat else errors[2],
        normalised_mse_shrinkage=errors[3][0] if flat else errors[3],
        population_floor=spectrum.floor,
        method=chosen,
    )


def _inputs(
    weights: np.ndarray,
    n_features: int,
    samples: float | np.ndarray,
    moments: FiniteSizeMoments | None,
    g: np.ndarray,
    rounding: bool,
) -> _Inputs:
    """Check the arguments and fill in the moments of the limit."""
    check_positive(n_features_total=n_features)
    strengths = np.asarray(weights, dtype=np.float64)
    sizes = np.atleast_1d(np.asarray(samples, dtype=np.float64))
    usable = strengths.ndim == 1 and 1 <= strengths.size < n_features
    if not usable or not np.isfinite(strengths).all() or not strengths.all():
        raise InvalidParameter(
            f"weights have shape {strengths.shape}; allowed: (p,) with 1 <= p < n_features_total = "
            f"{n_features}, finite and none zero."
        )
    if sizes.ndim != 1 or not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise InvalidParameter(f"samples is {samples}; allowed: numbers above 0, () or (m,).")
    strengths = strengths / np.linalg.norm(strengths)
    if moments is None:
        heights = np.sqrt(2) * strengths * g[0] / np.linalg.norm(g)
        couplings = limit_couplings(weights=strengths, coefficients=g)
        return _Inputs(strengths, heights, 1.0, couplings, 0.0, n_features, sizes, rounding)
    if moments.heights.shape != strengths.shape or moments.n_features != n_features:
        raise InvalidParameter(
            f"moments are of {moments.heights.size} features among {moments.n_features}, the weights "
            f"of {strengths.size} among {n_features}; allowed: the same."
        )
    return _Inputs(
        strengths, moments.heights, moments.noise, moments.couplings, moments.shift, n_features,
        sizes, rounding,
    )  # fmt: skip


def _by_closed_form(inputs: _Inputs, floor: np.ndarray | None) -> _Spectrum:
    lost = np.zeros(inputs.weights.size) if floor is None else np.asarray(floor, np.float64)
    if lost.shape != inputs.weights.shape or not ((lost >= 0) & (lost <= 1)).all():
        raise InvalidParameter(
            f"population_floor has shape {lost.shape}; allowed: ({inputs.weights.size},) in [0, 1]."
        )
    delta = inputs.samples / inputs.n_features
    thresholds = threshold_ratio(heights=inputs.heights, noise=inputs.noise) * inputs.n_features
    thresholds = np.where(lost < 1, thresholds, np.inf)
    overlap = spiked_overlap(
        heights=inputs.heights,
        noise=inputs.noise,
        couplings=inputs.couplings,
        aspect_ratio=delta,
        n_features=inputs.n_features if inputs.rounding else None,
    )
    places = spiked_positions(
        heights=inputs.heights, noise=inputs.noise, couplings=inputs.couplings, aspect_ratio=delta
    )
    edge = 2 * np.sqrt(inputs.noise / delta)
    return _Spectrum(
        # Lost overlaps of independent causes multiply, and add up where both are small.
        overlap * (1 - lost),
        inputs.samples[:, None] > thresholds,
        thresholds,
        places + inputs.shift,
        np.stack([-edge, edge], axis=-1) + inputs.shift,
        lost,
    )


def _by_resolvent(
    inputs: _Inputs, moments: FiniteSizeMoments, background: QuadraticBackground | None
) -> _Spectrum:
    def spikes(n: float) -> SpikePrediction:
        return predict_spikes(
            sample=moments.sample,
            heights=inputs.heights,
            n_samples=n,
            n_features=inputs.n_features,
            background=background.at(n) if background else None,
        )

    found = [spikes(float(n)) for n in inputs.samples]
    overlap = [
        one.squared_overlap if inputs.rounding else one.sharp_squared_overlap for one in found
    ]
    closed = threshold_ratio(heights=inputs.heights, noise=inputs.noise) * inputs.n_features
    sizes = np.geomspace(closed.min() / 4, closed.max() * 8, THRESHOLD_SIZES)
    excess = np.array(
        [
            spike_excess(
                sample=moments.sample,
                heights=inputs.heights,
                n_samples=float(n),
                n_features=inputs.n_features,
                background=background.at(float(n)) if background else None,
            )
            for n in sizes
        ]
    )
    floor = np.zeros(inputs.weights.size)
    if background:
        floor = 1 - spikes(1e6 * inputs.n_features).sharp_squared_overlap
    return _Spectrum(
        np.array(overlap),
        np.array([one.recovered for one in found]),
        _crossings(sizes, excess),
        np.array([one.eigenvalues for one in found]) + inputs.shift,
        np.array([one.bulk_edges for one in found]) + inputs.shift,
        floor,
    )


def _crossings(sizes: np.ndarray, excess: np.ndarray) -> np.ndarray:
    r"""Size at which each column turns positive for good; columns are nearly linear in n^(-1/2)."""
    found = np.full(excess.shape[1], np.inf)
    places = sizes**-0.5
    for i, column in enumerate(excess.T):
        below = np.flatnonzero(column <= 0)
        k = below[-1] + 1 if below.size else 0
        if k == 0:
            found[i] = sizes[0]
        elif k < sizes.size:
            part = column[k - 1] / (column[k - 1] - column[k])
            found[i] = (places[k - 1] + part * (places[k] - places[k - 1])) ** -2
    return found


def _errors(
    inputs: _Inputs, spectrum: _Spectrum, scale: np.ndarray, g: np.ndarray, unit: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Errors of least squares, of the tail alone, in sample and shrunk.

    ``unit`` is the standard deviation of the label where eigenvalues are second-layer weights in
    units of it; None where a readout is fitted to an index whose scale does not matter.
    """
    squares, c2 = inputs.weights**2, spectrum.overlap
    total = readout_error(explained=c2**2 @ squares, coefficients=g)
    tail = readout_error(explained=spectrum.recovered @ squares, coefficients=g)
    centred = spectrum.eigenvalues - inputs.shift
    edge = 2 * scale[:, None]
    # A direction that was not found has an eigenvalue at the edge of the noise.
    size = np.where(spectrum.recovered, np.maximum(np.abs(centred), edge), edge)
    side = np.where(centred < 0, -1.0, 1.0)
    plug_in = [side * size, side * np.sqrt(np.maximum(size**2 - edge**2, 0.0))]
    raw, shrunk = (_plug_in_error(inputs.weights, c2, layer, g, unit) for layer in plug_in)
    return total, tail, raw, shrunk


def _plug_in_error(
    weights: np.ndarray, c2: np.ndarray, layer: np.ndarray, g: np.ndarray, unit: float | None
) -> np.ndarray:
    r"""Error of the index :math:`\frac12\sum_ib_i(\hat h_i^2-1)` for second-layer moments b."""
    cross = np.sum(weights * layer * c2, axis=-1)
    power = np.sum(layer**2, axis=-1)
    if unit is not None:
        return np.asarray(1 - np.sqrt(2) * unit * cross + unit**2 * power / 2)
    with np.errstate(invalid="ignore"):
        explained = np.where(power > 0, cross**2 / power, 0.0)
    return readout_error(explained=explained, coefficients=g)
