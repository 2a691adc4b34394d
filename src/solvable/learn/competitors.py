"""Methods that `solvable learn` compares: learned features, seven competitors and the constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from solvable.arrays import random_stream
from solvable.fitting.ridge import RidgeFit, kernel_ridge
from solvable.learn.design import Design, constant_model
from solvable.learn.trees import TreesClassifier, TreesRegressor
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.networks.base import (
    KERNEL_SAMPLES,
    Scaling,
    standardise_columns,
)
from solvable.networks.blocks import Block, network_blocks

LEARNED = "learned-features"  # key of the learned features, with which all competitors are compared


@dataclass(frozen=True)
class Method:
    """Method whose error is compared: the learned features, a competitor or the constant."""

    key: str  # name of the method in result.json
    title: str  # name of the method in tables and sentences
    meaning: str  # description of the method, a sentence without full stop
    make: Callable[[], Any]  # returns the estimator
    kernel_rows: int | None = None  # largest number of rows fitted; of more rows, a random subset
    narrow: bool = False  # True to fit in single precision, for speed
    fit: Callable[[np.ndarray, np.ndarray], Any] | None = None  # fitting function; None: make().fit


def methods(design: Design) -> tuple[Method, ...]:
    """Return the methods to compare: learned features first, the constant last."""
    # The penalty of each method is tuned on the training rows only.
    depth, lazy = design.depth, design.lazy_width
    width = "infinitely wide" if design.width == math.inf else f"{design.width} wide"
    gaussian = RbfRegressor if design.regression else RbfClassifier
    trees = TreesRegressor if design.regression else TreesClassifier
    multi_index = MultiIndexRegressor if design.regression else MultiIndexClassifier
    constant = "the mean" if design.regression else "the most frequent class"
    return (
        Method(
            LEARNED,
            "learned features",
            f"{depth} random layers, {width}; the directions that carry signal about the target are kept "
            "after each layer but the last, and the last layer also sees the columns",
            lambda: design.network(design.blocks),
            narrow=design.width != math.inf,
            fit=design.fitted_network,
        ),
        Method(
            "nngp",
            "infinitely wide network",
            f"the same {depth} layers without filters, as a kernel (NNGP); no features are learned",
            lambda: design.network(network_blocks(design.depth)),
            KERNEL_SAMPLES,
        ),
        Method(
            "lazy-features",
            f"random features, {lazy}",
            f"{depth} random layers of width {lazy}; no features are learned",
            lambda: design.network(network_blocks(design.depth, width=design.lazy_width)),
            narrow=True,
        ),
        Method(
            "rbf",
            "Gaussian kernel, tuned",
            "kernel ridge regression with a Gaussian (RBF) kernel of tuned width and penalty",
            lambda: gaussian(design.scaling, design.seed),
            KERNEL_SAMPLES,
        ),
        Method(
            "trees",
            "boosted trees, tuned",
            "gradient-boosted trees (scikit-learn) of tuned size and number",
            lambda: trees(design.seed),
        ),
        Method(
            "multi-index",
            "multi-index model",
            "ridge regression on functions of a few significant directions of the columns "
            "(MultiIndexRegressor)",
            lambda: multi_index(random_state=design.seed),
        ),
        Method(
            "ridge",
            "ridge on the columns",
            "a linear model with a tuned penalty",
            lambda: design.network([Block(None, None)]),
        ),
        Method(
            "constant",
            constant,
            f"always predicts {constant}",
            lambda: constant_model(design.regression),
        ),
    )


class _Rbf(BaseEstimator):
    """Kernel ridge regression with a Gaussian kernel whose width and penalty are tuned."""

    def __init__(self, scaling: Scaling = "columns", seed: int = 0) -> None:
        self.scaling = scaling
        self.seed = seed

    def _fit_outputs(self, X: np.ndarray, Y: np.ndarray) -> None:
        self._scale = standardise_columns(X, self.scaling)
        Z = self._scaled(X)
        rng = random_stream(self.seed, "rows to tune the Gaussian kernel")
        some = rng.permutation(len(Z))[:600]
        distances = _squared_distances(Z[some], Z[some])
        apart = distances[distances > 0]
        self._median = float(np.median(apart)) if apart.size else 1.0
        # The kernel is k(x, x') = exp(-|x - x'|² / (b m)) with median squared distance m, b = 1/8 ... 8.
        # The leave-one-out error is unbiased here, as no filter was chosen by the labels.
        fits: dict[float, RidgeFit] = {
            width: kernel_ridge(np.exp(-distances / (width * self._median)), Y[some])
            for width in (2.0**power for power in range(-3, 4))
        }
        self.bandwidth_ = min(fits, key=lambda width: fits[width].criterion)
        fit = fits[self.bandwidth_]
        self._samples = Z
        if len(some) < len(Z):
            fit = kernel_ridge(self._kernel(Z), Y)
        else:
            self._samples = Z[some]
        self.readout_ = fit

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        return X if self._scale is None else self._scale.apply(X)

    def _kernel(self, Z: np.ndarray) -> np.ndarray:
        distances = _squared_distances(Z, self._samples)
        return np.asarray(np.exp(-distances / (self.bandwidth_ * self._median)))

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        Z = self._scaled(X)
        parts = [
            self._kernel(Z[start : start + 2048]) @ self.readout_.coefficients
            for start in range(0, max(1, len(Z)), 2048)
        ]
        return np.concatenate(parts) + self.readout_.intercept


class RbfRegressor(RegressorMixin, _Rbf):
    """Kernel ridge regression with a Gaussian kernel, for a numeric target."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfRegressor:
        """Choose width and penalty, then fit all rows."""
        self._fit_outputs(X, np.asarray(y, dtype=np.float64)[:, None])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted numbers, shape (n,)."""
        return self._outputs(X)[:, 0]


class _Classes(ClassifierMixin, BaseEstimator):
    """Classifier that regresses each class's indicator and predicts the class with the largest output."""

    def _coded(self, y: np.ndarray) -> np.ndarray:
        """Store the classes; return one indicator column of 0 and 1 per class."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        return np.eye(len(self.classes_))[codes]

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n,) for two classes and (n, C) for C > 2 classes."""
        raise NotImplementedError

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted classes, shape (n,)."""
        outputs = self.decision_function(X)
        places = (outputs > 0).astype(int) if outputs.ndim == 1 else np.argmax(outputs, axis=1)
        return np.asarray(self.classes_[places])


class RbfClassifier(_Classes, _Rbf):
    """Classifier by kernel ridge regression with a Gaussian kernel on the indicators of the classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfClassifier:
        """Choose width and penalty, then fit all rows."""
        self._fit_outputs(X, self._coded(y))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n,) for two classes and (n, C) for C > 2 classes."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs


class MultiIndexClassifier(_Classes):
    """Classifier with one multi-index learner per class, or a single learner for two classes."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> MultiIndexClassifier:
        """Fit, for each class, directions and a ridge regression on functions of these directions."""
        signals = self._coded(y)
        self.models_ = [
            MultiIndexRegressor(random_state=self.random_state).fit(X, signal)
            for signal in signals[:, signals.shape[1] == 2 :].T
        ]
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n,) for two classes and (n, C) for C > 2 classes."""
        outputs = np.column_stack([model.predict(X) for model in self.models_])
        return outputs[:, 0] - 0.5 if outputs.shape[1] == 1 else outputs


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)
    return np.maximum(squares - 2 * (left @ right.T), 0.0)
