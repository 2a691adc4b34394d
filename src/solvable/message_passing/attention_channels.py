r"""Channels whose labels are attention: row-wise softmax or hardmax of the indices of T tokens; signs.

Indices :math:`h_{ab}`, :math:`a\le b`, of variance :math:`v_{ab}Q` pass noise of variance
:math:`v_{ab}\Delta/2` before they are seen. Given the cavity, what is noisy has variance
:math:`v_{ab}(E+\Delta/2)`, and its messages are those of the indices themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.message_passing.hardmax import Order, hardmax_messages, pair_messages
from solvable.message_passing.matrix_channels import bayes_message, unbiased_message
from solvable.message_passing.outputs import Message, Messages
from solvable.operators.sensors import index_pairs, index_variances

# fmt: off
TABLES = {
    2: np.array([1.3571374222, -0.1011228531, -0.0166851986, 1.752682e-4, -9.44156e-5, 1.55319e-5,
                 5.1122e-6, 7.856e-7, 1.924e-7]),
    3: np.array([3.03526587, -0.16572675, -0.04732406, 0.00482355]),
}
# fmt: on
"""Chebyshev coefficients in 2 sqrt(s) - 1 of (E + Delta / 2) sum v E[g²] / sqrt(s) of a hardmax of T
tokens, s = (E + Delta / 2) / (Q + Delta / 2), by the functions at the end of the module `hardmax`."""


@dataclass(frozen=True)
class _Attention:
    """What channels of the indices of T tokens have in common."""

    tokens: int
    noise: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(f"noise is {self.noise}; allowed: a variance of at least 0.")
        if self.tokens < 2:
            raise InvalidParameter(
                f"tokens is {self.tokens}: the attention of one token to itself is 1 whatever the "
                "weights, so that labels carry no information. Allowed: at least 2 tokens."
            )

    @cached_property
    def variances(self) -> np.ndarray:
        """V of the T (T + 1) / 2 indices."""
        return index_variances(self.tokens)

    def matrix(self, indices: np.ndarray) -> np.ndarray:
        """Indices (n, K) as symmetric matrices (n, T, T)."""
        first, second = index_pairs(self.tokens)
        found = np.empty((len(indices), self.tokens, self.tokens))
        found[:, first, second] = found[:, second, first] = indices
        return found

    def noisy(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Indices with their noise."""
        spread = np.sqrt(self.variances * self.noise / 2)
        return indices + spread * rng.standard_normal(indices.shape)


@dataclass(frozen=True)
class SoftmaxAttention(_Attention):
    """Labels are the attention matrix softmax(h + xi), row by row: all indices but their common shift."""

    # ``tokens`` is T, at least 2; ``noise`` is Delta: xi has variance Delta on diagonal indices and
    # half of it off the diagonal.

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum of v E[g²]."""
        seen = len(self.variances) - 1
        with np.errstate(divide="ignore"):
            return seen / (np.asarray(error, dtype=float) + self.noise / 2)

    def attention(self, indices: np.ndarray) -> np.ndarray:
        """Attention matrices (n, T, T) of indices (n, K), without noise."""
        logits = self.matrix(indices)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels (n, T, T)."""
        return self.attention(self.noisy(indices, rng))

    def indices(self, labels: np.ndarray) -> np.ndarray:
        """Noisy indices (n, K) behind attention matrices, the first one put to 0."""
        if not (labels > 0).all():
            raise InvalidData(
                "an attention weight is 0 or no number; allowed: above 0, as softmax gives."
            )
        # log y_ab - log y_aa = z_ab - z_aa in each row: row 1 gives z_1b, and z_bb = z_1b - that of row b
        logs = np.log(labels)
        against = logs - np.diagonal(logs, axis1=1, axis2=2)[:, :, None]
        diagonal = against[:, 0, :] - against[:, :, 0]
        first, second = index_pairs(self.tokens)
        return np.asarray(against[:, first, second] + diagonal[:, first])

    def messages(self, labels: np.ndarray) -> Messages:
        """What is seen less its mean, projected on all but the common shift."""
        seen = self.indices(np.asarray(labels, dtype=np.float64))

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            # g = C^-1 (r - 1 (1^T C^-1 r) / (1^T C^-1 1)), C = V + v Delta / 2, r = seen - omega:
            # the shift is projected out in the metric in which the noise is white.
            inverse = np.linalg.inv(V + np.diag(self.variances * self.noise / 2))
            shift = inverse.sum(axis=0)
            inverse = inverse - np.outer(shift, shift) / shift.sum()
            slopes = -len(seen) * np.diag(inverse)
            return unbiased_message((seen - omega) @ inverse, slopes, self.variances)

        return given


