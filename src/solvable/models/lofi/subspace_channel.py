r"""Multi-index channel: the sign of a quadratic form in a few directions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidParameter
from solvable.spectra.label_law import LabelLaw
from solvable.teachers.first_layer import draw_directions, freeze

SADDLES = (1.0, -1.0, 0.75, -0.75)
r"""Eigenvalues of :math:`x_1^2-x_2^2+\tfrac32x_3x_4`."""


@dataclass(frozen=True)
class SubspaceChannel:
    r"""Sign of a quadratic form in k orthonormal directions of isotropic Gaussian inputs.

    .. math:: y=\mathrm{sign}\Big(\sum_{i\le k}a_i\,(\theta_i\cdot x)^2\Big),\qquad
        x\sim\mathcal N(0,I_d).
    """

    dimension: int
    """:math:`d`, above k."""
    coefficients: tuple[float, ...] = SADDLES
    r"""Coefficients :math:`a_i`, of both signs, none 0. Default: the eigenvalues of
    :math:`x_1^2-x_2^2+\tfrac32x_3x_4`."""
    seed: int = 0
    r"""Seed of the directions :math:`\theta_i`."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        a = np.asarray(self.coefficients, dtype=np.float64)
        if (
            a.ndim != 1
            or not np.isfinite(a).all()
            or not a.all()
            or not a.min(initial=0) < 0 < a.max()
        ):
            raise InvalidParameter(
                f"coefficients are {self.coefficients}; allowed: finite numbers, none 0, at least "
                "one of each sign, or the label would be constant."
            )
        if a.size >= self.dimension:
            raise InvalidParameter(
                f"there are {a.size} coefficients; allowed: fewer than the dimension, "
                f"{self.dimension}."
            )

    @cached_property
    def directions(self) -> np.ndarray:
        r"""Columns :math:`\theta_i`, shape (d, k)."""
        return freeze(
            draw_directions(
                self.dimension, len(self.coefficients), "orthonormal", self.seed, "subspace"
            )
        )

    def sample(self, n: int, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, d) and labels y of shape (n,), -1 or 1."""
        check_integer("n", n, 1)
        stream = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = stream.standard_normal((n, self.dimension))
        form = (X @ self.directions) ** 2 @ np.asarray(self.coefficients)
        return X, np.where(form > 0, 1.0, -1.0)

    def law(self) -> LabelLaw:
        r"""Label distribution and :math:`E[s_i^2\mid y]` of each direction, with error 1e-8 (lofi 23)."""
        a = np.asarray(self.coefficients, dtype=np.float64)
        mean = _sign_integral(a, None)
        strengths = np.array([_sign_integral(a, coefficient) for coefficient in a])
        chance = np.array([(1 - mean) / 2, (1 + mean) / 2])
        moments = np.stack([(1 - strengths) / 2, (1 + strengths) / 2])
        return LabelLaw(np.array([-1.0, 1.0]), chance, moments / chance[:, None])


def _sign_integral(a: np.ndarray, tilted: float | None) -> float:
    """:math:`E[sign(Q)]`, or :math:`E[sign(Q) s_i^2]` if the coefficient of direction i is given."""
    from scipy.integrate import quad

    def integrand(log_t: float) -> float:
        # E[sign(Q) s_i²] = 2/pi int_0^inf Im[phi(t) / (1 - 2i a_i t)] dt/t,
        # phi(t) = prod_j (1 - 2i a_j t)^(-1/2)   (lofi 23)
        t = np.exp(log_t)
        factor = 1.0 if tilted is None else 1 / (1 - 2j * tilted * t)
        # Take the root of each factor, because the root of the product would leave the principal branch.
        return float(np.imag(np.prod((1 - 2j * a * t) ** -0.5) * factor))

    scale = np.log(np.abs(a).max())
    integral, _ = quad(integrand, -40 - scale, 40 - scale, limit=400, epsabs=1e-10, epsrel=1e-10)
    return float(2 / np.pi * integral)
