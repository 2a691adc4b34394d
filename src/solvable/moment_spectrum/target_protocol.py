"""Protocol of targets whose moments are computed; the label is a readout of a weighted feature sum."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from solvable.operators import HermiteFeatures


class MomentTarget(Protocol):
    """Target with hidden features of Hermite degree 1 to 3 and a readout of their weighted sum."""

    @property
    def dimension(self) -> int:
        """Dimension d of the inputs."""

    @property
    def degree(self) -> int:
        """Degree q of the features."""

    @property
    def features(self) -> int:
        """Number p of hidden features."""

    @property
    def inputs(self) -> str:
        """Kind of features: "hermite" or "gaussian"."""

    @property
    def readout(self) -> Any:
        """Name or function of the readout."""

    @property
    def first_layer(self) -> str:
        """Kind of directions: "orthonormal" or "random"."""

    @property
    def seed(self) -> int:
        """Seed of the first layer and of the draws."""

    @property
    def n_features_total(self) -> int:
        """Number D of Hermite features of degree q."""

    @property
    def feature_map(self) -> HermiteFeatures:
        """Hermite features of the inputs."""

    @property
    def weights(self) -> np.ndarray:
        """Weights of the features, shape (p,)."""

    @property
    def directions(self) -> np.ndarray:
        """Directions of the features, shape (D, p)."""

    @property
    def index_variance(self) -> float:
        """Variance of the weighted sum of features."""

    @property
    def label_noise(self) -> float:
        """Standard deviation of the noise on labels."""

    def observed_label(self, index: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the labels for given weighted sums, with their noise."""
