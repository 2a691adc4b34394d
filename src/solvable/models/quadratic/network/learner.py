"""Quadratic network regression with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import Array, Source, check_integer, check_real, namespace, to_numpy
from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.inputs import (
    finite_outputs,
    refuse_large_numbers,
    validated_fit_input,
    validated_input,
)
from solvable.models.quadratic.network.amp import solve_amp
from solvable.models.quadratic.network.factorised import solve_factorised
from solvable.models.quadratic.network.sensing import (
    SampleSensing,
    Sensing,
    condition_number,
    second_moment,
    whitening_of,
)
from solvable.models.quadratic.network.solvers import QuadraticSolution, solve_fista
from solvable.models.quadratic.network.spectrum import SpectralEstimate, spectral_estimate

SOLVERS = ("amp", "fista", "factorised")
"""Allowed solvers."""

PATH_RATIOS = tuple(0.5**power for power in range(1, 11))
"""Regularisations tried by ``"gcv"``, relative to the smallest one that learns nothing."""


class QuadraticNetRegressor(RegressorMixin, BaseEstimator):
    r"""Quadratic network regression, trained to the global minimum of a convex problem.

    .. math:: \min_{S\succeq0}\ \frac1{d^2}\sum_\mu\big(y_\mu - c - \mathrm{Tr}[Z_\mu S]\big)^2
        + \frac{\tilde\lambda}{d}\mathrm{Tr}\,S,\qquad Z(x) = \frac{xx^\top - I_d}{\sqrt d},
        \qquad S = \frac{1}{\sqrt{pd}}\sum_{k\le p} w_kw_k^\top

    A network of p units with weight decay :math:`\lambda = \tilde\lambda/\sqrt{p/d}` reaches this minimum
    if p is at least its rank. The theory, AMP and ``gcv_score_`` expect whitened features. The network is
    even in x: standardise X and remove the linear fit from y first. arXiv:2505.17958 (quadratic 1).

    Parameters
    ----------
    regularisation : float or "gcv"
        :math:`\tilde\lambda > 0`; "gcv" chooses the best of :data:`PATH_RATIOS` by ``gcv_score_``.
    solver : {"amp", "fista", "factorised"}
        AMP is fastest on whitened features. "factorised" trains the weights by L-BFGS. FISTA always
        converges, and replaces another solver that does not, with a warning.
    fit_intercept, whiten : bool
        Whether c is fitted without penalty (else 0, as in the theory), and whether features are
        transformed to mean zero and unit covariance; ``matrix_`` and d then refer to the whitened
        features.
    width : int, optional
        Number of units of the factorised solver; d by default.
    tolerance, max_iterations : float and int
        Largest optimality residual, in (0, 1), and largest number of iterations of each solver.

    Attributes
    ----------
    matrix_, intercept_ : ndarray of shape (d, d), and float
        The minimiser, and c.
    condition_number_, whitening_ : float, and Whitening or None
        Condition number of the second moment of the features; mean and linear map of ``whiten``.
    solution_, kkt_residual_ : QuadraticSolution and float
        Factor, residual, dual and iterations; distance from optimality, for every solver.
    solver_, n_iter_, regularisation_ : str, int and float
        Solver that found the minimiser, its iterations, and the regularisation of the fit.
    spectrum_, gcv_score_ : SpectralEstimate and float
        Noise, shrinkage, degrees of freedom and eigenvalues of the noisy matrix; mean squared error on
        fresh labels, estimated from the training data.
    n_features_in_ : int
        d.

    Notes
    -----
    Time :math:`2nd^2` per iteration, memory of one block of rows. A torch tensor is fitted on its
    device in its own precision, with sums in double precision.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 8))
    >>> model = QuadraticNetRegressor(0.05).fit(X[:400], X[:400, 0] ** 2)
    >>> model.score(X[400:], X[400:, 0] ** 2) > 0.99
    True
    """

    def __init__(
        self,
        regularisation: float | Literal["gcv"] = 1.0,
        solver: Literal["amp", "fista", "factorised"] = "amp",
        fit_intercept: bool = True,
        whiten: bool = False,
        width: int | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 10_000,
    ) -> None:
        self.regularisation = regularisation
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.whiten = whiten
        self.width = width
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def fit(self, X: Array | Source, y: Array) -> QuadraticNetRegressor:
        """Find the minimiser; warn if FISTA replaces a solver or if the score is unreliable."""
        self._check_parameters()
        source, labels = validated_fit_input(self, X, y)
        mean = float(np.mean(labels)) if self.fit_intercept else 0.0
        moment = second_moment(source)
        # The diagonal holds the mean squares of the columns.
        refuse_large_numbers(X=namespace(moment).abs(moment) ** 0.5, y=labels)
        self.condition_number_ = condition_number(moment)
        xp = namespace(moment)
        whitening = whitening_of(source) if self.whiten else None
        self.whitening_ = whitening and _on_host(whitening)
        if whitening is not None:
            moment = xp.eye(whitening.directions.shape[1], dtype=moment.dtype)
        elif self.condition_number_ > 100:
            warnings.warn(
                f"the second moment of the features has condition number "
                f"{self.condition_number_:.3g}; gcv_score_ assumes 1 and is wrong by about 15 % at "
                "100. Use whiten=True.",
                UserWarning,
                stacklevel=2,
            )
        # With an intercept S fits only deviations from the second moment of the samples.
        centre = moment if self.fit_intercept else None
        sensing = SampleSensing(source, centre, whitening)
        self._minimise(sensing, labels - mean)
        self.matrix_ = self.solution_.matrix
        excess = to_numpy(sensing.centre) - np.eye(moment.shape[0])
        self.intercept_ = mean - float(np.sum(excess * self.matrix_)) / moment.shape[0] ** 0.5
        return self

    def predict(self, X: Array | Source) -> np.ndarray:
        """Predict labels, float64, for an array, a ``.npy`` file or a Source of samples."""
        check_is_fitted(self)
        source = validated_input(self, X)
        sensing = SampleSensing(source, whitening=self.whitening_)
        outputs = to_numpy(sensing.forward(sensing.asarray(self.solution_.factor)))
        return finite_outputs(outputs + self.intercept_)

    def _check_parameters(self) -> None:
        if self.solver not in SOLVERS:
            raise InvalidParameter(unknown_choice("solver", self.solver, SOLVERS))
        if self.regularisation != "gcv":
            limit = ", or 'gcv'. For the ridgeless limit use a small number"
            check_real("regularisation", self.regularisation, 1e-100, also=limit)
        check_real("tolerance", self.tolerance, 1e-100)
        if self.tolerance >= 1:
            raise InvalidParameter(f"tolerance is {self.tolerance!r}; allowed: below 1.")
        check_integer("max_iterations", self.max_iterations, 1)
        if self.width is not None:
            check_integer("width", self.width, 1)

    def _minimise(self, sensing: Sensing, labels: np.ndarray) -> None:
        if self.regularisation != "gcv":
            self._keep(self._solved(sensing, labels, self.regularisation), self.regularisation)
            return
        dual = sensing.adjoint(sensing.asarray(labels))
        top = 2 / sensing.dimension * float(namespace(dual).linalg.eigvalsh(dual)[-1])
        best: tuple[QuadraticSolution, float, SpectralEstimate] | None = None
        for ratio in PATH_RATIOS:
            # If no direction has a positive dual, every regularisation gives S = 0.
            strength = ratio * top if top > 0 else ratio
            solution = self._solved(sensing, labels, strength)
            estimate = spectral_estimate(solution, strength)
            if best is None or estimate.gcv_score < best[2].gcv_score:
                best = solution, strength, estimate
            # Smaller regularisations are slower, and the score has risen: stop.
            elif estimate.gcv_score > 1.5 * best[2].gcv_score:
                break
        assert best is not None
        self._keep(*best)

    def _keep(
        self,
        solution: QuadraticSolution,
        regularisation: float,
        estimate: SpectralEstimate | None = None,
    ) -> None:
        self.spectrum_ = _on_host(estimate or spectral_estimate(solution, regularisation))
        self.solution_ = _on_host(solution)
        self.regularisation_ = float(regularisation)
        self.gcv_score_ = self.spectrum_.gcv_score
        self.kkt_residual_ = solution.kkt_residual
        self.solver_ = solution.solver
        self.n_iter_ = solution.iterations

    def _solved(
        self, sensing: Sensing, labels: np.ndarray, regularisation: float
    ) -> QuadraticSolution:
        limits: dict[str, Any] = {
            "tolerance": self.tolerance,
            "max_iterations": self.max_iterations,
        }
        first, start = None, None
        if self.solver != "fista":
            if self.solver == "amp":
                first = solve_amp(sensing, labels, regularisation, **limits)
            else:
                first = solve_factorised(
                    sensing, labels, regularisation, width=self.width, **limits
                )
                start = first.factor
            if first.converged:
                return first
            warnings.warn(
                f"{self.solver} stopped after {first.iterations} iterations at an optimality "
                f"residual of {first.kkt_residual:.2g}; allowed: {self.tolerance:g}. FISTA "
                "continues. Whiten the features, raise regularisation, or use solver='fista'.",
                ConvergenceWarning,
                stacklevel=4,
            )
        solution = solve_fista(sensing, labels, regularisation, start=start, **limits)
        if not solution.converged:
            warnings.warn(
                f"fista stopped after {solution.iterations} iterations at an optimality residual "
                f"of {solution.kkt_residual:.2g}; allowed: {self.tolerance:g}. Raise "
                "max_iterations or regularisation.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return solution

    def __sklearn_tags__(self) -> Any:
        """Return the tags; poor_score, as a positive quadratic form does not fit linear labels."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _on_host(result: Any) -> Any:
    """Convert the arrays of a dataclass to NumPy arrays."""
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return replace(result, **{k: to_numpy(v) for k, v in values.items() if hasattr(v, "shape")})
