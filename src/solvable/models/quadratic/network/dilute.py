r"""Quadratic networks that learn few features: exact to first order in their number over d."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.bulk import semicircle_tail
from solvable.spectra.measures import DiscreteMeasure
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class DiluteState:
    r"""Network to first order in the number of features.

    Parameters
    ----------
    effective_noise, threshold : float
        :math:`\delta` and b.
    regularisation : float
        :math:`\tilde\lambda` at which they hold.
    matrix_error : float
        R.
    overfitting : float
        :math:`\delta^2j(b/\delta)`, the part of R from noise alone.
    learned : float
        Number of features above the noise over d.
    """

    effective_noise: float
    threshold: float
    regularisation: float
    matrix_error: float
    overfitting: float
    learned: float


def spike_error(strength: np.ndarray | float, *, shrinkage: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Error and degrees of freedom that one feature adds to a bulk of noise, over :math:`\delta^2`.

    With :math:`r=s/\delta`, :math:`a=b/\delta`, :math:`x=2\cos\varphi` and

    .. math:: C(x)=\tfrac1\pi\arg(1-re^{-i\varphi})\ (x\le2),\qquad
        C(x)=1\ (2<x\le r+\tfrac1r,\ r>1),

    the feature moves :math:`C(x)` eigenvalues across x, so that J changes by
    :math:`J_1=\int_a^\infty2(x-a)C(x)dx` and

    .. math:: e=r^2+J_1-r\,\partial_rJ_1,\qquad
        4A_1=2J_1-r\,\partial_rJ_1-a\,\partial_aJ_1 .

    For :math:`a\ge2` this is :math:`(\frac1r-a)^2+\frac2r(r+\frac1r-a)`, equation (6) with its
    factor 2; for smaller a the bulk, which the feature pushes down, has less error than without it.

    Parameters
    ----------
    strength : array of any shape
        :math:`r\ge0`.
    shrinkage : float
        :math:`a\ge0`.

    Returns
    -------
    tuple of ndarray
        :math:`e` and :math:`A_1`.

    Notes
    -----
    Derived from the resolvent, :math:`g_1=\partial_z\log(1-s/\omega)`; backed by
    ``tests/models/quadratic/network/test_dilute.py`` (:class:`~solvable.spectra.SpectralLaw`).

    Examples
    --------
    >>> error, freedom = spike_error(3.0, shrinkage=2.0)
    >>> bool(np.isclose(error, (1 / 3 - 2) ** 2 + 2 / 3 * (3 + 1 / 3 - 2)))
    True
    """
    r = np.atleast_1d(np.asarray(strength, dtype=np.float64)).ravel()[:, None]
    a = float(shrinkage)
    angle, weights = _angles(a)
    rise = 2 * np.cos(angle) - a
    moved = np.arctan2(r * np.sin(angle), 1 - r * np.cos(angle)) / np.pi
    speed = r * np.sin(angle) / (np.pi * np.maximum(1 - 2 * r * np.cos(angle) + r**2, 1e-300))
    total = (2 * rise * moved) @ weights
    scaled = (2 * rise * speed) @ weights
    count = moved @ weights
    r = r[:, 0]
    inverse = 1 / np.maximum(r, 1e-300)
    start = max(a, 2.0)
    out = (r > 1) & (r + inverse > start)
    rise_out, free = np.where(out, r + inverse - a, 0.0), (start - a) ** 2
    # Equation (6) as it stands: r^2 + J_1 - r dJ_1 would cancel for a strong feature.
    spike = np.where(out, (inverse - a) ** 2 + 2 * inverse * rise_out - free, r**2)
    error = spike + total - scaled
    total = total + np.where(out, rise_out**2 - free, 0.0)
    scaled = scaled + 2 * rise_out * (r - inverse)
    count = count + np.where(out, rise_out - (start - a), 0.0)
    freedom = (2 * total - scaled + 2 * a * count) / 4
    shape = np.shape(strength)
    return error.reshape(shape), freedom.reshape(shape)


