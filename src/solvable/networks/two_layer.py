"""Two-layer network with the gradient of its squared error, on NumPy arrays and torch tensors."""

from __future__ import annotations

from dataclasses import dataclass

from solvable.arrays import Array, check_real, namespace
from solvable.errors import InvalidParameter
from solvable.fitting.gradient_descent import Weights
from solvable.operators.activations import check_activation, derivative, evaluate

BLOCK_ROWS = 4_096
"""Rows whose hidden activations are in memory at a time."""


@dataclass(frozen=True)
class TwoLayerNetwork:
    """Network f(x) = eps sum_j a_j sigma(w_j . x) with weights (W, a), shapes (d, p) and (p,)."""

    activation: str
    output_scale: float = 1.0  # eps; 0 stands for the limit in which the output stays 0
    train_outputs: bool = False  # if False, the gradient of a is 0

    def __post_init__(self) -> None:
        check_activation(self.activation)
        check_real("output_scale", self.output_scale, 0)
        if self.activation == "step":
            raise InvalidParameter(
                "activation is 'step', whose gradient is 0; allowed: any other activation."
            )

    def outputs(self, weights: Weights, X: Array) -> Array:
        """Outputs f(x) of all rows, shape (n,)."""
        W, a = weights
        parts = [
            evaluate(self.activation, X[start : start + BLOCK_ROWS] @ W) @ a
            for start in range(0, len(X), BLOCK_ROWS)
        ]
        return self.output_scale * namespace(X).concat(parts)

    def loss(self, weights: Weights, X: Array, y: Array) -> float:
        """Half the mean squared error."""
        return float(namespace(X).mean((y - self.outputs(weights, X)) ** 2)) / 2

    def gradient(self, weights: Weights, X: Array, y: Array) -> Weights:
        """Gradient of the loss over eps, so that a learning rate keeps its meaning for small eps."""
        W, a = weights
        xp = namespace(X)
        sums = xp.zeros_like(W), xp.zeros_like(a)
        for start in range(0, len(X), BLOCK_ROWS):
            rows = X[start : start + BLOCK_ROWS]
            fields = rows @ W
            hidden = evaluate(self.activation, fields)
            residual = (y[start : start + BLOCK_ROWS] - self.output_scale * (hidden @ a)) / len(X)
            gate = derivative(self.activation, fields)
            gate *= residual[:, None]
            # dL/dw_j = -eps a_j (1/n) sum r sigma'(w_j . x) x,  dL/da_j = -eps (1/n) sum r sigma(w_j . x)
            sums = (
                sums[0] - (rows.T @ gate) * a,
                sums[1] - hidden.T @ residual if self.train_outputs else sums[1],
            )
        return sums
