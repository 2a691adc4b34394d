"""The theory of sequential feature recovery: every predicted quantity of a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import DegenerateReadout, InvalidParameter, unknown_choice
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.sequential.errors import (
    Spectrum,
    drawn_errors,
    leaning,
    limit_errors,
    mixed_layers,
    plug_in_layers,
)
from solvable.moment_spectrum.degree_two_background import QuadraticBackground
from solvable.moment_spectrum.draws import gaussian_draw
from solvable.moment_spectrum.moments import FiniteSizeMoments, finite_size_moments
from solvable.moment_spectrum.operator_draws import OperatorDraws, OperatorSpikes
from solvable.moment_spectrum.spike_law import check_samples
from solvable.spectra._edge_ensemble import MOST
from solvable.spectra.near_semicircle import spiked_overlap, spiked_positions, threshold_ratio

Method = Literal["auto", "closed form", "resolvent"]


@dataclass(frozen=True)
class SequentialPrediction:
    r"""Prediction for p features, at one sample size or (leading axis m) at several.

    Attributes
    ----------
    samples : ndarray of shape () or (m,)
        :math:`n`.
    squared_overlap : ndarray of shape (p,) or (m, p)
        :math:`c_i^2`, floor and rounding included: with the span of the p directions that stand out
        most, chance included; closed form: with the eigenvector of the feature.
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
        Second layer by least squares on :math:`\min(\max(n,4000),20000)` fresh samples, as the
        system fits it, then a readout if the label has one. Without moments: on infinitely many, of a
        Gaussian index, the sum over features below.
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
    :math:`\frac1n\sum_\mu T_\mu(F_\mu F_\mu^\top-I)`, by the resolvent formula of
    :func:`~solvable.spectra.predict_spikes`, as `solvable theory sequential-recovery` does; or, for
    :math:`n/D\gtrsim30` and without background, by its closed form

    .. math::
        c_i^2=\frac{(\nu_i-\tau_2)_+}{(\nu_i-\tau_2)_++\tau_{2h,i}},\quad \nu_i=\frac nD\theta_i^2,
        \qquad \mathrm{NMSE}=1-\sum_i\lambda_i^2c_i^4\quad(g=\mathrm{id}).

    With moments errors are those of a second layer on draws of learned features
    :math:`\hat h_i=c_ih_i+\sqrt{1-c_i^2}\,\zeta_i`, :math:`\zeta_i` along random directions that share
    the norm of x; the closed form from weights alone has the limit of many weak features.

    Parameters
    ----------
    weights : array of shape (p,)
        :math:`\lambda_i` of either sign, none 0; scaled to :math:`\sum_i\lambda_i^2=1` here.
    n_features_total : int
        :math:`D>p` (or equal, with moments).
    samples : float or array of shape (m,)
        :math:`n`, above 0.
    moments : FiniteSizeMoments, optional
        From :func:`~solvable.theory.finite_size_moments`: for true features and for label maps.
        Without them those of Gaussian features and unmapped labels: drawn for the resolvent
        formula; for the closed form in the limit, :math:`\tau_2=1`,
        :math:`\theta_i=\sqrt2\lambda_i\nu_1/\sqrt{E[g^2]}`.
    coefficients : array of shape (k,), optional
        Orthonormal Hermite coefficients :math:`g_0,g_1,\dots` of the readout
        (:func:`~solvable.hermite.hermite_coefficients`); the identity by default.
    population_floor : array of shape (p,), optional
        Overlap lost to the bias of true features (:func:`~solvable.theory.overlap_floor` or the
        exact one); closed form only, the resolvent formula derives it from the background.
    background : QuadraticBackground, optional
        For the resolvent formula, in place of that of the moments.
    method : {"auto", "closed form", "resolvent"}
        "auto" takes the resolvent formula, but for a floor or coefficients without moments (which
        do not say how the label is distributed).
    rounding : bool
        Smooth the threshold as at finite D (default), or keep the corner of infinite D.

    Returns
    -------
    SequentialPrediction
        Arrays with a leading axis if ``samples`` has one.

    Raises
    ------
    InvalidParameter
        If an argument is out of range, shapes disagree, or goes with the other method.
    DegenerateReadout
        If the readout has :math:`\nu_1=0`.
    NotConverged
        If an edge could not be bracketed.

    Notes
    -----
    Closed form: O(m p), below 5 ms at a point. Resolvent formula: about 10 ms per sample size, 0.1 s
    for the errors; 0.2 s for thresholds and floor, once for the same moments; 0.4 s to draw Gaussian
    ones.
    arXiv:2605.14567 with constants and finite-size terms derived; backed by
    ``tests/models/sequential/test_theory.py`` (simulations and reference tables) and
    ``tests/models/sequential/test_one_theory.py`` (Python, system and command agree), errors by
    ``tests/models/sequential/test_errors.py`` (simulations).

    Examples
    --------
    >>> prediction = predict_sequential(
    ...     weights=np.arange(1, 17) ** -1.0,
    ...     n_features_total=465,
    ...     samples=[64 * 465, 256 * 465],
    ...     method="closed form",
    ... )
    >>> prediction.normalised_mse.round(2), prediction.recovered.sum(axis=1)
    (array([0.19, 0.07]), array([ 8, 16]))
    """
    if method not in ("auto", "closed form", "resolvent"):
        raise InvalidParameter(
            unknown_choice("method", method, ["auto", "closed form", "resolvent"])
        )
    g = check_coefficients(np.array([0.0, 1.0]) if coefficients is None else coefficients)
    strengths, sizes = _checked(weights, n_features_total, samples, moments)
    chosen = method
    if method == "auto":
        alone = moments is None and (coefficients is not None or population_floor is not None)
        chosen = "closed form" if alone else "resolvent"
    if background is not None and (chosen == "closed form" or moments is None):
        raise InvalidParameter(
            "background is given: the closed form has no use for it, and the resolvent formula needs "
            "its moments too; allowed: population_floor, or moments with method='resolvent'."
        )
    if chosen == "resolvent":
        if population_floor is not None or (moments is None and coefficients is not None):
            raise InvalidParameter(
                "the resolvent formula needs moments (finite_size_moments) for a readout and takes "
                "the floor from background; allowed: moments=..., population_floor=None."
            )
        if moments is None:
            draw = gaussian_draw(weights=strengths, n_features=n_features_total)
            moments = finite_size_moments(draw, n_features=n_features_total)
        spectrum = _by_resolvent(moments, sizes, background, rounding)
    else:
        size = n_features_total if rounding else None
        spectrum = _by_closed_form(
            strengths, g, n_features_total, moments, sizes, population_floor, size
        )
    errors = _errors(strengths, n_features_total, g, moments, spectrum, sizes)
    if moments is not None and moments.smaller is not None and chosen == "resolvent" and rounding:
        spectrum, errors = _next_order(strengths, g, moments, spectrum, errors, sizes)
    overlap, floor = spectrum.overlap, spectrum.floor
    if moments is not None and moments.mixing is not None:
        # |P a_j|^2 = sum_k <a_j, b_k>^2 c_k^2 for directions a_j in a basis b_k
        overlap, floor = overlap @ moments.mixing, floor @ moments.mixing
    first = 0 if np.ndim(samples) == 0 else slice(None)
    return SequentialPrediction(
        samples=sizes[first],
        squared_overlap=overlap[first],
        recovered=spectrum.recovered[first],
        threshold_samples=spectrum.thresholds,
        eigenvalues=(spectrum.places + spectrum.shift)[first],
        bulk_edges=(spectrum.edges + spectrum.shift)[first],
        noise_scale=spectrum.noise_scale[first],
        normalised_mse=errors["least-squares"][first],
        normalised_mse_tail_only=errors["tail-only"][first],
        normalised_mse_in_sample=errors["in-sample"][first],
        normalised_mse_shrinkage=errors["shrinkage"][first],
        population_floor=floor,
        method=chosen,
    )


def _errors(
    weights: np.ndarray,
    n_features: int,
    g: np.ndarray,
    moments: FiniteSizeMoments | None,
    spectrum: Spectrum,
    sizes: np.ndarray,
) -> dict[str, np.ndarray]:
    """Normalised error for every kind of second layer, and that of the unrecovered tail alone."""
    if moments is None:
        return limit_errors(weights, g, spectrum, n_features)

    def layers(at: Spectrum, samples: np.ndarray) -> dict[str, np.ndarray]:
        power = np.sqrt(moments.learner_noise * n_features / samples)
        return plug_in_layers(at, mean=moments.shift, noise_scale=power, n_features=n_features)

    labels: dict[str, Any] = {
        "label_map": moments.label_map,
        "label_power": moments.label_second_moment,
    }
    scale = np.sqrt(moments.learner_noise * n_features / sizes)
    errors = drawn_errors(
        moments.latent, g, spectrum, layers(spectrum, sizes), sizes, **labels,
        mixed=mixed_layers(spectrum, mean=moments.shift, noise_scale=scale, n_features=n_features),
    )  # fmt: skip
    changes = leaning(g, spectrum, sizes, layers, **labels) if spectrum.operators else {}
    return {name: error * changes.get(name, 1.0) for name, error in errors.items()}


def _next_order(
    weights: np.ndarray,
    g: np.ndarray,
    moments: FiniteSizeMoments,
    spectrum: Spectrum,
    errors: dict[str, np.ndarray],
    sizes: np.ndarray,
) -> tuple[Spectrum, dict[str, np.ndarray]]:
    """Add what drawn operators of fewer dimensions have and the law there has not.

    The law takes the contraction {B, .} for free from the noise. Noise is a tensor symmetric in four
    indices, which is larger where B is: of relative order 1/d.
    """
    assert moments.smaller is not None
    small, reach = moments.smaller.moments, moments.smaller.reach
    count, background = small.n_features, small.law.background
    if not isinstance(background, OperatorDraws):
        return spectrum, errors
    same = sizes * count / moments.n_features
    drawn = _by_resolvent(small, same, None, True)
    law = _by_resolvent(small, same, background.law, True)
    ours, theirs = (_errors(weights, count, g, small, one, same) for one in (drawn, law))
    overlap = np.clip(spectrum.overlap + reach * (drawn.overlap - law.overlap), 0, 1)
    changes = {name: 1 + reach * (ours[name] / theirs[name] - 1) for name in errors}
    changes["tail-only"] = np.ones(sizes.size)
    return (
        replace(spectrum, overlap=overlap),
        {name: error * changes[name] for name, error in errors.items()},
    )


def _checked(
    weights: np.ndarray,
    n_features: int,
    samples: float | np.ndarray,
    moments: FiniteSizeMoments | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Normalised weights, and sample sizes as a vector."""
    check_positive(n_features_total=n_features)
    strengths = np.asarray(weights, dtype=np.float64)
    sizes = np.atleast_1d(np.asarray(samples, dtype=np.float64))
    most = n_features - (moments is None)
    usable = strengths.ndim == 1 and 1 <= strengths.size <= most
    if not usable or not np.isfinite(strengths).all() or not strengths.all():
        raise InvalidParameter(
            f"weights have shape {strengths.shape}; allowed: (p,) with 1 <= p < n_features_total = "
            f"{n_features}, finite and none zero."
        )
    if sizes.ndim != 1 or not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise InvalidParameter(f"samples is {samples}; allowed: numbers above 0, () or (m,).")
    if moments and (moments.heights.shape != strengths.shape or moments.n_features != n_features):
        raise InvalidParameter(
            f"moments are of {moments.heights.size} features among {moments.n_features}, the weights "
            f"of {strengths.size} among {n_features}; allowed: the same."
        )
    return strengths / np.linalg.norm(strengths), sizes


