r"""Free entropy and mutual information of matrix estimation, by integration of errors (I-MMSE).

.. math::

    F(E)=\frac12\int_E^{E_0}\Big(\alpha I(e)-\frac{r(e)}c\Big)de,\qquad \mathrm{mmse}(1/r(e))=e,

relative to the prior mean, whose error is :math:`E_0`; the maximum is at the Bayes-optimal error
(sensing 24).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.frame.points import Metrics
from solvable.message_passing.matrix_channels import MatrixChannel
from solvable.message_passing.signal_laws import Signal

NODES = 480
"""Number of effective noises; with 480 nodes the matrix term is accurate to 1e-6."""


@dataclass(frozen=True)
class FreeEntropy:
    """Free entropy of one signal and channel along the error, ascending in the error."""

    error: np.ndarray
    matrix: np.ndarray  # int_E^E0 r de / (2 c)
    label: np.ndarray  # int_E^E0 I de / 2
    rest: np.ndarray  # int_0^E I de / 2, information of a further label; infinite without noise

    def values(self, sample_ratio: float) -> np.ndarray:
        """Free entropy per entry minus that of the prior mean, at each error."""
        return np.asarray(sample_ratio * self.label - self.matrix)

    def maxima(self, sample_ratio: float) -> int:
        """Number of local maxima; a maximum at an end counts."""
        rises = np.sign(np.diff(self.values(sample_ratio)))
        return int(np.sum(np.diff(np.concatenate([[1.0], rises, [-1.0]])) < 0))

    def mutual_information(self, sample_ratio: float, error: float) -> float | None:
        """Information of all labels about the matrix, per entry; None without noise."""
        if not np.isfinite(self.rest).all():
            return None
        at = np.log(max(error, float(self.error[0])))
        rest, matrix = (
            np.interp(at, np.log(self.error), part) for part in (self.rest, self.matrix)
        )
        return float(sample_ratio * rest + matrix)


def entropy_metrics(
    entropy: FreeEntropy, prior_error: float, sample_ratio: float, error: float
) -> Metrics:
    """Mutual information, and the free entropy at 60 overlaps q = 1 - E/E_0 with its maxima."""
    # more places near q = 1, where the free entropy bends
    shown = 1 - np.linspace(1, 0.1, 60) ** 2
    overlaps = 1 - entropy.error[::-1] / prior_error
    values = np.interp(shown, overlaps, entropy.values(sample_ratio)[::-1])
    return {
        "mutual_information": entropy.mutual_information(sample_ratio, error),
        "maxima": float(entropy.maxima(sample_ratio)),
        "overlap": shown.tolist(),
        "free_entropy": values.tolist(),
    }


def label_information(noise: float, variance: float) -> float:
    """Information of one more label with Gaussian noise about an index of the given variance."""
    return float(np.log1p(variance / noise)) / 2


def scored_information(noise: float, variance: float, noisy_error: float) -> float:
    """Information of one more label, from the score of fresh labels."""
    # The score is -log N(y; answer, s) with the estimate's own variance in s; its mean estimates the
    # entropy of a label given the data, from which that of the noise is subtracted.
    s = noise + variance
    return (float(np.log(s / noise)) + noisy_error / s - 1) / 2


def free_entropy(signal: Signal, channel: MatrixChannel) -> FreeEntropy:
    """Integrate the errors of matrix and labels from the prior mean."""
    # mypy does not know that signals are frozen
    error, matrix = _matrix_term(signal)  # type: ignore[arg-type]
    # int I de over a grid in log e that ends at the error of the prior mean
    e = signal.variance * np.geomspace(1e-9, 1, 4_000)
    density = channel.information(e) * e / 2
    below = _cumulative(density, float(np.log(e[1] / e[0])))
    # Towards e = 0 the integrand e I is a power of e: 1 with noise, 1/2 for signs without noise, and 0
    # for noiseless measurements, where the integral diverges.
    power = float(np.log(density[1] / density[0]) / np.log(e[1] / e[0]))
    known = np.interp(np.log(error), np.log(e), below)
    rest = known + density[0] / power if power > 0.01 else np.full(error.size, np.inf)
    return FreeEntropy(error, matrix, below[-1] - known, rest)


@lru_cache(maxsize=64)
def _matrix_term(signal: Signal) -> tuple[np.ndarray, np.ndarray]:
    """Errors, ascending, and int_E^E0 r de / (2 c) from the prior mean."""
    # int r de = int_0^r mmse(1 / s) ds - r E by parts
    r = np.geomspace(1e-4, 1e7, NODES) / signal.variance
    E = np.minimum(signal.mmse(1 / r), signal.variance)
    total = r[0] * signal.variance + _cumulative(r * E, float(np.log(r[1] / r[0])))
    matrix = (total - r * E) / (2 * signal.multiplicity)
    order = np.argsort(E, kind="stable")
    keep = order[np.append(True, np.diff(E[order]) > 0)]
    return E[keep], matrix[keep]


def _cumulative(values: np.ndarray, step: float) -> np.ndarray:
    """Integral from the first node to each node of an equidistant grid, of fourth order inside."""
    parts = (values[1:] + values[:-1]) / 2
    inner = -values[:-3] + 13 * (values[1:-2] + values[2:-1]) - values[3:]
    parts[1:-1] = inner / 24
    return np.concatenate([[0.0], np.cumsum(parts)]) * step
