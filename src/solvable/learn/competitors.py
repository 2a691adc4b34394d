r"""The methods that are compared: learned features, and what learns none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from solvable.arrays import random_stream
from solvable.fitting.ridge import RidgeFit, kernel_ridge
from solvable.networks.base import DEFAULT_WIDTH, KERNEL_SAMPLES, Scaling, standardise_columns
from solvable.networks.blocks import Block, Width, network_blocks
from solvable.networks.lofi import NeuralLoFiClassifier, NeuralLoFiRegressor

LEARNED = "learned-features"
"""Key of the method that the others are compared with."""

BANDWIDTHS = tuple(2.0**power for power in range(-3, 4))
"""Squared widths of the Gaussian kernel tried, in units of the median squared distance."""

TUNING_ROWS = 600
"""Training rows on which the width of the Gaussian kernel is chosen, and tells its median."""


@dataclass(frozen=True)
class Design:
    """What every method is fitted to.

    Parameters
    ----------
    regression : bool
        Whether numbers are predicted.
    scaling : {"columns", "global"}
        How samples are standardised: pixels all together, columns one by one.
    layers : int
        Filters of the network, at least 1.
    width : int or infinity
        Of its lifts.
    seed : int
        Of lifts, nulls and solvers.
    """

    regression: bool
    scaling: Scaling
    layers: int = 1
    width: Width = math.inf
    seed: int = 0

    @property
    def depth(self) -> int:
        """Lifts of the network: one below each filter, and one below the readout."""
        return self.layers + 1

    @property
    def blocks(self) -> list[Block]:
        """Blocks of the network that learns features."""
        filtered = [Block("auto", self.width) for _ in range(self.layers)]
        return [Block(None, self.width), *filtered]

    @property
    def lazy_width(self) -> int:
        """Width of the random features that learn nothing."""
        return DEFAULT_WIDTH if self.width == math.inf or self.width is None else int(self.width)

    def network(self, blocks: list[Block]) -> Any:
        """Estimator of a network of these blocks."""
        kind = NeuralLoFiRegressor if self.regression else NeuralLoFiClassifier
        return kind(blocks, scaling=self.scaling, random_state=self.seed)


def width_for(training_rows: int) -> Width:
    """Width of the lifts for so many training rows.

    Parameters
    ----------
    training_rows : int
        Rows of one fold.

    Returns
    -------
    int or infinity
        Infinite, as kernels, up to :data:`solvable.networks.base.KERNEL_SAMPLES`.
    """
    return math.inf if training_rows <= KERNEL_SAMPLES else DEFAULT_WIDTH


@dataclass(frozen=True)
class Method:
    """One of the methods compared.

    Parameters
    ----------
    key : str
        Name in ``result.json``.
    title : str
        Name for a reader.
    meaning : str
        What it is, in a sentence without full stop.
    make : callable
        Estimator for a design.
    kernel_rows : int or None
        Training rows beyond which it is fitted to a random part of them; None for no limit.
    """

    key: str
    title: str
    meaning: str
    make: Callable[[Design], Any]
    kernel_rows: int | None = None


def methods(design: Design) -> tuple[Method, ...]:
    """What is compared: learned features first, then its competitors, then the constant.

    Parameters
    ----------
    design : Design
        Task and network.

    Returns
    -------
    tuple of Method
        All with their penalty tuned within the training rows alone.

    Examples
    --------
    >>> [one.key for one in methods(Design(False, "columns"))]
    ['learned-features', 'nngp', 'lazy-features', 'rbf', 'ridge', 'constant']
    """
    depth, lazy = design.depth, design.lazy_width
    width = "infinitely wide" if design.width == math.inf else f"{design.width} wide"
    constant = "the mean" if design.regression else "the most frequent class"
    return (
        Method(
            LEARNED,
            "learned features",
            f"{depth} layers, {width}, each but the last filtered by what the target tells",
            lambda one: one.network(one.blocks),
        ),
        Method(
            "nngp",
            "infinitely wide network",
            f"the same {depth} layers without filters: their kernel (NNGP), features not learned",
            lambda one: one.network(network_blocks(one.depth)),
            KERNEL_SAMPLES,
        ),
        Method(
            "lazy-features",
            f"random features, {lazy}",
            f"{depth} random layers of width {lazy}, features not learned",
            lambda one: one.network(network_blocks(one.depth, width=one.lazy_width)),
        ),
        Method(
            "rbf",
            "Gaussian kernel, tuned",
            "kernel ridge with a Gaussian (RBF) kernel, its width and penalty tuned",
            lambda one: (RbfRegressor if one.regression else RbfClassifier)(one.scaling, one.seed),
            KERNEL_SAMPLES,
        ),
        Method(
            "ridge",
            "ridge on the columns",
            "a linear model with a tuned penalty",
            lambda one: one.network([Block(None, None)]),
        ),
        Method("constant", constant, f"always {constant}: what knows nothing", _constant),
    )


def _constant(design: Design) -> Any:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if design.regression:
        return DummyRegressor()
    return DummyClassifier(strategy="most_frequent")


class _Rbf(BaseEstimator):
    r"""Kernel ridge with :math:`k(x, x') = e^{-\|x - x'\|^2 / (b\, m)}`.

    m is the median squared distance between samples, b one of :data:`BANDWIDTHS`, and the penalty is
    chosen by leave-one-out: no filter has seen the labels here, so that it is honest.
    """

    def __init__(self, scaling: Scaling = "columns", seed: int = 0) -> None:
        self.scaling = scaling
        self.seed = seed

    def _fit_outputs(self, X: np.ndarray, Y: np.ndarray) -> None:
        self._scale = standardise_columns(X, self.scaling)
        Z = self._scaled(X)
        rng = random_stream(self.seed, "rows to tune the Gaussian kernel")
        some = rng.permutation(len(Z))[:TUNING_ROWS]
        distances = _squared_distances(Z[some], Z[some])
        apart = distances[distances > 0]
        self._median = float(np.median(apart)) if apart.size else 1.0
        fits: dict[float, RidgeFit] = {
            width: kernel_ridge(np.exp(-distances / (width * self._median)), Y[some])
            for width in BANDWIDTHS
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
    """Kernel ridge for numbers.

    Parameters
    ----------
    scaling : {"columns", "global", "none"}
        Standardisation of the samples.
    seed : int
        Of the rows that the width is tuned on.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> RbfRegressor().fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfRegressor:
        """Choose width and penalty, then fit all rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Samples.
        y : ndarray of shape (n,)
            Numbers.

        Returns
        -------
        RbfRegressor
            Itself.
        """
        self._fit_outputs(X, np.asarray(y, dtype=np.float64)[:, None])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted numbers, shape (n,)."""
        return self._outputs(X)[:, 0]


class RbfClassifier(ClassifierMixin, _Rbf):
    """Kernel ridge on one column of 0 and 1 per class; the largest output wins.

    Parameters
    ----------
    scaling : {"columns", "global", "none"}
        Standardisation of the samples.
    seed : int
        Of the rows that the width is tuned on.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> float(RbfClassifier().fit(X, np.abs(X[:, 0]) > 1).score(X, np.abs(X[:, 0]) > 1)) > 0.9
    True
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfClassifier:
        """Choose width and penalty, then fit all rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Samples.
        y : ndarray of shape (n,)
            Classes.

        Returns
        -------
        RbfClassifier
            Itself.
        """
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._fit_outputs(X, np.eye(len(self.classes_))[codes])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted classes, shape (n,)."""
        return np.asarray(self.classes_[np.argmax(self._outputs(X), axis=1)])


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)
    return np.maximum(squares - 2 * (left @ right.T), 0.0)
