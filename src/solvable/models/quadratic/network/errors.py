r"""Errors of quadratic networks feature by feature, and the regularisation that makes them least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.bulk import semicircle_tail
from solvable.models.quadratic.network.saddle import check_problem
from solvable.models.quadratic.network.theory import QuadraticState, solve_quadratic
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule, thresholded_error, truncated_moments
from solvable.spectra.measures import Measure, as_measure, second_moment
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class ErrorDecomposition:
    """The three parts of the error when few features stand out of a bulk of noise."""

    overfitting: float  # noise learned by the bulk, delta^2 int_(b/delta)^2 (x - b/delta)^2 mu_sc
    underfitting: float  # features below the noise, the sum of s_i^2 / d
    approximation: float  # features above it, the sum of e(s_i) / d
    features: float  # share of features above delta

    @property
    def total(self) -> float:
        """Sum of the three parts, which approximates the matrix error."""
        return self.overfitting + self.underfitting + self.approximation


def outlier_error(
    strength: np.ndarray | float, *, effective_noise: float, threshold: float
) -> np.ndarray:
    """Error of an isolated feature s > delta, which is seen at x = s + delta^2 / s."""
    # e(s) = (delta^2 / s - b)^2 + 2 (delta^2 / s) (x - b) for x > b, else s^2: from the overlap
    # 1 - delta^2 / s^2, s^2 + (x - b)^2 - 2 s (x - b) (1 - delta^2 / s^2). Published forms (2509.24882)
    # lack the factor 2.
    values = np.asarray(strength, dtype=np.float64)
    if not (values >= effective_noise).all():
        raise InvalidParameter(
            f"strength holds a value below the effective noise {effective_noise}; allowed: at least "
            "that, as weaker features leave no eigenvalue of their own."
        )
    push = effective_noise**2 / values
    seen = (push - threshold) ** 2 + 2 * push * (values + push - threshold)
    return np.asarray(np.where(values + push > threshold, seen, values**2))


def decompose_error(state: QuadraticState) -> ErrorDecomposition:
    r"""Overfitting, underfitting and approximation error by the picture of bulk and spikes.

    Parameters
    ----------
    state : QuadraticState
        A solution, for a target of few features, :math:`K\ll d`.

    Returns
    -------
    ErrorDecomposition
        Whose total approaches :attr:`QuadraticState.matrix_error` when the bulk is cut
        (:math:`b\approx2\delta`); up to twice too large when it is not, as features just below
        :math:`\delta` are partly learned by the bulk.

    Notes
    -----
    Asymptotic. Exact is ``solvable.spectra.denoiser.feature_errors``. Backed by
    ``tests/models/quadratic/network/test_errors.py``.

    Examples
    --------
    >>> from solvable.spectra.measures import power_law
    >>> state = solve_quadratic(
    ...     power_law(dimension=400, exponent=1.0), sample_ratio=0.25, label_noise=0.5,
    ...     regularisation=1.5,
    ... )
    >>> round(state.matrix_error, 4), round(decompose_error(state).total, 4)
    (0.1192, 0.1205)
    """
    noise, cut = state.effective_noise, state.threshold / state.effective_noise
    bulk = semicircle_tail(cut).second
    values, weights = state.law.target.nodes, state.law.target.node_weights
    above = values > noise
    spikes = outlier_error(values[above], effective_noise=noise, threshold=state.threshold)
    return ErrorDecomposition(
        overfitting=noise**2 * bulk,
        underfitting=float(weights[~above] @ values[~above] ** 2),
        approximation=float(weights[above] @ spikes),
        features=float(weights[above].sum()),
    )


def optimal_regularisation(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float
) -> QuadraticState:
    r"""Network at the regularisation of least error.

    At fixed :math:`\alpha` the error is :math:`2\alpha\delta^2-\frac\Delta2`, so that the best network
    has the least :math:`\delta`: with the best threshold at each :math:`\delta`,

    .. math:: \min_bR(\delta,b)+\tfrac\Delta2=2\alpha\delta^2,\qquad
              \int_b^\infty\mu_\delta(dx)\,\big(b-2\delta^2h(x)\big)=0 .

    The best threshold is the mean shrinkage that the rotationally invariant denoiser asks for above
    it.

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`.
    sample_ratio : float
        :math:`\alpha`, above 0.
    label_noise : float
        :math:`\Delta`, above 0.

    Returns
    -------
    QuadraticState
        Its ``regularisation`` is the best one; 0 if the best threshold is.

    Raises
    ------
    InvalidParameter
        Without label noise or without a target: less error is then to be had from ever smaller, or
        ever larger, regularisation.

    Notes
    -----
    Derived; backed by ``tests/models/quadratic/network/test_errors.py`` (search over
    :math:`\tilde\lambda`).

    Examples
    --------
    >>> from solvable.spectra.product_measure import marchenko_pastur
    >>> best = optimal_regularisation(marchenko_pastur(0.2), sample_ratio=0.5, label_noise=0.5)
    >>> best.matrix_error < 0.3
    True
    """
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=0.0)
    measure = as_measure(target)
    energy = second_moment(measure)
    if label_noise == 0 or energy == 0:
        raise InvalidParameter(
            f"label_noise is {label_noise} and the target's second moment {energy}; allowed: both "
            "above 0, or no finite regularisation is best."
        )
    thresholds: dict[float, float] = {}

    def gap(log_noise: float) -> float:
        law = SpectralLaw(measure, noise=float(np.exp(log_noise)))
        b = _best_cut(law)
        thresholds[log_noise] = b
        error = thresholded_error(energy, truncated_moments(law, b))
        return float(np.log((error + label_noise / 2) / (2 * sample_ratio * law.variance)))

    floor = np.log(label_noise / (4 * sample_ratio)) / 2
    start = solve_quadratic(
        measure,
        sample_ratio=sample_ratio,
        label_noise=label_noise,
        regularisation=2 * np.sqrt(label_noise * sample_ratio),
    )
    root = bracketed_root(gap, floor, np.log(start.effective_noise), absolute=1e-9, relative=1e-9)
    b = thresholds[root]
    law = SpectralLaw(measure, noise=float(np.exp(root)))
    freedom = float(truncated_moments(law, b).slope[0])
    return solve_quadratic(
        measure,
        sample_ratio=sample_ratio,
        label_noise=label_noise,
        regularisation=max(4 * b * (sample_ratio - freedom), 0.0),
    )


def _best_cut(law: SpectralLaw) -> float:
    """Threshold of least error, which hardly depends on it: a scan, then a root of the slope."""
    top = float(law.edges[-1, 1])
    grid = np.concatenate([[0.0], np.geomspace(3e-3, 1.0, 11)]) * top
    slopes, errors = _cut_errors(law, grid)
    k = int(np.argmin(errors))
    if k == 0 and slopes[0] >= 0:
        return 0.0
    low, high = (k, k + 1) if slopes[k] < 0 else (k - 1, k)
    if not slopes[low] <= 0 <= slopes[high]:
        return float(grid[k])
    return bracketed_root(
        lambda b: float(_cut_errors(law, np.array([b]))[0][0]),
        grid[low],
        grid[high],
        absolute=1e-7 * top,
        relative=1e-7,
        ends=(slopes[low], slopes[high]),
    )


def _cut_errors(law: SpectralLaw, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half of the derivative of R in b, and R up to what does not depend on b."""
    # dR/db / 2 = int_b (b - 2 delta^2 h(x)) mu_delta(dx)
    index, points, weights = tail_rule(law, thresholds)
    b, shrinkage = thresholds[index], 2 * (points.x - points.u)
    size = thresholds.size
    slope = np.bincount(index, weights=weights * (b - shrinkage), minlength=size)
    changes = (points.x - b) * (2 * shrinkage - points.x - b)
    return slope, np.bincount(index, weights=weights * changes, minlength=size)
