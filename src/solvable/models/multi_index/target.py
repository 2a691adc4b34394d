"""Multi-index targets: labels that depend on a few directions of Gaussian inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from solvable.arrays import GeneratedSource, check_integer, random_stream
from solvable.errors import InvalidParameter
from solvable.inference.priors import Gaussian, Prior
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.teachers.base import CHUNK_ROWS, check_dtype, draw_normals


def power_law_amplitudes(features: int, decay: float) -> np.ndarray:
    """Amplitudes k^-gamma; for gamma <= 1/2 they are scaled so that their squares sum to 1."""
    amplitudes = np.arange(1, features + 1) ** -float(decay)
    # For gamma <= 1/2 the sum of their squares would grow with the number of features.
    return amplitudes if decay > 0.5 else amplitudes / np.linalg.norm(amplitudes)


def power_law_channel(
    link: str, *, features: int, decay: float, noise: float, standardised: bool = True
) -> AdditiveChannel:
    """Channel of the hierarchical model: one link for all features, amplitudes k^-gamma and noise."""
    # y = sum_k k^-gamma sigma(<w_k, x>) + sqrt(Delta) xi   (multi-index 1; 2603.17896, Equation 6)
    links = (make_link(link, standardised=standardised),) * features
    amplitudes = tuple(float(a) for a in power_law_amplitudes(features, decay))
    return AdditiveChannel(links, amplitudes, noise)


@dataclass(frozen=True)
class MultiIndexTarget:
    r"""Target with an additive channel and random orthonormal directions.

    .. math:: y=\sum_{k=1}^pa_k\,\sigma_k(\langle w_k,x\rangle)+\sqrt\Delta\,\xi,\qquad
        x\sim\mathcal N(0,I_d).

    Model of arXiv:2602.05846 and arXiv:2603.17896; equation 1 of ``docs/derivations/multi-index.md``.
    """

    dimension: int
    """Dimension :math:`d`, at least the number of directions."""
    channel: AdditiveChannel
    """Links, amplitudes and noise."""
    seed: int = 0
    """Seed for the random directions."""
    prior: Prior | None = None
    """Law of the entries before they are made orthonormal; Gaussian by default."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 1)
        if self.channel.n_directions > self.dimension:
            raise InvalidParameter(
                f"the channel has {self.channel.n_directions} features in {self.dimension} dimensions; "
                "allowed: at most as many features as dimensions, since directions are orthogonal."
            )

    @cached_property
    def directions(self) -> np.ndarray:
        """Orthonormal directions w_k as columns, shape (d, p)."""
        stream = random_stream(self.seed, "multi-index directions")
        shape = (self.dimension, self.channel.n_directions)
        draws = self.prior.draw(shape, stream) if self.prior else stream.standard_normal(shape)
        Q, R = np.linalg.qr(draws)
        return np.asarray(Q * np.sign(np.diag(R)))

    def clean(self, X: np.ndarray) -> np.ndarray:
        """Return labels without noise, shape (n,)."""
        return self.channel.clean(X @ self.directions)

    def sample(
        self, n: int, rng: np.random.Generator | int, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, d) and type `dtype`, and labels y of shape (n,)."""
        check_integer("n", n, 1)
        stream = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = draw_normals(check_dtype(dtype), self.dimension, int(n), stream)
        return X, self.channel.sample(X @ self.directions.astype(X.dtype), stream)

    def source(
        self, n: int, seed: int, dtype: Any = np.float64
    ) -> tuple[GeneratedSource, np.ndarray]:
        """Return labels, and a source that draws their inputs from the seed again at each reading."""
        check_integer("n", n, 1)
        kind = check_dtype(dtype)
        draw = partial(draw_normals, kind, self.dimension)
        source = GeneratedSource(draw, int(n), self.dimension, seed, kind)
        directions = self.directions.astype(kind)
        z = np.concatenate([block @ directions for _, block in source.chunks(CHUNK_ROWS)])
        return source, self.channel.sample(z, random_stream(seed, "label noise"))


def draw_target(parameters: Any, rng: np.random.Generator) -> MultiIndexTarget:
    """Draw the target of one replicate; the first number of the stream is the target's seed."""
    seed, entries = int(rng.integers(2**31)), getattr(parameters, "entries", None)
    # Gaussian draws keep the directions of other systems, and of studies before
    prior = None if isinstance(entries, Gaussian) else entries
    return MultiIndexTarget(parameters.dimension, parameters.channel, seed, prior)


def draw_teacher(parameters: Any, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the target's directions in one replicate; a study stores them."""
    return {"directions": draw_target(parameters, rng).directions}
