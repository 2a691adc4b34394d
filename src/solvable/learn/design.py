"""The network that learns features: its blocks, and the choice of its form for few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from solvable.fitting.shrinkage import oracle_shrinkage
from solvable.learn.folds import deal_folds
from solvable.learn.request import Request
from solvable.networks.base import DEFAULT_WIDTH, KERNEL_SAMPLES, Scaling, filtered_block
from solvable.networks.blocks import Block, Width
from solvable.networks.lofi import NeuralLoFiClassifier, NeuralLoFiRegressor

FEW_ROWS = 1000  # training rows up to which the form of the network is chosen by cross-validation

REMARKS = {
    "directions": "",
    "whitened": "columns whitened first, as held-out training rows are predicted better",
    "columns": "without directions, as held-out training rows are predicted better",
    "straight": "without directions and linear, as held-out training rows are predicted better",
    "constant": "constant only, as held-out training rows are predicted no better otherwise",
}
"""Forms of the network, each with the remark printed for it."""


@dataclass(frozen=True)
class Design:
    """Settings that all methods share."""

    regression: bool
    scaling: Scaling  # one scale for all pixels of images, one for each column of tables
    width: Width = math.inf  # of the random layers of the network
    request: Request = field(default_factory=Request)
    training_rows: int = FEW_ROWS  # of a fold; smaller fits of the learning curve use the same form

    @property
    def layers(self) -> int:
        """Filters of the network, at least 1."""
        return self.request.layers

    @property
    def seed(self) -> int:
        """Seed of random layers, nulls and solvers."""
        return self.request.seed

    @property
    def depth(self) -> int:
        """Random layers of the network: one below each filter, and one below the readout."""
        return self.layers + 1

    @property
    def blocks(self) -> list[Block]:
        """Blocks of the network that learns features."""
        filtered = [filtered_block(self.width) for _ in range(self.layers)]
        return [Block(None, self.width), *filtered]

    def fitted_network(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit the network that learns features; for few rows, choose its form first."""
        network = None
        few_directions = 10  # up to this many directions, more rows are allowed for the choice
        if self.training_rows > FEW_ROWS:
            network = self.network(self.blocks).fit(X, y)
            if (
                self.training_rows > KERNEL_SAMPLES
                or len(network.filters_[0].strengths) > few_directions
            ):
                return network
        best = self._form(X, y)
        if best == "directions" and network is not None:
            return network
        network = self._in_form(best).fit(X, y)
        network.remark_ = REMARKS[best]
        return network

    def _form(self, X: np.ndarray, y: np.ndarray) -> str:
        """Choose one of ``REMARKS`` by the error on held-out training rows."""
        # Held-out rows are needed because directions overfit the rows they were found in, most of all
        # where rows are few.
        parts = int(np.clip(2 * FEW_ROWS // len(y), 3, 5))
        classes = None if self.regression else np.unique(y, return_inverse=True)[1]
        folds = deal_folds(parts, np.arange(len(y)), classes, seed=self.seed)
        names = [name for name in REMARKS if name != "whitened" or self._is_correlated(X)]
        losses = {name: np.zeros(len(y)) for name in names}
        for part in range(parts):
            inside = folds != part
            if len(np.unique(y[inside])) < 2:
                return "directions"
            for name in names:
                model = self._to_compare(name).fit(X[inside], y[inside])
                off = model.predict(X[~inside]) - y[~inside]
                losses[name][~inside] = off**2 if self.regression else off != 0
        best = min(
            set(names) - {"whitened"}, key=lambda name: (losses[name].sum(), names.index(name))
        )
        if "whitened" not in names:
            return best
        # Without whitening, directions are easier to attribute to columns. On planted tables a margin
        # of half a standard error costs no accuracy, and one of a whole standard error loses directions.
        gain = losses[best] - losses["whitened"]
        return "whitened" if gain.mean() > 0.5 * gain.std() / len(y) ** 0.5 else best

    def _is_correlated(self, X: np.ndarray) -> bool:
        # Images are not whitened, as neighbouring pixels are correlated and share a unit; nor are wide
        # tables, as their sample correlations are mostly noise.
        if self.scaling != "columns" or 2 * X.shape[1] > len(X):
            return False
        spread = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        # Shrinkage of the correlation matrix above which whitening is not tried
        mostly_white = 0.5
        return oracle_shrinkage(Z.T @ Z / len(Z), len(Z)) < mostly_white

    def _to_compare(self, name: str) -> Any:
        """Return the network in one of its forms, without a filter where directions are left out."""
        if name in ("directions", "whitened"):
            return self._in_form(name)
        if name == "constant":
            return constant_model(self.regression)
        last = Block(None, self.width, bias=self.blocks[-1].bias)
        return self.network([last if name == "columns" else Block(None, None)])

    def _in_form(self, name: str) -> Any:
        """Return the network in one of its forms."""
        blocks = self.blocks
        if name == "whitened":
            return self.network(blocks).set_params(scaling="whitened")
        if name != "directions":
            blocks = [blocks[0], *(replace(block, skip=1.0) for block in blocks[1:])]
        if name == "straight":
            blocks[-1] = replace(blocks[-1], activation="identity", bias=0.0)
        network = self.network(blocks)
        # A penalty so large, in units of the power of the features, that only the constant is left
        all_penalty = 1e9
        return network.set_params(regularisation=all_penalty) if name == "constant" else network

    @property
    def lazy_width(self) -> int:
        """Width of the competitor with random features."""
        return DEFAULT_WIDTH if self.width == math.inf or self.width is None else int(self.width)

    def network(self, blocks: list[Block]) -> Any:
        """Return the estimator of a network of these blocks."""
        options: dict[str, Any] = {"scaling": self.scaling, "random_state": self.seed}
        # The filters compare centred labels with shuffled ones; tanh bounds the largest numbers.
        if self.regression:
            return NeuralLoFiRegressor(blocks, label_map="tanh", **options)
        return NeuralLoFiClassifier(blocks, centre_labels=True, **options)


def width_for(training_rows: int) -> Width:
    """Width of the random layers for a number of training rows: infinite while kernels fit."""
    return math.inf if training_rows <= KERNEL_SAMPLES else DEFAULT_WIDTH


def constant_model(regression: bool) -> Any:
    """Return an estimator that predicts the mean or the most frequent class."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyRegressor() if regression else DummyClassifier(strategy="most_frequent")
