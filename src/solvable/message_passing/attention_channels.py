r"""Channels of attention: row-wise softmax or hardmax of the indices of T tokens; sign of an index.

The indices :math:`h_{ab}`, :math:`a\le b`, have variance :math:`v_{ab}Q`; noise of variance
:math:`v_{ab}\Delta/2` is added before the activation. Given the cavity mean, the noisy indices have
variance :math:`v_{ab}(E+\Delta/2)`, and their messages equal those of the indices.
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
"""Information of the hardmax of T tokens: Chebyshev coefficients of (E + Delta / 2) sum v E[g²] / sqrt(s)
in 2 sqrt(s) - 1, with s = (E + Delta / 2) / (Q + Delta / 2); computed with the module `hardmax`."""


@dataclass(frozen=True)
class _Attention:
    """Base class of channels whose labels depend on the indices of T tokens."""

    tokens: int
    noise: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(f"noise is {self.noise}; allowed: a variance of at least 0.")
        if self.tokens < 2:
            raise InvalidParameter(
                f"tokens is {self.tokens}: the attention of one token to itself is always 1, so labels "
                "carry no information; allowed: at least 2 tokens."
            )

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance factors v of the T (T + 1) / 2 indices."""
        return index_variances(self.tokens)

    def matrix(self, indices: np.ndarray) -> np.ndarray:
        """Arrange indices (n, K) as symmetric matrices (n, T, T)."""
        first, second = index_pairs(self.tokens)
        matrices = np.empty((len(indices), self.tokens, self.tokens))
        matrices[:, first, second] = matrices[:, second, first] = indices
        return matrices

    def noisy(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Add noise to the indices."""
        spread = np.sqrt(self.variances * self.noise / 2)
        return indices + spread * rng.standard_normal(indices.shape)


@dataclass(frozen=True)
class SoftmaxAttention(_Attention):
    """Attention matrices, the softmax of each row of h + xi; they hide a common shift of the indices."""

    # ``tokens`` is T, at least 2. ``noise`` is Delta, the variance of xi on the diagonal; off the
    # diagonal the variance is Delta / 2.

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum of v E[g²]: k / (E + Delta / 2) (attention 1)."""
        seen = len(self.variances) - 1
        with np.errstate(divide="ignore"):
            return seen / (np.asarray(error, dtype=float) + self.noise / 2)

    def attention(self, indices: np.ndarray) -> np.ndarray:
        """Noiseless attention matrices (n, T, T) of indices (n, K)."""
        logits = self.matrix(indices)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels (n, T, T)."""
        return self.attention(self.noisy(indices, rng))

    def indices(self, labels: np.ndarray) -> np.ndarray:
        """Noisy indices (n, K) computed from attention matrices, shifted so that the first index is 0."""
        if not (labels > 0).all():
            raise InvalidData(
                "an attention weight is 0, negative or not a number; allowed: weights above 0."
            )
        # log y_ab - log y_aa = z_ab - z_aa: row 1 gives z_1b with z_11 = 0, row b gives z_b1 - z_bb
        logs = np.log(labels)
        against = logs - np.diagonal(logs, axis1=1, axis2=2)[:, :, None]
        diagonal = against[:, 0, :] - against[:, :, 0]
        first, second = index_pairs(self.tokens)
        return np.asarray(against[:, first, second] + diagonal[:, first])

    def messages(self, labels: np.ndarray) -> Messages:
        """Messages of the observed indices, with their component along the common shift projected out."""
        seen = self.indices(np.asarray(labels, dtype=np.float64))

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            # g = C^-1 (r - 1 (1^T C^-1 r) / (1^T C^-1 1)), C = V + v Delta / 2, r = seen - omega
            # (attention 2); this removes the common shift, orthogonally in coordinates in which the noise
            # is white
            inverse = np.linalg.inv(V + np.diag(self.variances * self.noise / 2))
            shift = inverse.sum(axis=0)
            inverse = inverse - np.outer(shift, shift) / shift.sum()
            slopes = -len(seen) * np.diag(inverse)
            return unbiased_message((seen - omega) @ inverse, slopes, self.variances)

        return given


@dataclass(frozen=True)
class HardmaxAttention(_Attention):
    """Labels argmax_b (h_ab + xi_ab): the token with the largest logit in each row, 2 or 3 tokens."""

    # Two tokens use a closed form. Three tokens use a fixed Sobol sequence over the largest indices, with
    # errors of 3 % in messages and 1 % in the information. `noise` has the meaning of SoftmaxAttention.

    second_moment: float  # second moment Q of the signal

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokens not in TABLES:
            raise InvalidParameter(
                f"tokens is {self.tokens}; allowed with hardmax: 2 to {max(TABLES)}, because labels of "
                "more tokens have too many outcomes. Use softmax for more tokens."
            )

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum of v E[g²], interpolated in E / Q (attention 4)."""
        unseen = np.asarray(error, dtype=float) + self.noise / 2
        share = np.clip(unseen / (self.second_moment + self.noise / 2), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            # The sum is sqrt(s) times a smooth function of sqrt(s), as only labels near a tie give
            # information.
            root = np.sqrt(share)
            return (
                root * np.polynomial.chebyshev.chebval(2 * root - 1, TABLES[self.tokens]) / unseen
            )

    def choices(self, indices: np.ndarray) -> np.ndarray:
        """Noiseless labels (n, T): the token with the largest logit in each row."""
        return np.asarray(self.matrix(indices).argmax(axis=2))

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels (n, T)."""
        return self.choices(self.noisy(indices, rng))

    def messages(self, labels: np.ndarray) -> Messages:
        """Messages computed from the posterior means of the indices given the labels."""
        orders = Order.groups(np.asarray(labels), self.tokens)

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            spread = np.diag(V) + self.variances * self.noise / 2
            messages_of = pair_messages if self.tokens == 2 else hardmax_messages
            return bayes_message(messages_of(orders, omega, spread))

        return given


@dataclass(frozen=True)
class SignOfIndex:
    """Labels y = sign(h + xi) of one noisy index."""

    noise: float  # variance Delta of the noise xi
    second_moment: float  # second moment Q of the signal; the index has variance 2 Q

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(f"noise is {self.noise}; allowed: a variance of at least 0.")

    @property
    def variances(self) -> np.ndarray:
        """Variance factor 2 of the index."""
        return np.array([2.0])

    def information(self, error: np.ndarray) -> np.ndarray:
        """Compute 2 E[g²]."""
        unseen = np.asarray(error, dtype=float) + self.noise / 2
        share = np.clip(unseen / (self.second_moment + self.noise / 2), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(_sign_information(share) / unseen)

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels (n, 1) with values -1 and 1."""
        z = indices + np.sqrt(self.noise) * rng.standard_normal(indices.shape)
        return np.where(z >= 0, 1.0, -1.0)

    def messages(self, labels: np.ndarray) -> Messages:
        """Messages y phi(x) / (Phi(y x) s) with x = omega / s and s² = V + Delta."""
        from scipy.special import log_ndtr

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            spread = np.sqrt(float(V[0, 0]) + self.noise)
            x = labels * omega / spread
            hazard = np.exp(-(x**2) / 2 - log_ndtr(x)) / np.sqrt(2 * np.pi)
            return bayes_message(labels * hazard / spread)

        return given


def _sign_information(share: np.ndarray) -> np.ndarray:
    """Mean of phi² / (Phi (1 - Phi)) at x ~ N(0, (1 - s) / s)."""
    from scipy.special import log_ndtr

    t = np.linspace(-10, 10, 401)
    # the integrand decays like a Gaussian of variance 1 - s in x, so x = t sqrt(1 - s)
    x = np.multiply.outer(np.sqrt(1 - share), t)
    hazards = np.exp(-(x**2) - log_ndtr(x) - log_ndtr(-x)) / (2 * np.pi)
    weights = np.exp(-np.multiply.outer(share, t**2) / 2) * (t[1] - t[0]) / np.sqrt(2 * np.pi)
    return np.asarray(np.sqrt(share) * (hazards * weights).sum(axis=-1))
