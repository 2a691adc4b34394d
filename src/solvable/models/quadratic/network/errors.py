r"""Error decomposition of quadratic networks, and the regularisation of least error."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.saddle import check_problem
from solvable.models.quadratic.network.theory import (
    QuadraticState,
    quadratic_curve,
    solve_quadratic,
)
from solvable.spectra.error_parts import ErrorDecomposition, error_parts
from solvable.spectra.measures import Measure, as_measure, second_moment


def decompose_error(state: QuadraticState) -> ErrorDecomposition:
    r"""Split the error into overfitting, underfitting and approximation error.

    The parts treat bulk and spikes as separate (arXiv:2509.24882, Result 3; quadratic 10). Exact errors
    of features: ``solvable.spectra.denoiser.feature_errors``.

    Parameters
    ----------
    state : QuadraticState
        A solution with few features above the noise, :math:`K\ll d`.

    Returns
    -------
    ErrorDecomposition
        The three parts. Their total approaches :attr:`QuadraticState.matrix_error` for
        :math:`b\approx2\delta`. For smaller b the total is up to twice too large, as the bulk learns
        a part of the features just below :math:`\delta`.

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
    return error_parts(
        state.law.target, effective_noise=state.effective_noise, threshold=state.threshold
    )


def optimal_regularisation(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float
) -> QuadraticState:
    r"""Find the regularisation of least error, and predict the network there.

    The threshold equals the mean shrinkage of the rotationally invariant denoiser above the threshold,
    :math:`\int_b^\infty\mu_\delta(dx)\,(b-2\delta^2h(x))=0` (quadratic 18).

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`.
    sample_ratio, label_noise : float
        :math:`\alpha` and :math:`\Delta`, above 0.

    Returns
    -------
    QuadraticState
        Prediction; its ``regularisation`` is the best one, 0 if the best threshold is 0.

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
    from scipy.optimize import minimize_scalar

    problem = {"sample_ratio": sample_ratio, "label_noise": label_noise}
    # Above lambda = 4 alpha (s_1 + 2 delta) nothing is learned, with 2 alpha delta² = Q* + Delta/2.
    null = np.sqrt((energy + label_noise / 2) / (2 * sample_ratio))
    top = 4 * sample_ratio * (float(measure.nodes.max()) + 2 * null)
    grid = np.log(top) + np.linspace(-12.0, 0.0, 17)
    states = quadratic_curve(
        measure,
        sample_ratios=np.full(grid.size, sample_ratio),
        label_noise=label_noise,
        regularisation=np.exp(grid),
    )
    k = int(np.argmin([state.matrix_error for state in states]))
    if k == 0:
        unregularised = solve_quadratic(measure, **problem, regularisation=0.0)
        return min(unregularised, states[0], key=lambda state: state.matrix_error)
    # The error is flat at the minimum, so that rounding limits the accuracy of the minimum's position.
    best = minimize_scalar(
        lambda place: (
            solve_quadratic(measure, **problem, regularisation=float(np.exp(place))).matrix_error
        ),
        bounds=(grid[k - 1], grid[min(k + 1, grid.size - 1)]),
        method="bounded",
        options={"xatol": 1e-5},
    )
    return solve_quadratic(measure, **problem, regularisation=float(np.exp(best.x)))
