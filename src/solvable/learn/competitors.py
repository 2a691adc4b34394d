"""The methods that are compared: learned features, and what learns none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from solvable.arrays import random_stream
from solvable.fitting.ridge import RidgeFit, kernel_ridge
from solvable.fitting.shrinkage import oracle_shrinkage
from solvable.learn.folds import deal_folds
from solvable.learn.request import Request
from solvable.learn.trees import TreesClassifier, TreesRegressor
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.networks.base import (
    DEFAULT_WIDTH,
    KERNEL_SAMPLES,
    Scaling,
    filtered_block,
    standardise_columns,
)
from solvable.networks.blocks import Block, Width, network_blocks
from solvable.networks.lofi import NeuralLoFiClassifier, NeuralLoFiRegressor

FEW_ROWS = 1000
"""Training rows up to which it is measured whether directions help."""

FEW_DIRECTIONS = 10
"""Directions up to which it is measured of more rows as well."""

ALL_PENALTY = 1e9
"""Penalty, in units of the power of the features, that leaves the constant."""

MOSTLY_WHITE = 0.5
"""Shrinkage of the correlations of columns above which they are not worth taking away."""

REMARKS = {
    "directions": "",
    "whitened": "correlations of the columns taken away first, where training rows do better so",
    "columns": "directions left out where training rows do better without them",
    "straight": "directions left out, and a straight last layer, where training rows do better so",
    "constant": "nothing but the constant where training rows do no better",
}
"""Forms of the network, most of them last layers, and what is said of one that has them."""

LEARNED = "learned-features"
"""Key of the method that the others are compared with."""


@dataclass(frozen=True)
class Design:
    """What every method is fitted to."""

    regression: bool
    scaling: Scaling  # pixels all together, columns one by one
    width: Width = math.inf  # of the lifts of the network
    request: Request = field(default_factory=Request)
    few_rows: bool = True  # whether it is measured whether directions help, however many they are

    @property
    def layers(self) -> int:
        """Filters of the network, at least 1."""
        return self.request.layers

    @property
    def seed(self) -> int:
        """Of lifts, nulls and solvers."""
        return self.request.seed

    @property
    def depth(self) -> int:
        """Lifts of the network: one below each filter, and one below the readout."""
        return self.layers + 1

    @property
    def blocks(self) -> list[Block]:
        """Blocks of the network that learns features."""
        filtered = [filtered_block(self.width) for _ in range(self.layers)]
        return [Block(None, self.width), *filtered]

    def fitted_network(self, X: np.ndarray, y: np.ndarray) -> Any:
        """The network that learns features, fitted; of few rows in the form that suits them."""
        # Smaller parts of a large table, for its learning curve, are learned from as the table is.
        network = None
        if not self.few_rows:
            network = self.network(self.blocks).fit(X, y)
            if len(y) > KERNEL_SAMPLES or len(network.filters_[0].strengths) > FEW_DIRECTIONS:
                return network
        best = self._form(X, y)
        if best == "directions" and network is not None:
            return network
        network = self._in_form(best).fit(X, y)
        network.remark_ = REMARKS[best]
        return network

    def _form(self, X: np.ndarray, y: np.ndarray) -> str:
        """One of ``REMARKS``, by errors on rows that its directions were not found in."""
        # Directions look better on the rows that they were found in than on others, and of few rows much
        # better.
        parts = int(np.clip(2 * FEW_ROWS // len(y), 3, 5))
        classes = None if self.regression else np.unique(y, return_inverse=True)[1]
        folds = deal_folds(parts, np.arange(len(y)), classes, seed=self.seed)
        names = [name for name in REMARKS if name != "whitened" or self._is_correlated(X)]
        losses = dict.fromkeys(names, 0.0)
        for part in range(parts):
            inside = folds != part
            if len(np.unique(y[inside])) < 2:
                return "directions"
            for name in losses:
                model = self._to_compare(name).fit(X[inside], y[inside])
                off = model.predict(X[~inside]) - y[~inside]
                losses[name] += float(np.sum(off**2 if self.regression else off != 0))
        return min(losses, key=lambda name: losses[name])

    def _is_correlated(self, X: np.ndarray) -> bool:
        # Of an image neighbours are alike and of one unit, and of a wide table correlations are noise.
        if self.scaling != "columns" or 2 * X.shape[1] > len(X):
            return False
        spread = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return oracle_shrinkage(Z.T @ Z / len(Z), len(Z)) < MOSTLY_WHITE

    def _to_compare(self, name: str) -> Any:
        """The same as :meth:`_in_form`, without a filter whose directions are left out."""
        if name in ("directions", "whitened"):
            return self._in_form(name)
        if name == "constant":
            return _constant(self.regression)
        last = Block(None, self.width, bias=self.blocks[-1].bias)
        return self.network([last if name == "columns" else Block(None, None)])

    def _in_form(self, name: str) -> Any:
        """The network in one of its forms."""
        blocks = self.blocks
        if name == "whitened":
            return self.network(blocks).set_params(scaling="whitened")
        if name != "directions":
            blocks = [blocks[0], *(replace(block, skip=1.0) for block in blocks[1:])]
        if name == "straight":
            blocks[-1] = replace(blocks[-1], activation="identity", bias=0.0)
        network = self.network(blocks)
        return network.set_params(regularisation=ALL_PENALTY) if name == "constant" else network

    @property
    def lazy_width(self) -> int:
        """Width of the random features that learn nothing."""
        return DEFAULT_WIDTH if self.width == math.inf or self.width is None else int(self.width)

    def network(self, blocks: list[Block]) -> Any:
        """Estimator of a network of these blocks."""
        options: dict[str, Any] = {"scaling": self.scaling, "random_state": self.seed}
        # Filters compare labels with shuffled ones, which have no mean, and large ones do not lead them.
        if self.regression:
            return NeuralLoFiRegressor(blocks, label_map="tanh", **options)
        return NeuralLoFiClassifier(blocks, centre_labels=True, **options)


def width_for(training_rows: int) -> Width:
    """Width of the lifts for so many training rows: infinite, as kernels, while those fit."""
    return math.inf if training_rows <= KERNEL_SAMPLES else DEFAULT_WIDTH


@dataclass(frozen=True)
class Method:
    """One of the methods compared."""

    key: str  # in result.json
    title: str  # for a reader
    meaning: str  # a sentence without full stop
    make: Callable[[], Any]  # its estimator
    kernel_rows: int | None = None  # beyond these it is fitted to a random part of the rows
    narrow: bool = False  # whether it is fitted in single precision, for time
    fit: Callable[[np.ndarray, np.ndarray], Any] | None = None  # where fitting takes a choice


def methods(design: Design) -> tuple[Method, ...]:
    """What is compared: learned features first, then its competitors, then the constant."""
    # All have their penalty tuned within the training rows alone.
    depth, lazy = design.depth, design.lazy_width
    width = "infinitely wide" if design.width == math.inf else f"{design.width} wide"
    gaussian = RbfRegressor if design.regression else RbfClassifier
    trees = TreesRegressor if design.regression else TreesClassifier
    multi_index = MultiIndexNumbers if design.regression else MultiIndexClasses
    constant = "the mean" if design.regression else "the most frequent class"
    return (
        Method(
            LEARNED,
            "learned features",
            f"{depth} layers, {width}, each but the last filtered by what the target tells; the last "
            "sees the columns too",
            lambda: design.network(design.blocks),
            narrow=design.width != math.inf,
            fit=design.fitted_network,
        ),
        Method(
            "nngp",
            "infinitely wide network",
            f"the same {depth} layers without filters: their kernel (NNGP), features not learned",
            lambda: design.network(network_blocks(design.depth)),
            KERNEL_SAMPLES,
        ),
        Method(
            "lazy-features",
            f"random features, {lazy}",
            f"{depth} random layers of width {lazy}, features not learned",
            lambda: design.network(network_blocks(design.depth, width=design.lazy_width)),
            narrow=True,
        ),
        Method(
            "rbf",
            "Gaussian kernel, tuned",
            "kernel ridge with a Gaussian (RBF) kernel, its width and penalty tuned",
            lambda: gaussian(design.scaling, design.seed),
            KERNEL_SAMPLES,
        ),
        Method(
            "trees",
            "boosted trees, tuned",
            "gradient-boosted trees (scikit-learn), their size and number tuned on held-out training "
            "rows",
            lambda: trees(design.seed),
        ),
        Method(
            "multi-index",
            "multi-index model",
            "a ridge on functions of the few directions of the columns that stand out "
            "(MultiIndexRegressor)",
            lambda: multi_index(design.seed),
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
            f"always {constant}: what knows nothing",
            lambda: _constant(design.regression),
        ),
    )


def _constant(regression: bool) -> Any:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyRegressor() if regression else DummyClassifier(strategy="most_frequent")


class _Rbf(BaseEstimator):
    """Kernel ridge with a Gaussian kernel whose width and penalty are tuned."""

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
        # k(x, x') = exp(-|x - x'|^2 / (b m)), m the median squared distance, b = 1/8 ... 8. The
        # criterion is leave-one-out: no filter has seen the labels here, so that it is honest.
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
    """Kernel ridge for numbers."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfRegressor:
        """Choose width and penalty, then fit all rows."""
        self._fit_outputs(X, np.asarray(y, dtype=np.float64)[:, None])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted numbers, shape (n,)."""
        return self._outputs(X)[:, 0]


class RbfClassifier(ClassifierMixin, _Rbf):
    """Kernel ridge on one column of 0 and 1 per class; the largest output wins."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfClassifier:
        """Choose width and penalty, then fit all rows."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._fit_outputs(X, np.eye(len(self.classes_))[codes])
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Outputs, shape (n,) for two classes, (n, C) for more."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted classes, shape (n,)."""
        return np.asarray(self.classes_[np.argmax(self._outputs(X), axis=1)])


