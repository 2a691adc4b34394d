r"""Conditional moments of Gaussian latent coordinates given a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.spectra.label_law import LabelLaw


@dataclass(frozen=True)
class ConditionalMoments:
    """Distribution of the label y, with the conditional moments of the latent coordinates z given y."""

    labels: np.ndarray  # labels y in ascending order, shape (m,)
    probabilities: np.ndarray  # probabilities of the labels, positive and with sum 1
    first: np.ndarray  # conditional means E[z_k | y], shape (m, p)
    second: np.ndarray  # second moments E[z_k² - 1 | y], whose mean over labels is 0, shape (m, p)
    cross: np.ndarray | None = (
        None  # matrices E[z z^T - I | y]; None if all are diagonal or not computed
    )

    @property
    def n_directions(self) -> int:
        """Number p of latent coordinates."""
        return int(self.second.shape[1])

    @property
    def linear_information(self) -> np.ndarray:
        r"""First-order information :math:`E[m_k(y)^2]`, shape (p,), with :math:`m_k(y)=E[z_k|y]`."""
        return np.asarray(self.probabilities @ self.first**2)

    @property
    def quadratic_information(self) -> np.ndarray:
        r"""Second-order information :math:`E[G_{kk}(y)^2]`, with :math:`G_{kk}(y)=E[z_k^2-1|y]`."""
        return np.asarray(self.probabilities @ self.second**2)

    @property
    def weak_recovery_ratio(self) -> np.ndarray:
        """Samples per dimension above which second moments detect each coordinate, shape (p,)."""
        # alpha_c = 1 / E[G_kk²]   (multi-index 6); values that are 0 by symmetry have rounding errors
        power = self.quadratic_information
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.where(power > 1e-18, power, 0.0))

    def law(self, weights: np.ndarray) -> LabelLaw:
        """Distribution of a function of the label, given the function's value at each label."""
        return LabelLaw(weights, self.probabilities, np.maximum(1 + self.second, 0.0))

    def at(self, y: np.ndarray) -> np.ndarray:
        """Second moments E[z_k² - 1 | y] at observed labels, shape (n, p)."""
        return np.stack([np.interp(y, self.labels, column) for column in self.second.T], axis=1)

    def first_at(self, y: np.ndarray) -> np.ndarray:
        """First moments E[z_k | y] at observed labels, shape (n, p)."""
        return np.stack([np.interp(y, self.labels, column) for column in self.first.T], axis=1)