def _by_closed_form(
    weights: np.ndarray,
    g: np.ndarray,
    n_features: int,
    moments: FiniteSizeMoments | None,
    samples: np.ndarray,
    floor: np.ndarray | None,
    rounded_size: int | None,
) -> Spectrum:
    """Spectrum in noise close to a semicircle; ``rounded_size`` is D, or None for the corner."""
    lost = np.zeros(weights.size) if floor is None else np.asarray(floor, np.float64)
    if lost.shape != weights.shape or not ((lost >= 0) & (lost <= 1)).all():
        raise InvalidParameter(
            f"population_floor has shape {lost.shape}; allowed: ({weights.size},) in [0, 1]."
        )
    if moments is None:
        # theta_i = sqrt(2) lambda_i nu_1 / sqrt(E g^2), nu_1 = g_1, E g^2 = sum_k g_k^2
        heights = np.sqrt(2) * weights * g[0] / np.linalg.norm(g)
        couplings = limit_couplings(weights=weights, coefficients=g)
        noise, shift = 1.0, 0.0
    else:
        heights, couplings = moments.heights, moments.couplings
        noise, shift = moments.noise, moments.shift
    delta = samples / n_features
    thresholds = threshold_ratio(heights=heights, noise=noise) * n_features
    thresholds = np.where(lost < 1, thresholds, np.inf)
    overlap = spiked_overlap(
        heights=heights,
        noise=noise,
        couplings=couplings,
        aspect_ratio=delta,
        n_features=rounded_size,
    )
    places = spiked_positions(heights=heights, noise=noise, couplings=couplings, aspect_ratio=delta)
    edge = 2 * np.sqrt(noise / delta)
    return Spectrum(
        # Lost overlaps of independent causes multiply, and add up where both are small.
        overlap=overlap * (1 - lost),
        recovered=samples[:, None] > thresholds,
        thresholds=thresholds,
        places=places,
        edges=np.stack([-edge, edge], axis=-1),
        noise_scale=np.sqrt(noise * n_features / samples),
        floor=lost,
        shift=shift,
    )


