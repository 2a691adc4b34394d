"""A multilayer perceptron in NumPy: Adam with weight decay, the best step by validation is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged

BATCH_ROWS = 128
"""Rows of a step."""


class Network(BaseEstimator):
    """Base class: standardised labels or encoded classes, and predictions from outputs."""

    classes: bool

    def _prepared(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standardise the labels, or encode classes."""
        rows = np.asarray(X, dtype=np.float32)
        if self.classes:
            self.classes_ = np.unique(y)
            return rows, (y[:, None] == self.classes_).astype(np.float32)
        labels = np.asarray(y, dtype=np.float64)
        self._single = labels.ndim == 1
        labels = labels.reshape(len(rows), -1)
        self._mean, self._scale = labels.mean(0), np.where(labels.std(0) > 0, labels.std(0), 1.0)
        return rows, ((labels - self._mean) / self._scale).astype(np.float32)

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of the classes."""
        return _softmax(self._outputs(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted labels or classes."""
        outputs = self._outputs(X)
        if self.classes:
            return np.asarray(self.classes_[outputs.argmax(1)])
        labels = outputs * self._scale + self._mean
        return labels[:, 0] if self._single else labels


@dataclass(eq=False, repr=False)
class MultilayerPerceptron(Network):
    """ReLU network of a few layers, trained by Adam on the squared error or the cross-entropy.

    The step falls to 0 as a cosine, weight decay is decoupled, and the step of lowest loss on a share
    `validation` of the rows is kept. A small `initial_scale` makes the network learn features.
    """

    widths: tuple[int, ...] = (256, 256)
    _: KW_ONLY
    initial_scale: float = 1.0
    step_size: float = 1e-3
    weight_decay: float = 0.0
    steps: int = 4000
    validation: float = 0.15
    classes: bool = False
    seed: int = 0

    def fit(
        self, X: np.ndarray, y: np.ndarray, observe: Callable[[int], None] | None = None
    ) -> MultilayerPerceptron:
        """Train on rows and their labels or classes; `observe` is called after each step."""
        rng = random_stream(self.seed, "multilayer perceptron")
        rows, wanted = self._prepared(X, y)
        order = rng.permutation(len(rows))
        apart = order[: max(1, round(self.validation * len(rows)))]
        kept = order[len(apart) :]
        if not kept.size:
            raise InvalidParameter(
                f"{len(rows)} rows are too few to train on; allowed: at least 2."
            )
        sizes = [rows.shape[1], *self.widths, wanted.shape[1]]
        self.weights_ = _initial(sizes, self.initial_scale, rng)
        moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights_]
        best, self.best_step_ = [w.copy() for w in self.weights_], 0
        lowest = self._loss(rows[apart], wanted[apart])
        every = max(1, self.steps // 60)  # the validation loss is measured 60 times
        batches = _batches(kept, rng)
        for step in range(1, self.steps + 1):
            part = next(batches)
            gradients = self._gradients(rows[part], wanted[part])
            rate = self.step_size * 0.5 * (1 + np.cos(np.pi * step / self.steps))
            self._step(gradients, moments, rate, step)
            if observe is not None:
                observe(step)
            if step % every == 0 or step == self.steps:
                loss = self._loss(rows[apart], wanted[apart])
                if not np.isfinite(loss):
                    raise NotConverged(
                        f"training diverged at step {step}; lower step_size = {self.step_size:g}."
                    )
                if loss < lowest:
                    lowest, best = loss, [w.copy() for w in self.weights_]
                    self.best_step_ = step
        self.weights_ = best
        return self

    def _activities(self, rows: np.ndarray) -> list[np.ndarray]:
        """Activities of all layers, inputs first, outputs last."""
        layers = [rows]
        depth = len(self.weights_) // 2
        for level in range(depth):
            z = layers[-1] @ self.weights_[2 * level] + self.weights_[2 * level + 1]
            layers.append(np.maximum(z, 0) if level < depth - 1 else z)
        return layers

    def _slope(self, outputs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Derivative of the mean loss with respect to the outputs."""
        if self.classes:
            return (_softmax(outputs) - wanted) / len(outputs)
        return 2 * (outputs - wanted) / len(outputs)

    def _loss(self, rows: np.ndarray, wanted: np.ndarray) -> float:
        outputs = self._activities(rows)[-1]
        if self.classes:
            chosen = np.sum(np.log(np.maximum(_softmax(outputs), 1e-30)) * wanted, axis=1)
            return float(-chosen.mean())
        return float(np.mean((outputs - wanted) ** 2))

    def _gradients(self, rows: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
        layers = self._activities(rows)
        slope = self._slope(layers[-1], wanted)
        found: list[np.ndarray] = []
        for level in range(len(layers) - 2, -1, -1):
            found[:0] = [layers[level].T @ slope, slope.sum(0)]
            if level:
                slope = (slope @ self.weights_[2 * level].T) * (layers[level] > 0)
        return found

    def _step(
        self,
        gradients: list[np.ndarray],
        moments: list[tuple[np.ndarray, np.ndarray]],
        rate: float,
        step: int,
    ) -> None:
        """Take one step of Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""
        correction = np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        for w, g, (first, second) in zip(self.weights_, gradients, moments, strict=True):
            first += 0.1 * (g - first)
            second += 0.001 * (g * g - second)
            if w.ndim == 2 and self.weight_decay:
                w *= np.float32(1 - rate * self.weight_decay)
            w -= np.float32(rate * correction) * first / (np.sqrt(second) + 1e-8)

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        rows = np.asarray(X, dtype=np.float32)
        blocks = [self._activities(rows[i : i + 4096])[-1] for i in range(0, len(rows), 4096)]
        return np.concatenate(blocks).astype(np.float64)


def _initial(sizes: list[int], scale: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw initial weights of variance 2 a² / n_in, and biases of 0."""
    found: list[np.ndarray] = []
    for fan_in, fan_out in pairwise(sizes):
        drawn = rng.standard_normal((fan_in, fan_out)) * (scale * np.sqrt(2 / fan_in))
        found += [drawn.astype(np.float32), np.zeros(fan_out, dtype=np.float32)]
    return found


def _batches(rows: np.ndarray, rng: np.random.Generator) -> Any:
    """Return batches of rows, in a new order for each pass."""
    while True:
        order = rng.permutation(rows)
        for start in range(0, max(1, len(order) - BATCH_ROWS + 1), BATCH_ROWS):
            yield order[start : start + BATCH_ROWS]


def _softmax(outputs: np.ndarray) -> np.ndarray:
    shifted = np.exp(outputs - outputs.max(1, keepdims=True))
    return np.asarray(shifted / shifted.sum(1, keepdims=True))
