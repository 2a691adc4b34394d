"""The network that learns features: its blocks, and the form that suits few rows."""

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

FEW_ROWS = 1000  # training rows up to which it is measured whether directions help

REMARKS = {
    "directions": "",
    "whitened": "correlations of the columns taken away first, as training rows do better so",
    "columns": "directions left out, as training rows do better without them",
    "straight": "directions left out, and a straight last layer, as training rows do better so",
    "constant": "nothing but the constant, as training rows do no better",
}
"""Forms of the network, most of them last layers, and what is said of one that has them."""


@dataclass(frozen=True)
class Design:
    """What every method is fitted to."""

    regression: bool
    scaling: Scaling  # pixels all together, columns one by one
    width: Width = math.inf  # of the lifts of the network
    request: Request = field(default_factory=Request)
    training_rows: int = FEW_ROWS  # outside a fold; smaller parts are learned from as these are

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
        network = None
        few_directions = 10  # directions up to which it is measured of more rows as well
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
        """One of ``REMARKS``, by errors on rows that its directions were not found in."""
        # Directions look better on the rows that they were found in than on others, and of few rows much
        # better.
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
        # Columns as they are say what directions rest on. On planted tables a margin of half a standard
        # error costs nothing, one of a whole error loses directions.
        gain = losses[best] - losses["whitened"]
        return "whitened" if gain.mean() > 0.5 * gain.std() / len(y) ** 0.5 else best

    def _is_correlated(self, X: np.ndarray) -> bool:
        # Of an image neighbours are alike and of one unit, and of a wide table correlations are noise.
        if self.scaling != "columns" or 2 * X.shape[1] > len(X):
            return False
        spread = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        # Shrinkage of the correlations of columns above which they are not worth taking away
        mostly_white = 0.5
        return oracle_shrinkage(Z.T @ Z / len(Z), len(Z)) < mostly_white

    def _to_compare(self, name: str) -> Any:
        """The same as :meth:`_in_form`, without a filter whose directions are left out."""
        if name in ("directions", "whitened"):
            return self._in_form(name)
        if name == "constant":
            return constant_model(self.regression)
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
        # Penalty, in units of the power of the features, that leaves the constant
        all_penalty = 1e9
        return network.set_params(regularisation=all_penalty) if name == "constant" else network

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


def constant_model(regression: bool) -> Any:
    """The mean, or the most frequent class."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyRegressor() if regression else DummyClassifier(strategy="most_frequent")
