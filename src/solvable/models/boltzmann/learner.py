"""Restricted Boltzmann machine with a few hidden units as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state

from solvable.arrays import check_integer, check_real
from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.inputs import validate_data
from solvable.models.boltzmann.likelihood import UNITS, Units, field_mean, gradient, sample_scores
from solvable.models.boltzmann.maximum import (
    Maximum,
    ascend,
    message_passing,
    principal_directions,
    replicon_of,
)

SOLVERS = ("amp", "gradient")
"""Allowed values of the parameter `solver`."""


class BoltzmannMachine(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Restricted Boltzmann machine with a few hidden units, fitted by exact maximum likelihood.

    .. math:: P(v,h)\propto P(v)\,P(h)\,e^{v^\top Wh/\sqrt d},\qquad
        \mathcal L(W)=\sum_\mu\eta_1\Big(\frac{W^\top x_\mu}{\sqrt d}\Big)
        -n\,\eta_2\Big(\frac{W^\top W}d\Big)-\frac{n\ell}{2d}\|W\|_F^2,

    with :math:`\eta_1(z)=\log E_h e^{h\cdot z}`, :math:`\eta_2(Q)=\log E_h e^{h^\top Qh/2}` and Gaussian
    visible units. No sampling: the partition function is a sum over the states of a few hidden units.
    Unlike in :class:`sklearn.neural_network.BernoulliRBM` the visible units are real numbers, and the
    hidden units signs or normal numbers (probabilistic PCA). arXiv:2505.18046; :math:`4ndk` a step.

    Parameters
    ----------
    n_components : int
        Number k of hidden units, 1 to 10.
    weight_decay : float
        Weight decay :math:`\ell\ge0`. Weights that only fit noise vanish if :math:`1+\ell` exceeds the
        largest eigenvalue of the noise covariance, about :math:`(1+\sqrt{d/n})^2`.
    units : {"rademacher", "gaussian"}
        Prior distribution of the hidden units: signs, or normal numbers, which have a closed solution.
    solver : {"amp", "gradient"}
        Message passing, followed by gradient ascent if it does not converge, or gradient ascent.
    standardise : bool
        Whether features are centred and scaled; the model assumes mean 0 and variance 1 of the noise.
    max_iter, tol : int and float
        Largest number of steps, and relative change of the weights per step at which the solver stops.
    random_state : int, Generator or None
        Seed of the search for the principal components, from which the solver starts.

    Attributes
    ----------
    components_, norm_ : ndarray of shape (k, d) and (k,)
        Weights :math:`W^\top`, ordered by decreasing norm, and squared norms :math:`|w_a|^2/d`.
    stable_, replicon_ : bool and float
        Whether the maximum is stable (``replicon_ < 1``); if not, the weights are largely noise: raise
        ``weight_decay`` or lower ``n_components``. The formula holds for independent features plus a few
        directions; NaN if the couplings of message passing do not exist.
    converged_, solver_, n_iter_, gradient_norm_ : bool, str, int and float
        Whether the solver converged, its name, its steps, and norm of the gradient over that of the
        weights.
    mean_, scale_, n_features_in_ : ndarray of shape (d,), and int
        Mean and scale used to standardise the features, and their number d.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signs, direction = rng.choice([-1, 1], 400), np.ones(50) / np.sqrt(50)
    >>> X = 2 * np.outer(signs, direction) + rng.standard_normal((400, 50))
    >>> machine = BoltzmannMachine().fit(X)
    >>> machine.stable_, round(abs(float(np.mean(np.sign(machine.transform(X)[:, 0]) * signs))), 1)
    (True, 1.0)
    """

    def __init__(
        self,
        n_components: int = 1,
        weight_decay: float = 0.0,
        units: Units = "rademacher",
        solver: Literal["amp", "gradient"] = "amp",
        standardise: bool = True,
        max_iter: int = 2_000,
        tol: float = 1e-7,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.weight_decay = weight_decay
        self.units = units
        self.solver = solver
        self.standardise = standardise
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> BoltzmannMachine:
        """Fit the weights by maximum likelihood; warn if the solver does not converge."""
        check_integer("n_components", self.n_components, 1, 10)
        check_integer("max_iter", self.max_iter, 1)
        check_real("weight_decay", self.weight_decay, 0.0)
        check_real("tol", self.tol, 0.0)
        if self.units not in UNITS:
            raise InvalidParameter(unknown_choice("units", self.units, UNITS))
        if self.solver not in SOLVERS:
            raise InvalidParameter(unknown_choice("solver", self.solver, SOLVERS))
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.n_components > X.shape[1]:
            raise InvalidParameter(
                f"n_components is {self.n_components} for {X.shape[1]} features; allowed: up to the "
                "number of features. Lower n_components."
            )
        self.mean_ = X.mean(axis=0) if self.standardise else np.zeros(X.shape[1])
        deviation = X.std(axis=0) if self.standardise else np.ones(X.shape[1])
        # constant features become 0 by centring, so they are not scaled
        varies = deviation > 1e-12 * (1e-300 + np.abs(self.mean_))
        self.scale_ = np.where(varies, deviation, 1.0)
        rows = (X - self.mean_) / self.scale_
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        start = principal_directions(rows, self.n_components, np.random.default_rng(seed))
        maximum, self.solver_ = self._maximum(rows, start)
        order = np.argsort(-np.sum(maximum.weights**2, axis=0), kind="stable")
        self.components_ = maximum.weights.T[order]
        self.norm_ = np.sum(self.components_**2, axis=1) / X.shape[1]
        self.replicon_, self.converged_ = maximum.replicon, maximum.settled
        self.stable_, self.gradient_norm_ = maximum.stable, maximum.residual
        self.n_iter_ = maximum.iterations
        self._n_features_out = self.n_components
        return self

    def _maximum(self, rows: np.ndarray, start: np.ndarray) -> tuple[Maximum, str]:
        """Return the maximum and the name of the solver that found it."""
        decay, d = float(self.weight_decay), rows.shape[1]
        if self.units == "gaussian":
            return _closed_form(rows, start, decay), "closed form"
        options: dict[str, Any] = {"max_steps": self.max_iter, "tolerance": self.tol}
        if self.solver == "amp":
            # message passing converges within tens of steps, or not at all
            few = options | {"max_steps": min(self.max_iter, 300)}
            maximum = message_passing(rows, start * np.sqrt(d), decay, **few)
            if maximum.settled and maximum.residual < 1e-3:
                return maximum, "amp"
        maximum = ascend(rows, start * 0.1 * np.sqrt(d), decay, **options)
        if self.solver == "amp" or not maximum.settled:
            rest = "converged instead" if maximum.settled else "did not converge either"
            warnings.warn(
                "message passing did not converge, because features are correlated or the likelihood has "
                f"many maxima; gradient ascent {rest}. Raise weight_decay or max_iter."
                if self.solver == "amp"
                else "gradient ascent did not converge; raise max_iter or weight_decay.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return maximum, "gradient"

    def _rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray((X - self.mean_) / self.scale_)

    def transform(self, X: Any) -> np.ndarray:
        """Mean (n, k) of the hidden units given each sample."""
        rows = self._rows(X)
        return field_mean(rows @ self.components_.T / np.sqrt(rows.shape[1]), self.units)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each sample, minus its log-likelihood under standard normal features."""
        return sample_scores(self._rows(X), self.components_.T, self.units)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean over the samples of ``score_samples``."""
        return float(np.mean(self.score_samples(X)))


def _closed_form(rows: np.ndarray, directions: np.ndarray, weight_decay: float) -> Maximum:
    """Weights of normal units: principal components with q = 1 - 1 / (s - l) (boltzmann 3)."""
    (n, d), columns = rows.shape, np.linalg.qr(directions)[0]
    variances = np.sum((rows @ columns) ** 2, axis=0) / n
    shares = 1 - 1 / np.maximum(variances - weight_decay, 1.0)
    W = columns * np.sqrt(d * shares)
    size = float(np.linalg.norm(W))
    slope = gradient(rows, W, "gaussian", weight_decay)
    residual = float(np.linalg.norm(slope)) / size if size else 0.0
    return Maximum(W, replicon_of(rows, W, "gaussian", weight_decay), residual, 1, True)
