r"""Two layers of attention to two tokens: channel, sensors and denoiser of message passing.

The first layer maps tokens :math:`X` to :math:`(I+\sigma(h^{(1)}))X` with the row-wise softmax
:math:`\sigma`; the label is the softmax of the logits of the second layer plus noise. The label is a
function of two contrasts :math:`(h_{11}-h_{12},h_{22}-h_{12})` of each layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.message_passing.loop import Denoiser
from solvable.message_passing.matrix_channels import bayes_message
from solvable.message_passing.outputs import Message, Messages
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.operators.sensors import TokenSensors

CONTRASTS = np.array([[1.0, -1.0, 0.0], [0.0, -1.0, 1.0]])
"""Contrasts of the indices (h_11, h_12, h_22)."""

SHAPE = np.array([[3.0, 1.0], [1.0, 3.0]])
"""Covariance of the contrasts of a matrix S with Tr S² = d."""

ROOT = np.linalg.cholesky(SHAPE)


@dataclass(frozen=True)
class TwoLayerAttention:
    """Labels softmax(B h B^T + xi), with the indices h of the last layer and B = skip I + softmax(h1)."""

    noise: float  # Delta, the variance of xi on the diagonal; off the diagonal Delta / 2
    skip: float = 1.0  # weight of a token in its own sum after the first layer
    nodes: int = 9  # quadrature nodes in each contrast of the first layer

    def mixed(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Noiseless contrasts of the logits of the last layer from contrasts (..., 2) of both layers."""
        K = _mixing(first[..., 0], first[..., 1], self.skip)
        return np.stack(
            [K[i][0] * last[..., 0] + K[i][1] * last[..., 1] for i in range(2)], axis=-1
        )

    def sample(self, contrasts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw noisy contrasts (n, 2) of the logits; the softmax shows exactly these."""
        spread = np.sqrt(self.noise / 2) * ROOT
        noise = rng.standard_normal((len(contrasts), 2)) @ spread.T
        return self.mixed(contrasts[:, :2], contrasts[:, 2:]) + noise

    def attention(self, contrasts: np.ndarray) -> np.ndarray:
        """Attention of each token to itself in the last layer, without noise, shape (n, 2)."""
        return np.asarray(_logistic(self.mixed(contrasts[..., :2], contrasts[..., 2:])))

    def messages(self, labels: np.ndarray) -> Messages:
        """Messages of the contrasts of both layers, (n, 4)."""

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            errors = (float(V[0, 0] / SHAPE[0, 0]), float(V[2, 2] / SHAPE[0, 0]))
            parts = [
                self.posterior(labels[rows], omega[rows], errors)
                for rows in np.array_split(np.arange(len(labels)), 1 + len(labels) // 1_000)
            ]
            return bayes_message(np.concatenate(parts))

        return given

    def posterior(
        self, labels: np.ndarray, omega: np.ndarray, errors: tuple[float, float]
    ) -> np.ndarray:
        """Messages (E SHAPE)^-1 (E[contrasts | label] - omega) of each layer (attention 21)."""
        z, log_weights = _rule(self.nodes)
        # contrasts of the first layer are u = omega + sqrt(E) ROOT z; ROOT is lower triangular
        spread = np.sqrt(errors[0]) * ROOT
        u0 = omega[:, :1, None] + spread[0, 0] * z[:, None]
        u1 = omega[:, 1:2, None] + spread[1, 0] * z[:, None] + spread[1, 1] * z[None, :]
        K = _mixing(u0, u1, self.skip)
        # given u the label is Gaussian: mean K omega_2, covariance C = E_2 K SHAPE K^T + SHAPE Delta / 2
        r0, r1 = (labels[:, i, None, None] - _dot(K[i], omega[:, 2:, None, None]) for i in range(2))
        across = [(3 * row[0] + row[1], row[0] + 3 * row[1]) for row in K]
        C = [
            [
                errors[1] * (K[i][0] * across[j][0] + K[i][1] * across[j][1])
                + self.noise / 2 * SHAPE[i, j]
                for j in range(2)
            ]
            for i in range(2)
        ]
        det = C[0][0] * C[1][1] - C[0][1] ** 2
        e0, e1 = (C[1][1] * r0 - C[0][1] * r1) / det, (C[0][0] * r1 - C[0][1] * r0) / det
        log_p = log_weights - (np.log(det) + r0 * e0 + r1 * e1) / 2
        p = np.exp(log_p - log_p.max(axis=(1, 2), keepdims=True))
        p /= p.sum(axis=(1, 2), keepdims=True)
        means = np.stack([np.sum(p, axis=2) @ z, np.sum(p, axis=1) @ z], axis=1)
        first = means @ np.linalg.inv(ROOT) / np.sqrt(errors[0])
        last = [np.sum(p * (K[0][j] * e0 + K[1][j] * e1), axis=(1, 2)) for j in range(2)]
        return np.concatenate([first, np.stack(last, axis=1)], axis=1)


@dataclass(frozen=True)
class LayerSensors:
    """Contrasts of each of two layers, measured on the same tokens; the signal has shape (2, d, d)."""

    layer: TokenSensors

    @property
    def size(self) -> int:
        """Dimension d of a token."""
        return self.layer.size

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Contrasts of both layers, shape (n, 4)."""
        return np.concatenate([self.layer.forward(S) @ CONTRASTS.T for S in signal], axis=1)

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Transpose of `forward` in the units of b."""
        return np.stack([self.layer.adjoint(g @ CONTRASTS) for g in np.split(messages, 2, axis=1)])

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """Covariance of the contrasts; it is 0 between layers."""
        return np.kron(np.diag(np.diag(variance)), SHAPE)

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Precision of each layer; precisions between layers have mean 0 and are left out."""
        blocks = (slope[:2, :2], slope[2:, 2:])
        return np.diag([-2 * float(np.sum(SHAPE * block)) / self.size**2 for block in blocks])

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """Signal estimate multiplied by the precision of each layer."""
        return np.asarray(np.diag(precision)[:, None, None] * signal)


def layer_denoiser(signal: SymmetricSignal) -> Denoiser:
    """Denoise each layer alone; the weights are the signal minus its prior mean."""

    def denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = signal.prior_mean(b.shape[1])
        noises = [1 / min(max(float(a), 1e-6), 1e6) for a in np.diag(A)]
        estimates = [
            signal.denoise(t * row + mean, t) - mean for row, t in zip(b, noises, strict=True)
        ]
        return np.stack(estimates), np.diag(signal.mmse(np.array(noises)))

    return denoiser


def _mixing(
    u0: np.ndarray, u1: np.ndarray, skip: float
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Matrix K(u) from contrasts of the last layer's indices to those of its logits (attention 20)."""
    a, b = _logistic(u0), _logistic(u1)
    # B = skip I + softmax; the contrasts of B h B^T are (B11 - B21) ((B11, -B12), (-B21, B22)) w
    common = a + b + (skip - 1)
    return ((common * (skip + a), common * (a - 1)), (common * (b - 1), common * (skip + b)))


def _dot(row: tuple[np.ndarray, np.ndarray], vector: np.ndarray) -> np.ndarray:
    return np.asarray(row[0] * vector[:, 0] + row[1] * vector[:, 1])


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


@lru_cache(maxsize=8)
def _rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of the normal distribution, and logarithms of the product weights."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.log(weights / weights.sum())
    return z, weights[:, None] + weights[None, :]