@dataclass(frozen=True)
class HardmaxAttention(_Attention):
    """Labels give the token, of 2 or 3, that each attends to most: argmax_b (h_ab + xi_ab)."""

    # Two tokens in closed form; three by a fixed Sobol sequence over the largest indices alone,
    # messages to 3 % of their size and their information to 1 %. Noise as in SoftmaxAttention.

    second_moment: float  # Q of the signal

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokens not in TABLES:
            raise InvalidParameter(
                f"tokens is {self.tokens}; allowed with hardmax: 2 to {max(TABLES)}. Of more "
                "tokens labels have too many orders to integrate over each."
            )

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum of v E[g²], from its table along E / Q."""
        unseen = np.asarray(error, dtype=float) + self.noise / 2
        share = np.clip(unseen / (self.second_moment + self.noise / 2), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            # sqrt(s) times a smooth function of sqrt(s): only labels near a change tell something
            root = np.sqrt(share)
            return (
                root * np.polynomial.chebyshev.chebval(2 * root - 1, TABLES[self.tokens]) / unseen
            )

    def choices(self, indices: np.ndarray) -> np.ndarray:
        """The token that each token attends to most, (n, T), without noise."""
        return np.asarray(self.matrix(indices).argmax(axis=2))

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels (n, T)."""
        return self.choices(self.noisy(indices, rng))

    def messages(self, labels: np.ndarray) -> Messages:
        """Posterior means of indices in a given order."""
        orders = Order.groups(np.asarray(labels), self.tokens)

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            spread = np.diag(V) + self.variances * self.noise / 2
            found = pair_messages if self.tokens == 2 else hardmax_messages
            return bayes_message(found(orders, omega, spread))

        return given


@dataclass(frozen=True)
class SignOfIndex:
    """Labels are the sign of one noisy index, y = sign(h + xi)."""

    noise: float  # variance of xi
    second_moment: float  # Q of the signal; the index has variance 2 Q

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(f"noise is {self.noise}; allowed: a variance of at least 0.")

    @property
    def variances(self) -> np.ndarray:
        """2."""
        return np.array([2.0])

    def information(self, error: np.ndarray) -> np.ndarray:
        """2 E[g²]."""
        unseen = np.asarray(error, dtype=float) + self.noise / 2
        share = np.clip(unseen / (self.second_moment + self.noise / 2), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(_sign_information(share) / unseen)

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels (n, 1), -1 or 1."""
        z = indices + np.sqrt(self.noise) * rng.standard_normal(indices.shape)
        return np.where(z >= 0, 1.0, -1.0)

    def messages(self, labels: np.ndarray) -> Messages:
        """G = y phi(x) / Phi(y x) / s, x = omega / s, s² = V + Delta."""
        from scipy.special import log_ndtr

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            spread = np.sqrt(float(V[0, 0]) + self.noise)
            x = labels * omega / spread
            hazard = np.exp(-(x**2) / 2 - log_ndtr(x)) / np.sqrt(2 * np.pi)
            return bayes_message(labels * hazard / spread)

        return given


def _sign_information(share: np.ndarray) -> np.ndarray:
    """E of phi² / (Phi (1 - Phi)) at x of variance (1 - s) / s."""
    from scipy.special import log_ndtr

    t = np.linspace(-10, 10, 401)
    # The integrand falls off as a Gaussian of variance 1 - s: x = t sqrt(1 - s), density and all
    x = np.multiply.outer(np.sqrt(1 - share), t)
    hazards = np.exp(-(x**2) - log_ndtr(x) - log_ndtr(-x)) / (2 * np.pi)
    weights = np.exp(-np.multiply.outer(share, t**2) / 2) * (t[1] - t[0]) / np.sqrt(2 * np.pi)
    return np.asarray(np.sqrt(share) * (hazards * weights).sum(axis=-1))
