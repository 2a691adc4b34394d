r"""Networks of filters and lifts whose filter columns can come from the layers above.

A lift is the layer of random features after a filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.networks.filters import FilterSettings, fit_filter
from solvable.operators.activations import derivative, evaluate
from solvable.operators.signals import SampleSignals

Branch: TypeAlias = Literal["all", "random", "written"]
"""Part of a layer's weights: all, those with Gaussian lift rows, those with written rows."""


class Column(IntEnum):
    """Origin of a filter column; only WRITTEN columns have a deterministic lift row."""

    FIRST_MOMENT = 0
    FORWARD = 1
    READ = 2
    WRITTEN = 3


@dataclass(frozen=True)
class CoupledLayer:
    """One filter V and one lift W: z_out = sigma(h) / sqrt(p), h = W^T V^T z_in / c."""

    columns: np.ndarray  # filter V, shape (P, K)
    lift: np.ndarray  # rows of W, shape (K, p): Gaussian, or a unit vector for a written column
    kinds: np.ndarray  # origin (Column) of each column, shape (K,)
    born: np.ndarray  # pass that made each column, shape (K,); 0 for the forward fit
    scale: float  # c, which gives pre-activations variance 1 on the training rows
    activation: str
    # with damping, weights that replace V W / c: one matrix for Gaussian and one for written lift rows
    smoothed: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def width(self) -> int:
        """Number of neurons p."""
        return int(self.lift.shape[1])

    def weights(self, branch: Branch = "all") -> np.ndarray:
        """Weights from the layer's inputs to its pre-activations, of shape (P, p)."""
        if self.smoothed is not None:
            random, written = self.smoothed
            if branch == "all":
                return random + written
            return random if branch == "random" else written
        chosen = self._chosen(branch)
        return np.asarray(self.columns[:, chosen] @ (self.lift[chosen] / self.scale))

    def preactivation(self, inputs: np.ndarray) -> np.ndarray:
        """Pre-activations h of shape (n, p)."""
        if self.smoothed is not None:
            return np.asarray(inputs @ self.weights())
        return np.asarray((inputs @ self.columns) @ (self.lift / self.scale))

    def activate(self, fields: np.ndarray) -> np.ndarray:
        """Features of the pre-activations, of shape (n, p)."""
        return np.asarray(evaluate(self.activation, fields) / np.sqrt(self.width))

    def gate(self, fields: np.ndarray) -> np.ndarray:
        r""":math:`\sigma'(h)/\sqrt p`, of shape (n, p)."""
        return np.asarray(derivative(self.activation, fields) / np.sqrt(self.width))

    def pull_back(self, signal: np.ndarray, branch: Branch = "all") -> np.ndarray:
        """Propagate a gradient from the pre-activations (n, p) to the inputs (n, P)."""
        if self.smoothed is not None:
            return np.asarray(signal @ self.weights(branch).T)
        chosen = self._chosen(branch)
        return np.asarray((signal @ (self.lift[chosen].T / self.scale)) @ self.columns[:, chosen].T)

    def amplitude(self, inputs: np.ndarray) -> float:
        """Mean over forward coordinates of their root mean squares; 0 without forward coordinates."""
        # Leave out new columns: their amplitude is a multiple of this mean and would inflate it from
        # pass to pass.
        forward = self.kinds <= Column.FORWARD
        if not forward.any():
            return 0.0
        return float(np.mean(np.sqrt(np.mean((inputs @ self.columns[:, forward]) ** 2, axis=0))))

    def rescaled(self, inputs: np.ndarray) -> CoupledLayer:
        """Return the layer with c set so that pre-activations have variance 1 on these inputs."""
        power = np.mean((inputs @ self.columns) ** 2, axis=0)
        # A Gaussian row gives each neuron the power of its coordinate, a unit row on average 1/p of it.
        written = self.kinds == Column.WRITTEN
        total = float(power[~written].sum() + power[written].sum() / self.width)
        return replace(self, scale=float(np.sqrt(total)) or 1.0)

    def damped(self, previous: CoupledLayer, damping: float) -> CoupledLayer:
        """Mix the weights with those of the previous layer."""
        if damping >= 1:
            return self
        fresh = replace(self, smoothed=None)
        random, written = (
            (1 - damping) * previous.weights(branch) + damping * fresh.weights(branch)
            for branch in ("random", "written")
        )
        return replace(self, smoothed=(random, written))

    def _chosen(self, branch: Branch) -> np.ndarray:
        written = self.kinds == Column.WRITTEN
        if branch == "all":
            return np.ones_like(written)
        return written if branch == "written" else ~written


@dataclass(frozen=True)
class States:
    """Features and pre-activations of all layers, for the given rows."""

    features: tuple[np.ndarray, ...]  # inputs of the network, then the features of each layer
    fields: tuple[np.ndarray, ...]  # pre-activations of each layer (one entry fewer)


def propagate(layers: Sequence[CoupledLayer], inputs: np.ndarray) -> np.ndarray:
    """Compute the features of the last layer only."""
    for layer in layers:
        inputs = layer.activate(layer.preactivation(inputs))
    return inputs


def states_of(layers: Sequence[CoupledLayer], inputs: np.ndarray) -> States:
    """Compute features and pre-activations of every layer."""
    features, fields = [inputs], []
    for layer in layers:
        fields.append(layer.preactivation(features[-1]))
        features.append(layer.activate(fields[-1]))
    return States(tuple(features), tuple(fields))


def forward_layers(
    inputs: np.ndarray,
    labels: np.ndarray,
    *,
    reduce: Sequence[int],
    widths: Sequence[int],
    activation: str,
    first_moment: bool,
    seed: int,
) -> tuple[CoupledLayer, ...]:
    """Fit filters and draw lifts from the inputs upwards, without a backward signal."""
    layers = []
    features = inputs
    for level, (kept, width) in enumerate(zip(reduce, widths, strict=True)):
        # First moment (1/n) sum y z, then the eigenvectors of largest modulus of (1/n) sum y z z^T in
        # its complement (lofi 1)
        columns, report = fit_filter(
            SampleSignals(features, labels),
            FilterSettings(min(kept, features.shape[1]), first_moment),
            n_samples=len(features),
            label_power=float(np.mean(np.sum(labels**2, axis=1))),
            nulls=tuple,
            rng=random_stream(seed, "filter", level),
        )
        kinds = np.full(columns.shape[1], Column.FORWARD)
        kinds[: report.n_linear] = Column.FIRST_MOMENT
        layer = CoupledLayer(
            columns=columns,
            lift=random_stream(seed, "lift", level).standard_normal((columns.shape[1], width)),
            kinds=kinds,
            born=np.zeros_like(kinds),
            scale=1.0,
            activation=activation,
        ).rescaled(features)
        layers.append(layer)
        features = layer.activate(layer.preactivation(features))
    return tuple(layers)
