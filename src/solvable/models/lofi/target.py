r"""Gaussian channels: labels that depend on a few directions of Gaussian inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.hermite import gaussian_quadrature
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.subspace_channel import SubspaceChannel
from solvable.operators.labels import LabelMap, apply_label_map, map_of_law
from solvable.spectra.label_law import LabelLaw
from solvable.teachers.first_layer import freeze

# median and 90 % quantile of s² for a standard Gaussian s
MEDIAN, NINETIETH = 0.454936423119572, 2.705543454095404

Channel = Callable[[np.ndarray], np.ndarray]
"""Elementwise function from latent coordinates to labels."""


@dataclass(frozen=True)
class _Named:
    """Named channel: label function, positions of its jumps, and whether labels are two-valued."""

    function: Channel
    two_valued: bool
    breakpoints: tuple[float, ...]


def _sign(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, 1.0, -1.0)


CHANNELS = {
    "square-sign": _Named(lambda s: _sign(s**2 - MEDIAN), True, (-(MEDIAN**0.5), MEDIAN**0.5)),
    "tail-sign": _Named(
        lambda s: _sign(s**2 - NINETIETH), True, (-(NINETIETH**0.5), NINETIETH**0.5)
    ),
    "sign": _Named(_sign, True, (0.0,)),
    "square": _Named(lambda s: s**2 - 1, False, (0.0,)),
    "absolute": _Named(lambda s: np.abs(s), False, (0.0,)),
    "cosine": _Named(lambda s: np.cos(2 * s), False, (0.0,)),
}
"""Named channels: first two-valued labels (balanced, one in ten positive, odd), then real labels."""


def label_weights(y: np.ndarray, label_map: LabelMap | str) -> np.ndarray:
    r"""Weights :math:`T(y)` of the filter: raw labels, or a centred function of standardised labels."""
    if isinstance(label_map, str) and label_map == "raw":
        return np.asarray(y, dtype=np.float64)
    return apply_label_map(y, label_map)  # type: ignore[arg-type]


@dataclass(frozen=True)
class GaussianChannel:
    r"""Single-index label of Gaussian inputs, isotropic or with strong irrelevant directions.

    .. math:: x\sim\mathcal N(0,\Sigma),\qquad y=g(s)\ \text{noisy},\qquad s=x\cdot\theta,

    with :math:`\Sigma` diagonal: ``nuisance`` coordinates have variance ``nuisance_variance``, all
    other coordinates have variance 1, and the unit vector :math:`\theta` uses only these others.
    """

    dimension: int
    r"""Dimension :math:`d\ge2`."""
    channel: str | Channel = "square-sign"
    """A name in :data:`CHANNELS`, or the function g, elementwise."""
    noise: float = 0.0
    """Two-valued channels: probability in [0, 1/2] that a label is flipped. Others: standard deviation
    of Gaussian noise added to the label."""
    nuisance: int = 0
    """Number of irrelevant strong coordinates, 0 to d - 1."""
    nuisance_variance: float = 1.0
    """Variance of the strong coordinates, above 0."""
    seed: int = 0
    r"""Seed of the direction :math:`\theta`."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        check_integer("nuisance", self.nuisance, 0)
        if self.nuisance >= self.dimension:
            raise InvalidParameter(
                f"nuisance is {self.nuisance}; allowed: below the dimension, {self.dimension}, as the "
                "label needs one direction of its own."
            )
        if isinstance(self.channel, str) and self.channel not in CHANNELS:
            raise InvalidParameter(
                unknown_choice("channel", self.channel, CHANNELS) + " A callable is also allowed."
            )
        most = 0.5 if self._named.two_valued else np.inf
        if not (np.isfinite(self.noise) and 0 <= self.noise <= most):
            raise InvalidParameter(f"noise is {self.noise}; allowed: 0 to {most:g}, finite.")
        if not (np.isfinite(self.nuisance_variance) and self.nuisance_variance > 0):
            raise InvalidParameter(
                f"nuisance_variance is {self.nuisance_variance}; allowed: finite, above 0."
            )

    @cached_property
    def _named(self) -> _Named:
        if isinstance(self.channel, str):
            return CHANNELS[self.channel]
        return _Named(self.channel, False, (0.0,))

    @property
    def variances(self) -> np.ndarray:
        """Diagonal of the covariance of the inputs, shape (d,)."""
        variances = np.ones(self.dimension)
        variances[: self.nuisance] = self.nuisance_variance
        return variances

    @cached_property
    def direction(self) -> np.ndarray:
        r"""Direction :math:`\theta`, shape (d,)."""
        theta = random_stream(self.seed, "channel").standard_normal(self.dimension)
        theta[: self.nuisance] = 0
        return freeze(theta / np.linalg.norm(theta))

    @property
    def directions(self) -> np.ndarray:
        r"""Direction :math:`\theta` as a column, shape (d, 1)."""
        return self.direction[:, None]

    def clean_label(self, latent: np.ndarray) -> np.ndarray:
        """Noiseless labels of latent coordinates, as float64 with the same shape."""
        values = np.asarray(self._named.function(np.asarray(latent, dtype=np.float64)), np.float64)
        if values.shape != np.shape(latent) or not np.isfinite(values).all():
            raise InvalidParameter(
                f"the channel gave shape {values.shape} for latents of shape {np.shape(latent)}, or "
                "values that are not finite; it must act elementwise and be finite everywhere."
            )
        return values

    def sample(self, n: int, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, d) and labels y of shape (n,)."""
        check_integer("n", n, 1)
        stream = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = stream.standard_normal((n, self.dimension))
        X[:, : self.nuisance] *= np.sqrt(self.nuisance_variance)
        y = self.clean_label(X @ self.direction)
        if self.noise and self._named.two_valued:
            return X, np.where(stream.random(n) < self.noise, -y, y)
        return X, y + self.noise * stream.standard_normal(n)

    def law(self, label_map: LabelMap | str = "raw") -> LabelLaw:
        r"""Distribution of :math:`T(y)`, with :math:`E[s^2\mid T]`, computed by quadrature."""
        T, chance, s = self._joint(label_map)
        return _gathered(T, chance, s**2)

    def linear_strength(self, label_map: LabelMap | str = "raw") -> float:
        r""":math:`E[T(y)s]`, the strength of the first moment along the direction."""
        T, chance, s = self._joint(label_map)
        return float((chance * T) @ s)

    def _joint(self, label_map: LabelMap | str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Quadrature over the latent coordinate: filter weights T, probabilities, latent values."""
        # Panels end at the jumps of the channel: exact to rounding for named channels without noise.
        s, chance = gaussian_quadrature(96, self._named.breakpoints)
        y = self.clean_label(s)
        if self.noise and self._named.two_valued:
            y = np.concatenate([y, -y])
            chance = np.concatenate([chance * (1 - self.noise), chance * self.noise])
            s = np.tile(s, 2)
        elif self.noise:
            moved, share = gaussian_quadrature(24)
            y = (y[:, None] + self.noise * moved).ravel()
            chance = (chance[:, None] * share).ravel()
            s = np.repeat(s, moved.size)
        raw = label_map == "raw"
        # map_of_law raises for labels that do not vary, also in the raw case.
        T = map_of_law(y, chance, "identity" if raw else label_map)
        return (y if raw else T), chance, s


