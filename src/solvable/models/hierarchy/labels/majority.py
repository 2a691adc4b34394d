"""Errors of the cascade on majorities: ridge regression on products of known signs, at all inputs.

Products of majorities are correlated with each other and with products of inputs, so that they are no
eigenfunctions of the kernel. Their covariance is an exact sum over all inputs.
"""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.labels.target import LabelHierarchy

LARGEST_ENUMERATED = 14
"""Largest number of inputs of which all 2^d values are listed."""

LARGEST_KNOWN = 54
"""Largest number of known signs; the covariance of their products has 1,486 rows."""


class PopulationFit:
    """Mean-field ridge regression of labels on features of any covariance, at a number of samples."""

    # `values` and `vectors` are the eigenvalues and eigenvectors of the covariance C, and `moments`,
    # shape (features, labels), the mean products of features and labels.

    def __init__(
        self, values: np.ndarray, vectors: np.ndarray, moments: np.ndarray, samples: float,
        ridge: float,
    ) -> None:  # fmt: skip
        from scipy.optimize import brentq

        def excess(log_ridge: float) -> float:
            k = np.exp(log_ridge)
            return float(np.sum(values / (values + k))) + ridge / k - samples

        low, high = ridge / samples, (float(values.sum()) + ridge) / samples
        # n = tr C (C + k)^-1 + ridge / k and g = tr [C (C + k)^-1]² / n  (hierarchy 29)
        k = float(np.exp(brentq(excess, np.log(low) - 1e-6, np.log(high) + 1e-6, xtol=1e-10)))
        used = float(np.sum((values / (values + k)) ** 2)) / samples
        self.residual_ratio = ridge / (samples * k)
        # w = (C + k)^-1 E[phi y] and b = E (y - w.phi)²  (hierarchy 37)
        turned = vectors.T @ moments
        shrunk = turned / (values + k)[:, None]
        self.weights = vectors @ shrunk
        bias = 1 - 2 * np.sum(turned * shrunk, axis=0) + values @ shrunk**2
        self.variance = np.maximum(bias, 1e-30) * used / (1 - used)

    def wrong(
        self, features: np.ndarray, covariance: np.ndarray, labels: np.ndarray, seen: float
    ) -> np.ndarray:
        """Probability that the sign of the fit is wrong at each input, shape (inputs, labels)."""
        # `features` are means over the errors of the estimated signs. A share `seen` of the samples is
        # in the training set of the fit.
        from scipy.special import ndtr

        mean = features @ self.weights
        square = np.sum(self.weights * (covariance @ self.weights), axis=0)
        scatter = np.maximum(square - np.mean(mean**2, axis=0), 0.0)
        deviation = np.sqrt(self.variance + scatter)
        # e = (1 - p) Phi(-y f / s) + p Phi(-(1 - r + r y f) / (r s))  (hierarchy 37), (hierarchy 32)
        agreement, r = labels * mean, self.residual_ratio
        inside = (1 - r + r * agreement) / (r * deviation)
        return np.asarray((1 - seen) * ndtr(-agreement / deviation) + seen * ndtr(-inside))


class MajorityFeatures:
    """Known signs of a hierarchy of majorities at all inputs, as means over the errors of estimates."""

    def __init__(self, target: LabelHierarchy) -> None:
        d, most = target.dimension, target.dimension + target.depth * target.labels
        if d > LARGEST_ENUMERATED or most > LARGEST_KNOWN:
            raise InvalidParameter(
                f"dimension is {d} and there are {target.depth * target.labels} labels; allowed for "
                f"predictions with gate=majority, which list all inputs: dimension up to "
                f"{LARGEST_ENUMERATED}, and up to {LARGEST_KNOWN} inputs and labels together. "
                "Measurements have no such limit."
            )
        self.inputs = all_signs(d)
        self.labels = target.labels_of(self.inputs)
        self.training = self.fresh = self.inputs
        self._latest = (self.inputs, self.inputs)

    @property
    def functions(self) -> int:
        """Number of products of at most two known signs, the constant included."""
        known = self.training.shape[1]
        return known * (known + 1) // 2 + 1

    def errors(
        self, used: float, samples: int, ridge: float, *, in_sample: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Out-of-fold error and error on fresh inputs of each label, fitted to the known signs."""
        exact = self.inputs.shape[1]
        training = fresh = products(self.training)
        covariance = fresh_covariance = products_covariance(self.training, training, exact)
        if self.fresh is not self.training:
            fresh = products(self.fresh)
            fresh_covariance = products_covariance(self.fresh, fresh, exact)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 0.0)
        moments = training.T @ self.labels / len(self.inputs)
        partial, whole = (
            PopulationFit(values, vectors, moments, size, ridge) for size in (used, samples)
        )
        # Chance that one of the samples of a fit is the same input
        repeated = [-np.expm1(size * np.log1p(-1 / len(self.inputs))) for size in (used, samples)]
        seen = 1.0 if in_sample else repeated[0]
        held_out = partial.wrong(training, covariance, self.labels, seen)
        wrong = whole.wrong(fresh, fresh_covariance, self.labels, repeated[1])
        self._latest = (held_out, wrong)
        return held_out.mean(axis=0), wrong.mean(axis=0)

    def add(self, added: np.ndarray) -> None:
        """Make labels known, with the errors that were computed last."""
        # E[estimate | x] = y (1 - 2 e(x))  (hierarchy 37)
        held_out, wrong = (self.labels * (1 - 2 * e) for e in self._latest)
        self.training = np.concatenate([self.training, held_out[:, added]], axis=1)
        self.fresh = np.concatenate([self.fresh, wrong[:, added]], axis=1)


def all_signs(dimension: int) -> np.ndarray:
    """All vectors of signs, shape (2^d, d)."""
    bits = np.arange(2**dimension)[:, None] >> np.arange(dimension) & 1
    return np.asarray(1.0 - 2 * bits)


def products(signs: np.ndarray) -> np.ndarray:
    """Constant, signs and products of two signs, with the weights of the kernel (1 + u.u')² / 2."""
    p = signs.shape[1]
    first, second = np.triu_indices(p, 1)
    constant = np.full((1, len(signs)), np.sqrt((p + 1) / 2))
    # One row per sign: products of whole rows are ten times faster than those of columns.
    rows = np.ascontiguousarray(signs.T)
    return np.concatenate([constant, rows, rows[first] * rows[second]]).T


def products_covariance(signs: np.ndarray, features: np.ndarray, exact: int) -> np.ndarray:
    """Mean products of the features, for independent signs with these means at each input."""
    # The first `exact` signs have no errors. The square of a sign is 1, also where its mean is not.
    p = signs.shape[1]
    covariance = np.asarray(features.T @ features / len(features))
    ones = np.concatenate([np.ones((len(signs), 1)), signs], axis=1)
    pairs = ones.T @ ones / len(signs)
    np.fill_diagonal(pairs, 1.0)
    place = np.zeros((p, p), dtype=np.intp)
    first, second = np.triu_indices(p, 1)
    place[first, second] = place[second, first] = 1 + p + np.arange(first.size)
    for sign in range(exact, p):
        # u_a u_b times u_a u_c is u_b u_c; the partner of the sign alone is the constant
        others = np.delete(np.arange(p), sign)
        rows = np.append(1 + sign, place[sign, others])
        partners = np.append(0, 1 + others)
        covariance[np.ix_(rows, rows)] = pairs[np.ix_(partners, partners)]
    return covariance
