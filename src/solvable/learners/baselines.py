"""What the layer-wise learner is measured against: kernels, random features, power iteration."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, MemoryLimitExceeded, NotConverged, unknown_choice
from solvable.operators import SymmetricOperator

RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Ridges between which ``ridge="auto"`` chooses."""

TUNING_ROWS = 2_000
"""Rows on which ridge and bandwidth are chosen."""

PREDICTION_ROWS = 2_000
"""Rows predicted at a time."""


class KernelRidgeBaseline(RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression of scikit-learn with standardised inputs and honest tuning.

    .. math:: k(x,x')=e^{-\|x-x'\|^2/(2\ell^2)}\quad\text{or}\quad k(x,x')=(1+x\cdot x'/d)^r .

    Parameters
    ----------
    kind : {"rbf", "polynomial"}
        The kernel. :math:`\ell^2` is the median squared distance between samples.
    degree : int
        :math:`r`, at least 1, for the polynomial kernel.
    ridge : float or "auto"
        Ridge added to the kernel matrix. "auto" takes the best of :data:`RIDGES` on a validation
        half of at most :data:`TUNING_ROWS` training rows, then fits all rows.
    max_samples : int
        Largest number of training rows: the kernel matrix takes their square times the item size.
    random_state : int
        For the choice of the tuning rows.

    Attributes
    ----------
    ridge_ : float
        Ridge that was used.
    model_ : sklearn.kernel_ridge.KernelRidge
        The fitted model.

    Notes
    -----
    Time :math:`n^3/3`, memory :math:`n^2`, in the floating type of X. Labels that a kernel cannot
    learn at this sample size act as noise of a fixed variance, so the best ridge hardly depends on
    the number of rows and can be chosen on few. Backed by ``tests/learners/test_baselines.py``.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> model = KernelRidgeBaseline(kind="polynomial", degree=2, ridge=1e-6).fit(X, X[:, 0] ** 2)
    >>> bool(abs(model.predict([[1.5]])[0] - 2.25) < 1e-3)
    True
    """

    def __init__(
        self,
        kind: Literal["rbf", "polynomial"] = "rbf",
        degree: int = 4,
        ridge: float | Literal["auto"] = "auto",
        max_samples: int = 30_000,
        random_state: int = 0,
    ) -> None:
        self.kind = kind
        self.degree = degree
        self.ridge = ridge
        self.max_samples = max_samples
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> KernelRidgeBaseline:
        """Choose bandwidth and ridge, then fit all rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples; float32 is kept.
        y : array of shape (n,)
            Labels.

        Returns
        -------
        KernelRidgeBaseline
            Itself.

        Raises
        ------
        InvalidParameter
            If a parameter is out of range.
        MemoryLimitExceeded
            If there are more than ``max_samples`` rows.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        if len(X) > self.max_samples:
            raise MemoryLimitExceeded(
                f"there are {len(X)} samples, whose kernel matrix takes "
                f"{len(X) ** 2 * X.itemsize / 1e9:.1f} GB; allowed: at most max_samples = "
                f"{self.max_samples}. Fit fewer rows, or raise max_samples if the memory is there."
            )
        self.centre_ = X.mean(axis=0)
        scale = X.std(axis=0)
        self.scale_ = np.where(scale > 0, scale, 1).astype(X.dtype)
        self.offset_ = float(np.mean(y))
        Z, residual = self._standardised(X), np.asarray(y - self.offset_, dtype=X.dtype)
        rng = random_stream(int(self.random_state), "kernel ridge")
        rows = rng.permutation(len(X))[:TUNING_ROWS]
        self.bandwidth_ = _median_distance(Z[rows])
        self.ridge_ = self._chosen_ridge(Z[rows], residual[rows])
        self.model_ = self._model(self.ridge_).fit(Z, residual)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels, in blocks of rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Float64.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        parts = [
            self.model_.predict(self._standardised(X[start : start + PREDICTION_ROWS]))
            for start in range(0, len(X), PREDICTION_ROWS)
        ]
        return np.concatenate(parts).astype(np.float64) + self.offset_

    def _check_parameters(self) -> None:
        if self.kind not in ("rbf", "polynomial"):
            raise InvalidParameter(unknown_choice("kind", self.kind, ["rbf", "polynomial"]))
        if self.degree < 1:
            raise InvalidParameter(f"degree is {self.degree}; allowed: an integer of at least 1.")
        if self.ridge != "auto" and not (
            isinstance(self.ridge, (int, float)) and 0 <= self.ridge < np.inf
        ):
            raise InvalidParameter(
                f"ridge is {self.ridge!r}; allowed: 'auto' or a finite number of at least 0."
            )

    def _standardised(self, X: np.ndarray) -> np.ndarray:
        return (X - self.centre_) / self.scale_

    def _chosen_ridge(self, Z: np.ndarray, residual: np.ndarray) -> float:
        if self.ridge != "auto":
            return float(self.ridge)
        half = len(Z) // 2
        if half < 2:
            return 1.0

        def error(ridge: float) -> float:
            fitted = self._model(ridge).fit(Z[:half], residual[:half])
            return float(np.mean((fitted.predict(Z[half:]) - residual[half:]) ** 2))

        return min(RIDGES, key=error)

    def _model(self, ridge: float) -> KernelRidge:
        if self.kind == "rbf":
            return KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * self.bandwidth_**2))
        return KernelRidge(
            alpha=ridge,
            kernel="polynomial",
            degree=self.degree,
            gamma=1 / self.n_features_in_,
            coef0=1,
        )


