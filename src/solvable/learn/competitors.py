"""Methods that `solvable learn` fits and compares: learned features, seven competitors, the constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from solvable.fitting.kernel_classifier import IndicatorClassifier, RbfClassifier, RbfRegressor
from solvable.learn.design import Design, constant_model
from solvable.learn.metric_kernel import MetricKernelClassifier, MetricKernelRegressor
from solvable.learn.trees import TreesClassifier, TreesRegressor
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.networks.base import KERNEL_SAMPLES, standardise_columns
from solvable.networks.blocks import Block, network_blocks

LEARNED = "learned-features"  # key of the learned features, with which all competitors are compared
CONSTANT = "constant"  # key of the constant prediction
BLEND = "blend"  # key of the weighted mean of a few methods, which needs no fits of its own

SIMPLEST = (
    CONSTANT,
    "ridge",
    "multi-index",
    "rbf",
    "nngp",
    "lazy-features",
    "metric-kernel",
    LEARNED,
    "trees",
    BLEND,
)
"""Keys of the methods, the simplest first: of two methods with equal scores, the first is used."""


@dataclass(frozen=True)
class Method:
    """Method whose error is compared: the learned features, a competitor or the constant."""

    key: str  # name of the method in result.json
    title: str  # name of the method in tables and lists
    phrase: str  # name of the method in sentences, with an article unless it is a plural
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
    metric = MetricKernelRegressor if design.regression else MetricKernelClassifier
    trees = TreesRegressor if design.regression else TreesClassifier
    multi_index = MultiIndexRegressor if design.regression else MultiIndexClassifier
    constant = "the mean" if design.regression else "the most frequent class"
    return (
        Method(
            LEARNED,
            "learned features",
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
            "an infinitely wide network",
            f"the same {depth} layers without filters, as a kernel (NNGP); no features are learned",
            lambda: design.network(network_blocks(design.depth)),
            KERNEL_SAMPLES,
        ),
        Method(
            "lazy-features",
            f"random features, {lazy}",
            "random features",
            f"{depth} random layers of width {lazy}; no features are learned",
            lambda: design.network(network_blocks(design.depth, width=design.lazy_width)),
            narrow=True,
        ),
        Method(
            "rbf",
            "Gaussian kernel, tuned",
            "a Gaussian kernel",
            "kernel ridge regression with a Gaussian (RBF) kernel of tuned width and penalty",
            lambda: gaussian(partial(standardise_columns, scaling=design.scaling), design.seed),
            KERNEL_SAMPLES,
        ),
        Method(
            "metric-kernel",
            "kernel with column weights",
            "a kernel with column weights",
            "mean of two kernel ridge regressions, without and with column weights learned from the "
            "gradient of the fit (recursive feature machine)",
            lambda: metric(partial(standardise_columns, scaling=design.scaling), design.seed),
            KERNEL_SAMPLES,
        ),
        Method(
            "trees",
            "boosted trees, tuned",
            "boosted trees",
            "gradient-boosted trees (scikit-learn) of tuned size and number",
            lambda: trees(design.seed),
        ),
        Method(
            "multi-index",
            "multi-index model",
            "a multi-index model",
            "ridge regression on functions of a few significant directions of the columns "
            "(MultiIndexRegressor)",
            lambda: multi_index(random_state=design.seed),
        ),
        Method(
            "ridge",
            "ridge on the columns",
            "a linear model",
            "a linear model with a tuned penalty",
            lambda: design.network([Block(None, None)]),
        ),
        Method(
            CONSTANT,
            constant,
            constant,
            f"always predicts {constant}",
            lambda: constant_model(design.regression),
        ),
    )


def simplest_of_best(scores: Mapping[str, float], *, largest: bool = False) -> str:
    """Return the method with the smallest (or largest) score; of equal ones, the simplest."""
    best = max(scores.values()) if largest else min(scores.values())
    order = [key for key in SIMPLEST if key in scores]
    order += [key for key in scores if key not in order]
    # Equal numbers of wrong rows may differ by rounding.
    return next(key for key in order if math.isclose(scores[key], best, rel_tol=1e-12))


class MultiIndexClassifier(IndicatorClassifier):
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
