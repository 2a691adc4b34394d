r"""Saddle point of wide quadratic networks: test error, rank and spectrum from two scalars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.quadratic.network.saddle import (
    PerfectRecovery,
    SaddlePoint,
    SaddleProblem,
    check_problem,
)
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import energy_above, thresholded_error, truncated_moments
from solvable.spectra.measures import Measure, as_measure, second_moment


@dataclass(frozen=True)
class QuadraticState:
    """Prediction of a trained network with at least rank(S) units (quadratic 2, 5)."""

    # S = (S* + delta Z - b)_+

    sample_ratio: float  # alpha = n / d², the number of samples over d²
    label_noise: float  # Delta, a variance
    regularisation: float  # lambda
    effective_noise: float  # delta, the scale of the semicircle that is added to the target
    threshold: float  # b, the shift of the learned eigenvalues
    matrix_error: float  # R = |S - S*|² / d, half the excess risk in the labels
    train_error: float  # mean squared residual per sample, B² / alpha
    test_error: float  # mean squared error on fresh noisy labels, 2 R + Delta = 4 alpha delta²
    trace: float  # Tr S / d
    rank_fraction: float  # rank of S over d, 1 - F_delta(b)
    objective: float  # minimum of sum r² / d² + lambda Tr S / d
    degrees_of_freedom: float  # degrees of freedom over d², A
    residual: (
        float  # Q* + delta d_1 J - (J - b d_2 J) - (2 alpha delta² - Delta / 2); 0 at a solution
    )
    law: SpectralLaw  # spectral law of S* + delta Z
    width_limited: bool = False  # True in a narrow network whose width cuts the spectrum above b

    def cut_in(self, law: SpectralLaw, threshold: float) -> float:
        """Eigenvalue below which nothing is learned, for a spectral law and a threshold b."""
        return threshold

    def leading_eigenvalues(self, count: int, *, dimension: int) -> np.ndarray:
        """Typical largest eigenvalues of the minimiser at a finite dimension, descending."""
        if not 1 <= count <= dimension:
            raise InvalidParameter(
                f"count is {count}; allowed: from 1 to the dimension {dimension}."
            )
        # An isolated eigenvalue s of the target is learned as s + delta²/s - b (quadratic 2).
        places = self.law.typical_places(dimension)[:count] - self.threshold
        return np.asarray(np.maximum(places, 0.0))


def solve_quadratic(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float, regularisation: float
) -> QuadraticState:
    r"""Predict a trained network in the limit of many dimensions: its unique :math:`(\delta,b)`.

    .. math:: \min_{S\succeq0}\frac1{d^2}\sum_{\mu=1}^n\big(y_\mu-\mathrm{Tr}[Z_\mu S]\big)^2
              +\frac{\tilde\lambda}d\mathrm{Tr}\,S,\qquad Z_\mu=\frac{x_\mu x_\mu^\top-I}{\sqrt d},\qquad
              y_\mu=\mathrm{Tr}[Z_\mu S^\star]+\sqrt\Delta\,\xi_\mu;

    .. math:: \frac1\epsilon=4(\alpha-A),\quad b=\tilde\lambda\epsilon,\quad
              R=Q^\star+4\delta^2A-\int_b^\infty\mu_\delta(dx)(x^2-b^2),\quad
              R+\tfrac\Delta2=2\alpha\delta^2 .

    A bracketed search in :math:`\delta`. arXiv:2505.17958, in the form (quadratic 4).

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`, or eigenvalues of equal weight; at least 0.
    sample_ratio, label_noise : float
        :math:`\alpha=n/d^2`, above 0, and the variance :math:`\Delta\ge0`.
    regularisation : float
        :math:`\tilde\lambda=\sqrt\kappa\lambda\ge0`; 0 means the limit from above.

    Returns
    -------
    QuadraticState
        The prediction.

    Examples
    --------
    >>> state = solve_quadratic(
    ...     np.array([0.0]), sample_ratio=1.0, label_noise=1.0, regularisation=0.0
    ... )
    >>> round(state.matrix_error, 9)  # (Delta / 2) / (4 alpha - 1)
    0.166666667
    """
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=regularisation)
    return _solve(SaddleProblem(as_measure(target), sample_ratio, label_noise, regularisation))


def quadratic_curve(
    target: Measure | np.ndarray,
    *,
    sample_ratios: Sequence[float] | np.ndarray,
    label_noise: float,
    regularisation: float | Sequence[float] | np.ndarray,
    tolerance: float = 0.0,
) -> tuple[QuadraticState, ...]:
    r"""Predict trained networks along a curve of sample ratios.

    Each solution starts the search of the next one, which changes the time and not the result.

    Parameters
    ----------
    target, sample_ratios : Measure or array of shape (m,), and array of shape (k,)
        :math:`\mu^\star` and :math:`\alpha`.
    label_noise, regularisation : float, and float or array of shape (k,)
        :math:`\Delta` and :math:`\tilde\lambda`.
    tolerance : float
        Relative error of :math:`(R+\Delta/2)/2\alpha\delta^2` that ends a search; default rounding.

    Returns
    -------
    tuple of QuadraticState
        One for each sample ratio.

    Examples
    --------
    >>> states = quadratic_curve(
    ...     np.array([0.0]), sample_ratios=[0.5, 1.0], label_noise=1.0, regularisation=0.0
    ... )
    >>> [round(state.matrix_error, 9) for state in states]
    [0.5, 0.166666667]
    """
    return curve_from(
        as_measure(target), sample_ratios, label_noise, regularisation, tolerance=tolerance
    )


def curve_from(
    measure: Measure,
    sample_ratios: Sequence[float] | np.ndarray,
    label_noise: float,
    regularisation: float | Sequence[float] | np.ndarray,
    *,
    tolerance: float = 0.0,
) -> tuple[QuadraticState, ...]:
    """Predict along a curve, as `quadratic_curve` does, for a measure."""
    ratios = np.asarray(sample_ratios, dtype=np.float64)
    if ratios.ndim != 1:
        raise InvalidParameter(f"sample_ratios has shape {ratios.shape}; allowed: a vector.")
    penalties = np.asarray(regularisation, dtype=np.float64)
    if penalties.shape not in ((), ratios.shape):
        raise InvalidParameter(
            f"regularisation has shape {penalties.shape}; allowed: one number, or one for each of "
            f"the {ratios.size} sample ratios."
        )
    states: list[QuadraticState] = []
    for ratio, penalty in zip(ratios, np.broadcast_to(penalties, ratios.shape), strict=True):
        check_problem(sample_ratio=ratio, label_noise=label_noise, regularisation=penalty)
        problem = SaddleProblem(measure, float(ratio), label_noise, float(penalty), tolerance)
        states.append(_solve(problem, _extrapolated(states, ratio)))
    return tuple(states)


def _extrapolated(states: Sequence[QuadraticState], ratio: float) -> float | None:
    """Effective noise at a next sample ratio nearby, by a power law through the last two."""
    if not states or not 0.67 < ratio / states[-1].sample_ratio < 1.5:
        return None
    last = states[-1]
    power = -0.5  # at constant error
    if len(states) > 1 and last.sample_ratio != states[-2].sample_ratio:
        before = states[-2]
        run = np.log(last.sample_ratio / before.sample_ratio)
        power = np.log(last.effective_noise / before.effective_noise) / run
    # The power changes sign at a peak, so that the step is bounded.
    step = np.clip(power * np.log(ratio / last.sample_ratio), -1.0, 1.0)
    return float(last.effective_noise * np.exp(step))


def state_at(
    target: Measure | np.ndarray, *, effective_noise: float, threshold: float, label_noise: float
) -> QuadraticState:
    r"""Predict the network with given :math:`(\delta,b)`, without a search.

    .. math:: \alpha=\frac{R+\Delta/2}{2\delta^2},\qquad\tilde\lambda=4b(\alpha-A).

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`.
    effective_noise, threshold, label_noise : float
        :math:`\delta>0`, :math:`b\ge0` and :math:`\Delta`.

    Returns
    -------
    QuadraticState
        Prediction of the network with these two scalars.

    Examples
    --------
    >>> state = state_at(np.array([0.0]), effective_noise=1.0, threshold=0.0, label_noise=1.0)
    >>> round(state.sample_ratio, 10), round(state.matrix_error, 10)
    (0.5, 0.5)
    """
    check_problem(sample_ratio=1.0, label_noise=label_noise, regularisation=0.0)
    if not 0 <= threshold < np.inf:
        raise InvalidParameter(f"threshold is {threshold}; allowed: a finite number of at least 0.")
    measure = as_measure(target)
    law = SpectralLaw(measure, noise=effective_noise)
    moments = truncated_moments(law, threshold)
    error = thresholded_error(second_moment(measure), moments)
    ratio = (error + label_noise / 2) / (2 * law.variance)  # alpha, (quadratic 4)
    regularisation = 4 * threshold * (ratio - float(moments.slope[0]))  # lambda = 4 b (alpha - A)
    if ratio <= 0 or regularisation < -1e-9 * threshold:
        raise InvalidParameter(
            f"effective_noise {effective_noise} and threshold {threshold} belong to the "
            f"regularisation {regularisation:.3g}; allowed: at least 0. Use a larger threshold."
        )
    point = SaddlePoint(effective_noise, threshold, error, law, moments)
    return _state_of(point, ratio, label_noise, max(regularisation, 0.0))


def _solve(problem: SaddleProblem, guess: float | None = None) -> QuadraticState:
    ratio, label_noise = problem.sample_ratio, problem.label_noise
    penalty = problem.regularisation
    try:
        point = problem.solve(guess)
    except PerfectRecovery:
        raise InvalidParameter(
            f"at sample_ratio {ratio} without label noise and regularisation {penalty} the target is "
            "recovered up to rounding, so that the effective noise vanishes. Use a larger regularisation."
        ) from None
    state = _state_of(point, ratio, label_noise, penalty)
    scale = problem.energy + label_noise / 2 + 2 * ratio * point.law.variance
    if abs(state.residual) > max(1e-8, problem.tolerance) * scale:
        raise NotConverged(
            "the effective noise of the quadratic network did not converge.",
            {"residual": state.residual, "effective_noise": point.effective_noise},
        )
    return state


def _state_of(
    point: SaddlePoint, ratio: float, label_noise: float, penalty: float
) -> QuadraticState:
    """Compute the prediction from a saddle point at these alpha, Delta and lambda."""
    moments, noise, b = point.moments, point.effective_noise, point.threshold
    freedom, trace = float(moments.slope[0]), float(moments.first[0])
    # 1/epsilon = 4 (alpha - A) = lambda/b, and B = delta / 2 epsilon (quadratic 4, 5). Below the
    # interpolation threshold alpha - A loses all digits, and lambda / b does not.
    root = penalty * noise / (2 * b) if b > 0 and penalty > 0 else 2 * noise * (ratio - freedom)
    squares = max(root, 0.0) ** 2  # B², the sum of r² over d²
    energy = second_moment(point.law.target)
    explained = energy_above(moments)
    error = 2 * ratio * noise**2 - label_noise / 2  # R = 2 alpha delta² - Delta/2
    return QuadraticState(
        sample_ratio=ratio,
        label_noise=label_noise,
        regularisation=penalty,
        effective_noise=noise,
        threshold=b,
        matrix_error=point.matrix_error,
        train_error=squares / ratio,
        test_error=2 * point.matrix_error + label_noise,
        trace=trace,
        rank_fraction=float(moments.mass[0]),
        objective=squares + penalty * trace,
        degrees_of_freedom=freedom,
        residual=energy + noise * float(moments.noise_derivative[0]) - explained - error,
        law=point.law,
    )