def _by_resolvent(
    moments: FiniteSizeMoments,
    samples: np.ndarray,
    background: QuadraticBackground | None,
    rounding: bool,
) -> Spectrum:
    """Spectrum by the resolvent formula, with its own background or another."""
    check_samples(float(samples.min()), moments.heights.size)
    law = moments.law if background is None else replace(moments.law, background=background)
    spikes = [law.spikes(float(n)) for n in samples]
    drawn = [law.drawn(float(n), moments.n_features) if rounding else None for n in samples]
    operators = [at for at in spikes if isinstance(at, OperatorSpikes)]
    # So many that the learner fits their squares alone, and too many directions to draw
    undrawn = any(draws is None for draws in drawn) and not operators
    many = moments.heights.size > MOST and undrawn
    overlap = []
    for n, at, draws in zip(samples, spikes, drawn, strict=True):
        known = law.crowded(float(n), moments.n_features, draws) if rounding else None
        if known is None:
            known = at.squared_overlap if rounding else at.sharp_squared_overlap
        overlap.append(known)
    return Spectrum(
        overlap=np.array(overlap),
        recovered=samples[:, None] > law.thresholds,
        thresholds=law.thresholds,
        places=np.array(
            [
                at.eigenvalues if draws is None else draws.places()
                for at, draws in zip(spikes, drawn, strict=True)
            ]
        ),
        edges=np.array([at.bulk_edges for at in spikes]),
        noise_scale=np.sqrt(law.noise * law.n_features / samples),
        floor=law.floor,
        shift=law.shift,
        drawn=tuple(drawn),
        own=np.array([law.alone(float(n), moments.n_features) for n in samples]) if many else None,
        operators=operators,
    )


