r"""Outputs of a model: how a label y depends on the index :math:`z=x\cdot w`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.arrays import check_real
from solvable.errors import InvalidParameter, quoted, unknown_choice
from solvable.hermite import gaussian_quadrature
from solvable.links import Link, make_link

NAMES = ("sign", "logistic", "probit", "door")
"""Outputs with two labels, whose names are not formulas."""


class Output:
    """Conditional law of a label given its index."""

    def __init__(
        self,
        function: str,
        *,
        noise: float = 0.0,
        flips: float = 0.0,
        slope: float | None = None,
        width: float | None = None,
    ) -> None:
        check_real("noise", noise, 0)
        check_real("flips", flips, 0)
        if not flips < 0.5:
            raise InvalidParameter(f"flips is {flips}; allowed: a probability from 0 to below 0.5.")
        if flips and function not in ("sign", "door"):
            raise InvalidParameter(
                f"flips is {flips} for {quoted(function)}; allowed: flips of the outputs sign and door."
            )
        self.function, self.noise, self.flips = function, float(noise), float(flips)
        self.slope = 1.0 if slope is None else float(slope)
        self.width = 1.0 if width is None else float(width)
        self.link: Link | None = None
        named = function in NAMES and not (function == "sign" and noise)
        if not named:
            name = {"linear": "identity"}.get(function, function)
            self.link = make_link(name, standardised=False)
        self.label_values: np.ndarray | None = np.array([1.0, -1.0]) if named else None

    def chances(self, z: np.ndarray) -> np.ndarray:
        """Probabilities of the labels +1 and -1, of shape (..., 2)."""
        from scipy.special import expit, ndtr

        z = np.asarray(z, dtype=np.float64)
        if self.function == "sign":
            # a tie counts as +1
            plus = np.where(z >= 0, 1.0, 0.0)
        elif self.function == "door":
            plus = np.where(np.abs(z) < self.width, 1.0, 0.0)
        elif self.function == "logistic":
            return np.stack([expit(self.slope * z), expit(-self.slope * z)], axis=-1)
        else:
            scale = np.sqrt(self.noise)
            return np.stack([ndtr(z / scale), ndtr(-z / scale)], axis=-1)
        plus = self.flips + (1 - 2 * self.flips) * plus
        return np.stack([plus, 1 - plus], axis=-1)

    def labels(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Label values (m, k) and their probabilities (m, k) given indices (m,).

        Gaussian noise is represented by quadrature nodes, so that means over labels are weighted sums.
        """
        z = np.asarray(z, dtype=np.float64)
        if self.link is None:
            assert self.label_values is not None
            return np.broadcast_to(self.label_values, (*z.shape, 2)), self.chances(z)
        clean = self.link(z)[..., None]
        if not self.noise:
            return clean, np.ones_like(clean)
        nodes, chance = gaussian_quadrature(24)
        return clean + np.sqrt(self.noise) * nodes, np.broadcast_to(chance, (*z.shape, nodes.size))

    def draw(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels of indices, with the shape of z."""
        z = np.asarray(z, dtype=np.float64)
        if self.link is None:
            return np.where(rng.random(z.shape) < self.chances(z)[..., 0], 1.0, -1.0)
        clean = self.link(z)
        return clean + np.sqrt(self.noise) * rng.standard_normal(z.shape)
