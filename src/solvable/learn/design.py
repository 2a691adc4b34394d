"""Blocks of the network that learns features, and the choice of the network's form for few rows."""

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

FEW_ROWS = (
    1000  # largest number of training rows for which cross-validation chooses the network's form
)

REMARKS = {
    "directions": "",
    "whitened": "columns whitened first, as held-out training rows are predicted better",
    "columns": "without directions, as held-out training rows are predicted better",
    "straight": "without directions and linear, as held-out training rows are predicted better",
    "constant": "constant only, as held-out training rows are predicted no better otherwise",
}
"""Forms of the network, each with its printed remark; the usual form has an empty remark."""


@dataclass(frozen=True)
class Design:
    """Settings that all methods share."""

    regression: bool
    scaling: Scaling  # "one scale" for all pixels of images; tables: a scale per column
    width: Width = math.inf  # width of the network's random layers
    request: Request = field(default_factory=Request)
    training_rows: int = (
        FEW_ROWS  # training rows of a fold; smaller fits of the learning curve use the fold's form
    )

    @property
    def layers(self) -> int:
        """Number of filters in the network, at least 1."""
        return self.request.layers

    @property
    def seed(self) -> int:
        """Seed of the random layers, the null distributions and the solvers."""
        return self.request.seed

    @property
    def depth(self) -> int:
        """Number of random layers in the network: one below each filter, and one below the readout."""
        return self.layers + 1

    @property
    def blocks(self) -> list[Block]:
        """Return the blocks of the network that learns features."""
        filtered = [filtered_block(self.width) for _ in range(self.layers)]
        return [Block(None, self.width), *filtered]

    def fitted_network(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit the network that learns features; for few rows, choose its form first."""
        network = None
        few_directions = (
            10  # with at most this many directions, the form is also chosen for more training rows
        )
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
        """Choose a form of the network, a key of ``REMARKS``, by the error on held-out training rows."""
        # Held-out rows are needed because directions overfit the rows on which they were found, most of
        # all if these rows are few.
        parts = int(np.clip(2 * FEW_ROWS // len(y), 3, 5))
        classes = None if self.regression else np.unique(y, return_inverse=True)[1]
        folds = deal_folds(parts, np.arange(len(y)), classes, seed=self.seed)
        names = [name for name in REMARKS if name != "whitened" or self._is_correlated(X)]
        losses = {name: np.zeros(len(y)) for name in names}
        left = list(names)
        for part in range(parts):
            inside = folds != part
            if len(np.unique(y[inside])) < 2:
                return "directions"
            for name in left:
                model = self._to_compare(name).fit(X[inside], y[inside])
                off = model.predict(X[~inside]) - y[~inside]
                losses[name][~inside] = off**2 if self.regression else off != 0
            left = _with_chance(losses, left, folds <= part)
        plain = [name for name in left if name != "whitened"]
        best = min(plain, key=lambda name: (losses[name].sum(), names.index(name)))
        if "whitened" not in left:
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
        # largest shrinkage of the correlation matrix with which whitening is tried
        mostly_white = 0.5
        return oracle_shrinkage(Z.T @ Z / len(Z), len(Z)) < mostly_white

    def _to_compare(self, name: str) -> Any:
        """Return the network in the given form; forms without directions have no filter."""
        if name in ("directions", "whitened"):
            return self._in_form(name)
        if name == "constant":
            return constant_model(self.regression)
        last = Block(None, self.width, bias=self.blocks[-1].bias)
        return self.network([last if name == "columns" else Block(None, None)])

    def _in_form(self, name: str) -> Any:
        """Return the network in the given form."""
        blocks = self.blocks
        if name == "whitened":
            return self.network(blocks).set_params(scaling="whitened")
        if name != "directions":
            blocks = [blocks[0], *(replace(block, skip=1.0) for block in blocks[1:])]
        if name == "straight":
            blocks[-1] = replace(blocks[-1], activation="identity", bias=0.0)
        network = self.network(blocks)
        # ridge penalty, in units of the features' power, so large that only the constant is fitted
        all_penalty = 1e9
        return network.set_params(regularisation=all_penalty) if name == "constant" else network

    @property
    def lazy_width(self) -> int:
        """Width of the random layers of the competitor with random features."""
        return DEFAULT_WIDTH if self.width == math.inf or self.width is None else int(self.width)

    def network(self, blocks: list[Block]) -> Any:
        """Return the estimator whose network consists of the given blocks."""
        options: dict[str, Any] = {"scaling": self.scaling, "random_state": self.seed}
        # The filters compare centred labels with shuffled ones; tanh bounds the largest numbers.
        if self.regression:
            return NeuralLoFiRegressor(blocks, label_map="tanh", **options)
        return NeuralLoFiClassifier(blocks, centre_labels=True, **options)


def _with_chance(losses: dict[str, np.ndarray], names: list[str], rows: np.ndarray) -> list[str]:
    """Return the forms that may still have the smallest loss, after the losses on some rows."""
    # A form with a mean loss three standard errors above the best is fitted to no further part.
    plain = [name for name in names if name != "whitened"]
    best = losses[min(plain, key=lambda name: losses[name][rows].sum())][rows]
    kept = []
    for name in names:
        more = losses[name][rows] - best
        if more.mean() <= 3 * more.std() / len(more) ** 0.5:
            kept.append(name)
    return kept


def width_for(training_rows: int) -> Width:
    """Return the width of the random layers: infinite as long as the kernels of the rows fit."""
    return math.inf if training_rows <= KERNEL_SAMPLES else DEFAULT_WIDTH


def constant_model(regression: bool) -> Any:
    """Return an estimator that predicts the mean or the most frequent class."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyRegressor() if regression else DummyClassifier(strategy="most_frequent")