def _angles(a: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles of the bulk above a with weights for integrals over x, dense near the edge."""
    if a >= 2:
        return np.zeros(1), np.zeros(1)
    nodes, rule = np.polynomial.legendre.leggauss(40)
    end = 2 * np.arcsin(np.sqrt((2 - a) / 4))
    place = (1 + nodes) / 2
    angle = end * place**3
    return angle, 2 * np.sin(angle) * end * 3 * place**2 * rule / 2


def dilute_state(
    target: DiscreteMeasure, *, sample_ratio: float, label_noise: float, shrinkage: float
) -> DiluteState:
    """Network whose threshold is a given multiple of its noise, 2 at the cut line."""
    check_positive(sample_ratio=sample_ratio)
    # R = delta^2 j(a) + delta^2 int e(s/delta, a) mu(ds) = 2 alpha delta^2 - Delta/2 and
    # lambda = 4 a delta (alpha - A(a) - int A_1 mu(ds)), negative where no network has this threshold.
    # One root, of a decreasing function of log(delta).
    strengths, masses = target.nodes, target.node_weights
    bulk = semicircle_tail(shrinkage)
    energy = float(masses @ strengths**2)

    def excess(log_noise: float) -> float:
        variance = np.exp(2 * log_noise)
        errors, _ = spike_error(strengths / np.sqrt(variance), shrinkage=shrinkage)
        fitted = bulk.second + float(masses @ errors) - 2 * sample_ratio
        return float(fitted + label_noise / (2 * variance))

    low = 0.5 * np.log((energy + label_noise / 2) / (2 * sample_ratio))
    high = low
    while excess(high) > 0:
        high += 1.0
        if high > low + 40:
            raise InvalidParameter(
                f"shrinkage is {shrinkage} at sample_ratio {sample_ratio}; allowed: closer to 2, "
                "where the bulk keeps less noise than the samples hold."
            )
    while excess(low) < 0:
        low -= 1.0
        if low < high - 40:
            raise InvalidParameter(
                f"sample_ratio {sample_ratio} without label noise leaves no error; allowed: label "
                "noise, or fewer samples."
            )
    noise = float(np.exp(bracketed_root(excess, low, high, absolute=1e-13)))
    _, freedom = spike_error(strengths / noise, shrinkage=shrinkage)
    free = sample_ratio - bulk.slope - float(masses @ freedom)
    return DiluteState(
        effective_noise=noise,
        threshold=shrinkage * noise,
        regularisation=4 * shrinkage * noise * free,
        matrix_error=2 * sample_ratio * noise**2 - label_noise / 2,
        overfitting=noise**2 * bulk.second,
        learned=float(masses[strengths > noise].sum()),
    )


def solve_dilute(
    target: DiscreteMeasure, *, sample_ratio: float, label_noise: float, regularisation: float
) -> DiluteState:
    r"""Network at a given regularisation, to first order in the number of features.

    Parameters
    ----------
    target : DiscreteMeasure
        Spectrum of which a small fraction exceeds the noise.
    sample_ratio : float
        :math:`\alpha`.
    label_noise : float
        :math:`\Delta`.
    regularisation : float
        :math:`\tilde\lambda\ge0`.

    Returns
    -------
    DiluteState
        Some milliseconds; the exact ``solve_quadratic`` is the
        judge.

    Examples
    --------
    >>> from solvable.spectra import power_law
    >>> target = power_law(dimension=10**6, exponent=1.0)
    >>> state = solve_dilute(target, sample_ratio=1e-4, label_noise=0.5, regularisation=1e-3)
    >>> round(state.matrix_error, 3), round(state.threshold / state.effective_noise, 2)
    (0.133, 1.93)
    """

    def at(a: float) -> DiluteState:
        return dilute_state(target, sample_ratio=sample_ratio, label_noise=label_noise, shrinkage=a)

    def excess(a: float) -> float:
        try:
            return at(a).regularisation - regularisation
        except InvalidParameter:
            return -1.0 - regularisation

    high = 2.0
    while excess(high) < 0:
        high *= 2
    low = 1e-9
    return at(low if excess(low) >= 0 else bracketed_root(excess, low, high, absolute=1e-12))
