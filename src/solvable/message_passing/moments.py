r"""What a label tells of Gaussian latent coordinates: conditional moments, at every label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.spectra.label_law import LabelLaw


@dataclass(frozen=True)
class ConditionalMoments:
    """Law of the label y with the conditional moments of the latent coordinates z."""

    labels: np.ndarray  # y, ascending, shape (m,)
    probabilities: np.ndarray  # above 0, sum 1
    first: np.ndarray  # E[z_k | y], shape (m, p)
    second: np.ndarray  # E[z_k² - 1 | y], of mean 0
    cross: np.ndarray | None = None  # E[z z^T - I | y]; None where it is diagonal, or not asked for

    @property
    def n_directions(self) -> int:
        """Number p of latent coordinates."""
        return int(self.second.shape[1])

    @property
    def linear_information(self) -> np.ndarray:
        r""":math:`E[m_k(y)^2]`, shape (p,): 0 if a label tells no coordinate's sign."""
        return np.asarray(self.probabilities @ self.first**2)

    @property
    def quadratic_information(self) -> np.ndarray:
        r""":math:`E[G_{kk}(y)^2]`, shape (p,)."""
        return np.asarray(self.probabilities @ self.second**2)

    @property
    def weak_recovery_ratio(self) -> np.ndarray:
        """Samples per dimension from which second moments find each coordinate alone, shape (p,)."""
        # alpha_c = 1 / E[G_kk²] (3.2); what is zero by symmetry is so to rounding only.
        power = self.quadratic_information
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.where(power > 1e-18, power, 0.0))

    def law(self, weights: np.ndarray) -> LabelLaw:
        """Law of a map of the label, given its value at each label."""
        return LabelLaw(weights, self.probabilities, np.maximum(1 + self.second, 0.0))

    def at(self, y: np.ndarray) -> np.ndarray:
        """The diagonal of G at observed labels, shape (n, p)."""
        return np.stack([np.interp(y, self.labels, column) for column in self.second.T], axis=1)

    def first_at(self, y: np.ndarray) -> np.ndarray:
        """M at observed labels, shape (n, p)."""
        return np.stack([np.interp(y, self.labels, column) for column in self.first.T], axis=1)
