"""Networks on strings in mean-field scaling, trained by stochastic gradient descent in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import check_integer, check_real, random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.fitting.inputs import by_blocks, seed_from
from solvable.models.hierarchy.encodings import one_hot
from solvable.models.hierarchy.grammar.learner.strings import (
    ProbabilityClassifier,
    mean_loss,
    softmax,
)

BLOCK_ROWS = 2048
"""Strings that are passed through a network at a time."""


@dataclass(eq=False, repr=False)
class NetworkSettings(ProbabilityClassifier):
    """Parameters of a network on strings."""

    branching: int = 2
    width: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    batch_size: int = 64
    max_epochs: int = 200
    stop_loss: float = 0.01
    validation_fraction: float = 0.0
    vocabulary: int | None = None
    random_state: Any = None


class StringNetwork(NetworkSettings):
    """ReLU network on one-hot strings whose layers differ only in the shapes of their weights."""

    # The weights of a layer have shape (groups, fan-in, width). One group is a filter that all blocks
    # of `fan-in` consecutive inputs share; with several groups each block has weights of its own.

    weights_: list[np.ndarray]
    readout_: np.ndarray
    loss_curve_: list[float]
    validation_curve_: list[float]
    n_iter_: int

    def _shapes(self, leaves: int) -> list[tuple[int, int, int]]:
        """Return the shape of the weights of each hidden layer, the first layer first."""
        raise NotImplementedError

    def _fit_strings(self, symbols: np.ndarray, codes: np.ndarray) -> None:
        seed = seed_from(self.random_state)
        rng = random_stream(seed, "initial weights")

        def drawn(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape, dtype=np.float32)

        self.weights_ = [drawn(*shape) for shape in self._shapes(symbols.shape[1])]
        self.readout_ = drawn(self.width, len(self.classes_))
        self._train(symbols, codes, random_stream(seed, "order of the strings"))

    def _check_settings(self) -> None:
        for name in ("width", "batch_size", "max_epochs"):
            check_integer(name, getattr(self, name), 1)
        for name in ("learning_rate", "stop_loss", "momentum", "validation_fraction"):
            check_real(name, getattr(self, name), 0)
        for name in ("momentum", "validation_fraction"):
            if getattr(self, name) >= 1:
                raise InvalidParameter(f"{name} is {getattr(self, name)}; allowed: 0 to below 1.")

    def _train(self, symbols: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> None:
        """Descend until the training loss is small enough; keep the best weights of the epochs."""
        # Without validation strings the last weights are kept.
        rows = rng.permutation(len(symbols))
        apart, rows = np.split(rows, [int(self.validation_fraction * len(rows))])
        weights = [*self.weights_, self.readout_]
        speeds = [np.zeros_like(weight) for weight in weights]
        self.loss_curve_, self.validation_curve_ = [], []
        best = weights
        for epoch in range(self.max_epochs):
            # The step is h times the learning rate, and falls to zero as a cosine (hierarchy 27).
            cosine = (1 + np.cos(np.pi * epoch / self.max_epochs)) / 2
            step = np.float32(self.learning_rate * self.width * cosine)
            total = 0.0
            rng.shuffle(rows)
            for start in range(0, len(rows), self.batch_size):
                batch = rows[start : start + self.batch_size]
                loss, gradients = self._gradients(symbols[batch], codes[batch])
                total += loss * len(batch)
                for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
                    speed *= self.momentum
                    speed -= step * gradient
                    weight += speed
            self.loss_curve_.append(total / len(rows))
            self.n_iter_ = epoch + 1
            if not np.isfinite(total):
                raise NotConverged(
                    f"training diverged in epoch {epoch + 1}. Lower learning_rate = "
                    f"{self.learning_rate}.",
                    {"epoch": epoch + 1},
                )
            if len(apart):
                held = mean_loss(softmax(self._outputs(symbols[apart])), codes[apart])
                if held < min(self.validation_curve_, default=np.inf):
                    best = [weight.copy() for weight in weights]
                self.validation_curve_.append(held)
            if self.loss_curve_[-1] <= self.stop_loss:
                break
        *self.weights_, self.readout_ = best

    def _layers(self, symbols: np.ndarray) -> list[np.ndarray]:
        """Return the encoded strings and the activations of each layer, shapes (n, features)."""
        # Each input has mean 0 and variance 1 over uniform symbols.
        vectors = np.float32(self.vocabulary_**0.5) * one_hot(
            symbols, self.vocabulary_, blanks=self.blank is not None
        )
        layers = [vectors.reshape(len(symbols), -1)]
        for weights in self.weights_:
            groups, fan_in, _ = weights.shape
            # h = relu(x W / sqrt(fan-in)) for each block of inputs x (hierarchy 27)
            values = _blocks(layers[-1], groups, fan_in) @ weights
            values *= fan_in**-0.5
            np.maximum(values, 0, out=values)
            layers.append(values.swapaxes(0, 1).reshape(len(symbols), -1))
        return layers

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        # f = h^(last) a / width (hierarchy 27)
        return by_blocks(
            lambda part: self._layers(part)[-1] @ self.readout_ / self.width, X, BLOCK_ROWS
        )

    def _gradients(self, symbols: np.ndarray, codes: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """Compute the mean cross-entropy of a batch, and its gradient for each array of weights."""
        n = len(symbols)
        layers = self._layers(symbols)
        errors = softmax(layers[-1] @ self.readout_ / self.width)
        loss = mean_loss(errors, codes)
        errors[np.arange(n), codes] -= 1
        errors *= 1 / (n * self.width)
        gradients = [layers[-1].T @ errors]
        back = errors @ self.readout_.T
        for level in range(len(self.weights_) - 1, -1, -1):
            weights = self.weights_[level]
            groups, fan_in, width = weights.shape
            back *= layers[level + 1] > 0
            back *= fan_in**-0.5
            apart = _blocks(back, groups, width)
            gradients.insert(0, _blocks(layers[level], groups, fan_in).swapaxes(1, 2) @ apart)
            if level:
                back = (apart @ weights.swapaxes(1, 2)).swapaxes(0, 1).reshape(n, -1)
        return loss, gradients


def _blocks(values: np.ndarray, groups: int, width: int) -> np.ndarray:
    """Cut rows (n, features) into blocks: (1, all blocks, width), or (groups, n, width)."""
    if groups == 1:
        return values.reshape(1, -1, width)
    return values.reshape(-1, groups, width).swapaxes(0, 1)
