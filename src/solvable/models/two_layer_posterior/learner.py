"""Ensembles of two-layer networks drawn from their posterior, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from math import sqrt
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from solvable.arrays import (
    Array,
    as_on,
    check_integer,
    check_real,
    is_tensor,
    namespace,
    random_stream,
    to_numpy,
)
from solvable.errors import InvalidData, InvalidParameter, NotConverged, unknown_choice
from solvable.fitting.inputs import (
    finite_outputs,
    refuse_large_numbers,
    seed_from,
    validate_data,
    validated_tensor,
)
from solvable.models.two_layer_posterior.langevin import (
    ACTIVATIONS,
    STEP_TOLERANCE,
    Posterior,
    effective_samples,
    run_langevin,
)
from solvable.models.two_layer_posterior.large_deviation import READOUTS, readout_scale


class LangevinEnsemble(RegressorMixin, BaseEstimator):
    r"""Ensemble of two-layer networks drawn from their posterior by Langevin dynamics.

    .. math:: f(x)=\sum_{i=1}^Na_i\,\sigma(w_i\cdot x),\qquad
        \pi\propto\exp\Big\{-\frac1{2\kappa}\sum_{\nu=1}^P(f(x_\nu)-y_\nu)^2
        -\frac d2\sum_i|w_i|^2-\frac{\chi N}{2\sigma_a^2}|a|^2\Big\},

    with :math:`\chi=1` (standard) or :math:`\chi=N` (mean-field readout). A prediction is the mean output
    over networks and over draws from the second half of their runs. The density is that of
    arXiv:2512.04165; the step is derivations/two-layer-posterior (16), and takes :math:`4PNd` operations.

    Parameters
    ----------
    networks, width : int
        Number of networks, which run in parallel, and of their hidden units N.
    activation : {"erf", "tanh", "relu"}
        :math:`\sigma`.
    kappa : float
        Ridge :math:`\kappa>0`: the assumed variance of the label noise, in units of the labels'
        variance if ``standardise``, and the temperature of the dynamics.
    readout, readout_variance : {"standard", "mean-field"}, and float
        Scaling of the prior of the readout weights, and :math:`\sigma_a^2`.
    steps, draws : int
        Number of Langevin steps, and states of each network stored during the second half.
    step_size : float or None
        Step in variables of unit prior variance. None uses the inverse of the largest curvature, halved
        as long as halving changes the training error by more than 2 % of it.
    standardise : bool
        Whether features and labels are centred and divided by their standard deviation.
    random_state : int, Generator or None
        Seed of the starts and of the noise.

    Attributes
    ----------
    weights_, readouts_ : ndarray of shape (draws, networks, N, d) and (draws, networks, N)
        First layers w and readouts a, for standardised features and labels; tensors where X is one.
    step_size_, step_error_ : float
        Step size of the second half, and relative change of the training error when it is halved.
    training_error_ : float
        Mean squared error of single networks on the (standardised) samples.
    effective_draws_, effective_draws_error_ : float
        Effective number of independent draws in the second half, and its standard error.
    virial_, n_features_in_ : float and int
        Mean product of a weight and its gradient, which is 1 in the posterior, and number of features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 3))
    >>> y = np.tanh(X[:, 0]) - 0.5 * X[:, 1]
    >>> model = LangevinEnsemble(4, width=30, kappa=0.05, steps=400, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> mean, spread = model.predict(X[:5], return_std=True)
    """

    def __init__(
        self,
        networks: int = 8,
        width: int = 100,
        activation: Literal["erf", "tanh", "relu"] = "erf",
        kappa: float = 0.1,
        readout: Literal["standard", "mean-field"] = "standard",
        readout_variance: float = 1.0,
        steps: int = 2_000,
        step_size: float | None = None,
        draws: int = 20,
        standardise: bool = True,
        random_state: Any = None,
    ) -> None:
        self.networks = networks
        self.width = width
        self.activation = activation
        self.kappa = kappa
        self.readout = readout
        self.readout_variance = readout_variance
        self.steps = steps
        self.step_size = step_size
        self.draws = draws
        self.standardise = standardise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> LangevinEnsemble:
        """Draw networks from the posterior given samples; all start from the prior."""
        self._check()
        X, y = self._samples(X, y)
        refuse_large_numbers(X=X, y=y)
        xp = namespace(X)
        self._place(X, y)
        rows, labels = self._standardised(X), (y - self.label_mean_) / self.label_scale_
        if not bool(xp.all(xp.isfinite(rows))):
            raise InvalidData(
                "X overflows in single precision; allowed: numbers up to 1e38. Use standardise=True, or "
                "divide X by a constant."
            )
        stream = random_stream(seed_from(self.random_state), "langevin")
        d = int(rows.shape[1])
        # a_i ~ N(0, sigma_a² / (N chi))
        chi = readout_scale(self.readout, self.width)
        scale = sqrt(self.readout_variance / (self.width * chi))
        shape = (self.networks, self.width, d + 1)
        theta = as_on(stream.standard_normal(shape, dtype=np.float32), rows)
        kept: list[Array] = []
        every = max(1, min(10, self.steps // 2 // self.draws))
        gap, seen = max(1, self.steps // 2 // every // self.draws), [0]

        def keep(state: Array) -> None:
            seen[0] += 1
            if seen[0] % gap == 0:
                kept.append(state)

        run = run_langevin(
            Posterior(rows, labels, self.kappa, scale, self.activation),
            theta,
            stream,
            steps=self.steps,
            step=self.step_size,
            every=every,
            observe=keep,
        )
        states = xp.stack(kept)
        self.weights_, self.readouts_ = states[..., :d] / sqrt(d), states[..., d] * scale
        self.step_size_, self.step_error_, self.virial_ = run.step, run.step_error, run.virial
        self.training_error_ = float(run.errors.mean())
        if not np.isfinite(self.training_error_):
            raise NotConverged(
                f"the chains diverged: the training error is {self.training_error_}. Lower step_size, or "
                "set it to None to choose it automatically."
            )
        self.effective_draws_, self.effective_draws_error_ = effective_samples(run.errors)
        if not run.step_error <= 2 * STEP_TOLERANCE:
            warnings.warn(
                f"with a step of {run.step:.3g} the training error differs by "
                f"{100 * run.step_error:.0f} % from that at half the step; lower step_size, or set it to "
                "None to choose it automatically.",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif abs(run.virial - 1) > 0.25:
            warnings.warn(
                f"the mean product of weights and gradient is {run.virial:.2f}, and 1 in the posterior: "
                "the networks have not reached the posterior; raise steps.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check(self) -> None:
        for name, low in (("networks", 1), ("width", 1), ("steps", 2), ("draws", 1)):
            check_integer(name, getattr(self, name), low)
        for name in ("kappa", "readout_variance"):
            check_real(name, getattr(self, name), 1e-9)
        if self.step_size is not None:
            check_real("step_size", self.step_size, 1e-9)
        for name, allowed in (("activation", ACTIVATIONS), ("readout", READOUTS)):
            if getattr(self, name) not in allowed:
                raise InvalidParameter(unknown_choice(name, getattr(self, name), allowed))

    def _samples(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Validate samples and labels; tensors stay on their device."""
        if y is None:
            raise InvalidData(
                "LangevinEnsemble requires y to be passed, but the target y is None; allowed: one number "
                "per sample."
            )
        if not is_tensor(X):
            X, y = validate_data(
                self, X, y, dtype=[np.float64, np.float32], y_numeric=True, ensure_min_samples=2
            )
            return X, np.asarray(y, dtype=np.float64)
        X = validated_tensor(self, X, reset=True)
        labels = column_or_1d(to_numpy(y), dtype=np.float64)
        if len(labels) != X.shape[0] or not np.isfinite(labels).all():
            raise InvalidData(
                f"X has {X.shape[0]} samples and y {len(labels)} labels, of which "
                f"{np.count_nonzero(np.isfinite(labels))} are finite; allowed: one finite per sample."
            )
        return X, as_on(labels, X)

    def _place(self, X: Array, y: Array) -> None:
        """Set the means and scales of features and labels."""
        xp = namespace(X)
        self.mean_ = xp.mean(X, axis=0) if self.standardise else xp.zeros_like(X[0, :])
        deviation = xp.std(X, axis=0) if self.standardise else xp.ones_like(X[0, :])
        # A feature that is constant up to rounding becomes 0 after centring.
        varies = deviation > 1e-12 * (1e-300 + xp.abs(self.mean_))
        self.scale_ = xp.where(varies, deviation, xp.ones_like(deviation))
        self.label_mean_ = float(xp.mean(y)) if self.standardise else 0.0
        self.label_scale_ = (float(xp.std(y)) if self.standardise else 1.0) or 1.0

    def _standardised(self, X: Array) -> Array:
        rows = (X - self.mean_) / self.scale_
        return rows.astype(np.float32) if isinstance(rows, np.ndarray) else rows

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the posterior mean, shape (n,), and optionally the standard deviation of outputs."""
        check_is_fitted(self)
        if is_tensor(X):
            X = validated_tensor(self, X, reset=False)
        else:
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        rows = self._standardised(X)
        xp, d = namespace(rows), int(rows.shape[1])
        # all draws of all networks as one ensemble
        shape = (-1, self.width, d)
        states = xp.concat(
            [
                xp.reshape(self.weights_, shape) * sqrt(d),
                xp.reshape(self.readouts_, (-1, self.width, 1)),
            ],
            axis=2,
        )
        outputs = Posterior(rows, rows[:, 0], 1.0, 1.0, self.activation).outputs(states)
        mean = self.label_mean_ + self.label_scale_ * xp.mean(outputs, axis=1)
        finite_outputs(to_numpy(mean))
        if return_std:
            return mean, self.label_scale_ * xp.std(outputs, axis=1)
        return mean