def _median_distance(Z: np.ndarray) -> float:
    """Square root of the median squared distance between rows; 1 if they coincide."""
    from scipy.spatial.distance import pdist

    distances = pdist(Z[:500]) if len(Z) > 1 else np.ones(1)
    return float(np.median(distances)) or 1.0


class RandomFeatureRidge(RegressorMixin, BaseEstimator):
    r"""Ridge regression of scikit-learn on random features :math:`\max(0, Wx+b)`.

    Parameters
    ----------
    width : int
        Number of features, at least 1.
    ridge : float
        Ridge of the linear model, at least 0.
    random_state : int
        Seed of W and b.

    Attributes
    ----------
    weights_, biases_ : ndarray
        W of shape (d, width) with entries of variance 1/d, b of shape (width,) standard normal.
    model_ : sklearn.linear_model.Ridge
        The fitted linear model.

    Notes
    -----
    Time :math:`n\,\text{width}^2`. Backed by ``tests/learners/test_baselines.py``.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> model = RandomFeatureRidge(width=50, ridge=1e-6).fit(X, np.abs(X[:, 0]))
    >>> model.score(X, np.abs(X[:, 0])) > 0.99
    True
    """

    def __init__(self, width: int = 1000, ridge: float = 1.0, random_state: int = 0) -> None:
        self.width = width
        self.ridge = ridge
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> RandomFeatureRidge:
        """Draw the features and fit the ridge.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples, roughly standardised.
        y : array of shape (n,)
            Labels.

        Returns
        -------
        RandomFeatureRidge
            Itself.

        Raises
        ------
        InvalidParameter
            If width or ridge is out of range.
        """
        if self.width < 1:
            raise InvalidParameter(f"width is {self.width}; allowed: an integer of at least 1.")
        if not 0 <= self.ridge < np.inf:
            raise InvalidParameter(
                f"ridge is {self.ridge}; allowed: a finite number of at least 0."
            )
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        rng = random_stream(int(self.random_state), "random features")
        columns = X.shape[1]
        self.weights_ = (rng.standard_normal((columns, self.width)) / np.sqrt(columns)).astype(
            X.dtype
        )
        self.biases_ = rng.standard_normal(self.width).astype(X.dtype)
        self.model_ = Ridge(alpha=self.ridge).fit(self._features(X), y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Predictions.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(self.model_.predict(self._features(X)))

    def _features(self, X: np.ndarray) -> np.ndarray:
        return np.maximum(X @ self.weights_ + self.biases_, 0)


def block_power_iteration(
    operator: SymmetricOperator,
    n_vectors: int,
    *,
    passes: int = 15,
    extra: int = 10,
    rng: np.random.Generator,
) -> np.ndarray:
    r"""Plain subspace iteration without a Rayleigh-Ritz step: a benchmark partner only.

    Each pass multiplies a block of ``n_vectors + extra`` vectors by the operator and makes it
    orthonormal by the Cholesky factor of its Gram matrix; the first ``n_vectors`` are returned.

    Parameters
    ----------
    operator : SymmetricOperator
        The moment operator.
    n_vectors : int
        Directions wanted.
    passes : int
        Passes over the data.
    extra : int
        Further vectors of the block.
    rng : numpy.random.Generator
        For the start.

    Returns
    -------
    ndarray of shape (D, n_vectors)
        Orthonormal, in general not converged: use :func:`solvable.operators.leading_eigenpairs`.

    Raises
    ------
    InvalidParameter
        If the block does not fit into the feature space or ``passes`` is below 1.
    NotConverged
        If the block lost its rank.

    Notes
    -----
    What the authors of arXiv:2605.14567 run; note its section 4.2 on why it is not converged.

    Examples
    --------
    >>> from solvable.operators import HermiteFeatures, MomentOperator
    >>> X = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> operator = MomentOperator(X, np.array([1.0, 0.0]), HermiteFeatures(1, 2))
    >>> found = block_power_iteration(operator, 1, extra=0, rng=np.random.default_rng(0))
    >>> np.abs(found).round(3).ravel()
    array([1., 0.])
    """
    block = n_vectors + extra
    if not 1 <= n_vectors <= block <= operator.shape[0] or passes < 1:
        raise InvalidParameter(
            f"n_vectors is {n_vectors}, extra is {extra} and passes is {passes}; allowed: at least "
            f"1 vector and pass, and at most {operator.shape[0]} vectors together."
        )
    Q = np.linalg.qr(rng.standard_normal((operator.shape[0], block)))[0]
    for _ in range(passes):
        Q = _orthonormalised(operator.matmat(Q))
    return Q[:, :n_vectors]


def _orthonormalised(block: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_triangular

    if not np.isfinite(block).all() or not block.any():
        raise NotConverged("the block of power iteration lost its rank.", {"norm": float("nan")})
    try:
        factor = np.linalg.cholesky(block.T @ block)
    except np.linalg.LinAlgError:
        return np.linalg.qr(block)[0]
    return solve_triangular(factor, block.T, lower=True).T