class MultiIndexNumbers(RegressorMixin, BaseEstimator):
    """The multi-index learner with its defaults."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> MultiIndexNumbers:
        """Find directions, and fit a ridge on functions of them."""
        self.model_ = MultiIndexRegressor(random_state=self.seed).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted numbers, shape (n,)."""
        return np.asarray(self.model_.predict(X))


class MultiIndexClasses(ClassifierMixin, BaseEstimator):
    """One multi-index learner for each class; the largest output wins."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> MultiIndexClasses:
        """Fit indicators of the classes, of two of them one."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        signals = np.eye(len(self.classes_))[codes][:, len(self.classes_) == 2 :]
        self.models_ = [
            MultiIndexRegressor(random_state=self.seed).fit(X, signal) for signal in signals.T
        ]
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Outputs, shape (n,) for two classes, (n, C) for more."""
        outputs = np.column_stack([model.predict(X) for model in self.models_])
        return outputs[:, 0] - 0.5 if outputs.shape[1] == 1 else outputs

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted classes, shape (n,)."""
        outputs = self.decision_function(X)
        places = (outputs > 0).astype(int) if outputs.ndim == 1 else np.argmax(outputs, axis=1)
        return np.asarray(self.classes_[places])


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)
    return np.maximum(squares - 2 * (left @ right.T), 0.0)