def _gathered(T: np.ndarray, chance: np.ndarray, squares: np.ndarray) -> LabelLaw:
    """Distribution of drawn filter weights: neighbouring weights are merged, except in the tails."""
    used = chance > 0
    T, chance, squares = T[used], chance[used], squares[used]
    scale = float(np.sqrt(chance @ T**2)) or 1.0
    # merge values that differ only by rounding errors
    _, group = np.unique(np.round(T / scale, 12), return_inverse=True)
    total = np.bincount(group, chance)
    return LabelLaw(
        np.bincount(group, chance * T) / total,
        total,
        (np.bincount(group, chance * squares) / total)[:, None],
    ).merged(4_000)


def make_target(parameters: NeuralLoFiParameters, seed: int) -> GaussianChannel | SubspaceChannel:
    """Make the target of a setting from a seed."""
    if parameters.target == "subspace":
        return SubspaceChannel(parameters.n_inputs, seed=seed)
    hidden = parameters.target == "hidden"
    return GaussianChannel(
        parameters.n_inputs,
        parameters.channel,
        parameters.noise,
        parameters.nuisance if hidden else 0,
        parameters.nuisance_variance if hidden else 1.0,
        seed,
    )


@lru_cache(maxsize=64)
def label_law(parameters: NeuralLoFiParameters) -> LabelLaw:
    """Distribution of a target's filter weights, which is the same for every seed."""
    target = make_target(parameters, 0)
    return target.law() if isinstance(target, SubspaceChannel) else target.law(parameters.label_map)


def draw_target(
    parameters: NeuralLoFiParameters, rng: np.random.Generator
) -> GaussianChannel | SubspaceChannel:
    """Draw the target of one replicate: the first draw of its generator."""
    return make_target(parameters, int(rng.integers(2**31)))


def draw_teacher(
    parameters: NeuralLoFiParameters, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Directions of the target of one replicate, to be stored with a study."""
    return {"directions": draw_target(parameters, rng).directions}