def check_coefficients(coefficients: np.ndarray) -> np.ndarray:
    """Hermite coefficients g_1, g_2, ... of a readout, from those with g_0 in front."""
    g = np.asarray(coefficients, dtype=np.float64)
    if g.ndim != 1 or g.size < 2 or not np.isfinite(g).all():
        raise InvalidParameter(
            f"coefficients have shape {g.shape}; allowed: g_0, g_1, ... , at least two and finite."
        )
    if abs(g[1]) <= 1e-6 * np.linalg.norm(g[1:]):
        raise DegenerateReadout(
            f"the first Hermite coefficient of the readout is {g[1]:.3g}: the label has no linear "
            "trace of the index. Allowed: g_1 != 0; map the labels so that it is."
        )
    return np.asarray(g[1:])


def limit_couplings(*, weights: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Coupling E[g^2 h_i^2] / E[g^2] of weak features, to second order in their weights."""
    nodes, chances = gaussian_quadrature(128)
    basis = hermite_polynomials(nodes, coefficients.size)
    squared = (coefficients @ basis[1:]) ** 2
    second_moment = float(chances @ squared)
    # E[phi'] = E[phi z] and E[phi''] = E[phi (z^2 - 1)] for phi = g^2
    slope = float(chances @ (squared * nodes)) / second_moment
    curvature = float(chances @ (squared * (nodes**2 - 1))) / second_moment
    strengths = np.asarray(weights, dtype=np.float64)
    # 1 + (sqrt(2) lambda_i E[(g^2)'] + 2 lambda_i^2 E[(g^2)'']) / E[g^2]; the identity: 1 + 4 lambda^2
    return np.maximum(1 + np.sqrt(2) * strengths * slope + 2 * strengths**2 * curvature, 0.0)
