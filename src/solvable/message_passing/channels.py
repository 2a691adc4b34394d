r"""Additive channels: labels of Gaussian latent coordinates, and conditional moments given a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

import numpy as np

from solvable.errors import InvalidParameter
from solvable.links import Link
from solvable.message_passing.moments import ConditionalMoments
from solvable.message_passing.outputs import GaussianOutput
from solvable.message_passing.preimages import preimage_moments

MOST_CROSS = 40
"""Largest number p of directions for which moments of pairs are stored, p² for each label."""

SPLINE_ORDER = 8
"""Number of grid cells over which a spline spreads each label before a Fourier transform; even."""


@dataclass(frozen=True)
class AdditiveChannel:
    r"""Sum of link functions of independent latent coordinates, plus Gaussian noise.

    .. math:: y=\sum_{k=1}^pa_k\,\sigma_k(z_k)+\sqrt\Delta\,\xi .

    Parameters
    ----------
    links : tuple of Link
        :math:`\sigma_k`, one for each coordinate.
    amplitudes : tuple of float
        :math:`a_k`, not 0.
    noise : float
        Variance :math:`\Delta\ge0`.

    Raises
    ------
    InvalidParameter
        If there is no coordinate, lengths differ, or a number is out of range.
    """

    links: tuple[Link, ...]
    amplitudes: tuple[float, ...]
    noise: float

    def __post_init__(self) -> None:
        if not self.links or len(self.links) != len(self.amplitudes):
            raise InvalidParameter(
                f"{len(self.links)} links and {len(self.amplitudes)} amplitudes are given; allowed: "
                "as many of each, at least one."
            )
        fits = all(np.isfinite(a) and a != 0 for a in self.amplitudes)
        if not (fits and np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(
                f"amplitudes are {self.amplitudes} and noise is {self.noise}; allowed: finite "
                "amplitudes that are not 0, and a variance of at least 0."
            )

    @property
    def n_directions(self) -> int:
        """Number p of latent coordinates."""
        return len(self.links)

    def clean(self, z: np.ndarray) -> np.ndarray:
        """Noiseless labels (n,) of latent coordinates (n, p)."""
        columns = zip(self.links, self.amplitudes, np.asarray(z, dtype=np.float64).T, strict=True)
        return np.asarray(sum(a * link(column) for link, a, column in columns))

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels (n,) of latent coordinates (n, p)."""
        y = self.clean(z)
        return y + np.sqrt(self.noise) * rng.standard_normal(y.shape) if self.noise else y

    @cached_property
    def moments(self) -> ConditionalMoments:
        """Conditional moments of each latent coordinate given the label."""
        if self.n_directions == 1 and self.noise == 0:
            try:
                return preimage_moments(additive_output(self))
            except InvalidParameter:  # the link is constant on an interval
                return _cells(self.links[0], self.amplitudes[0])
        return _gathered(_Transforms(self), pairs=False)

    @cached_property
    def pair_moments(self) -> ConditionalMoments:
        """Conditional moments given the label, including nonzero moments of pairs of coordinates."""
        if all(link.parity == "even" for link in self.links) or self.n_directions == 1:
            return self.moments
        if self.n_directions > MOST_CROSS:
            raise InvalidParameter(
                f"{self.n_directions} directions with links that are not even need "
                f"{self.n_directions**2} moments for each label; allowed: up to {MOST_CROSS} "
                "directions, or only even links."
            )
        return _gathered(_Transforms(self), pairs=True)


@dataclass(frozen=True)
class _Clean:
    """Noiseless labels of an additive channel, for latent coordinates of any leading shape."""

    channel: AdditiveChannel

    def __call__(self, z: np.ndarray) -> np.ndarray:
        parts = zip(self.channel.links, self.channel.amplitudes, strict=True)
        return np.asarray(sum(a * link(z[..., k]) for k, (link, a) in enumerate(parts)))


def additive_output(channel: AdditiveChannel) -> GaussianOutput:
    """Return the additive channel as a `GaussianOutput` for message passing."""
    points = sorted({point for link in channel.links for point in link.breakpoints})
    return GaussianOutput(_Clean(channel), channel.noise, channel.n_directions, tuple(points))


def _cells(link: Link, amplitude: float) -> ConditionalMoments:
    """Conditional moments of one noiseless coordinate, with labels gathered in cells."""
    z, chance = link.fine_nodes(panels=28_000)
    y = amplitude * link(z)
    # Values that differ only by rounding are merged. All other values are gathered in cells of equal
    # width
    # in the logit of the probability, which resolves the tails.
    scale = float(np.sqrt(chance @ (y - chance @ y) ** 2))
    order = np.argsort(y, kind="stable")
    y, z, chance = y[order], z[order], chance[order]
    values, group = np.unique(np.round(y / scale, 11), return_inverse=True)
    total = np.bincount(group, chance)
    if values.size > 8_192:
        reached = np.cumsum(total) - total / 2
        logit = np.log((reached + 1e-18) / (1 - reached + 1e-12))
        cell = np.floor((logit - logit[0]) / (logit[-1] - logit[0]) * 8_191).astype(int)
        group = np.unique(cell, return_inverse=True)[1][group]
        total = np.bincount(group, chance)
    kept = total > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, first, second = (
            (np.bincount(group, chance * part) / total)[kept] for part in (y, z, z**2 - 1)
        )
    return ConditionalMoments(mean, total[kept] / total.sum(), first[:, None], second[:, None])


class _Transforms:
    """Characteristic functions of the terms of a label on one frequency grid."""

    def __init__(self, channel: AdditiveChannel) -> None:
        self.channel = channel
        self._cache: dict[tuple[Link, float], tuple[np.ndarray, ...]] = {}
        # half the range of labels: the largest term plus nine standard deviations of the sum
        panels = 1_400 if channel.n_directions <= 4 else 350
        self._nodes = {link: link.fine_nodes(panels) for link in set(channel.links)}
        spread = channel.noise
        largest = 0.0
        for link, a in set(zip(channel.links, channel.amplitudes, strict=True)):
            z, chance = self._nodes[link]
            part = a * link(z)
            count = sum(
                pair == (link, a) for pair in zip(channel.links, channel.amplitudes, strict=True)
            )
            mean = float(chance @ part)
            spread += count * float(chance @ (part - mean) ** 2) + (count * mean) ** 2
            # the Gaussian mass beyond seven standard deviations is 3e-12
            largest = max(largest, float(np.abs(part[np.abs(z) < 7]).max()))
        reach = largest + 9 * np.sqrt(spread)
        # twelve cells per standard deviation of the noise, up to 2^17 cells
        wanted = 2 * reach / (np.sqrt(channel.noise) / 12) if channel.noise else np.inf
        cells = int(min(max(2 ** ceil(log2(max(min(wanted, 1e9), 2_048))), 2_048), 2**17))
        self.cell = 2 * reach / cells
        self.size = cells
        # the grid does not resolve noise below two cells, so such noise is raised to two cells
        self.noise = max(channel.noise, (2 * self.cell) ** 2)
        frequency = 2 * np.pi * np.fft.rfftfreq(cells, self.cell)
        self.damping = np.exp(-self.noise * frequency**2 / 2)
        # the spline multiplies the transform by sinc^n; aliasing has relative order
        # (frequency * cell / 2 pi)^n
        self.window = np.sinc(frequency * self.cell / (2 * np.pi)) ** SPLINE_ORDER

    def of(self, link: Link, amplitude: float) -> tuple[np.ndarray, ...]:
        """Means of exp(i t a sigma(z)) times 1, z and z² - 1 for one coordinate."""
        key = (link, amplitude)
        if key not in self._cache:
            z, chance = self._nodes[link]
            place = amplitude * link(z) / self.cell
            low = np.floor(place)
            shares = _spline_weights(place - low)
            cells = low.astype(np.int64) - SPLINE_ORDER // 2 + 1 + np.arange(SPLINE_ORDER)[:, None]
            cells = (cells % self.size).ravel()

            def transform(part: np.ndarray) -> np.ndarray:
                spread = np.bincount(cells, (part * shares).ravel(), self.size)
                return np.asarray(np.fft.rfft(spread) / self.window)

            zero = np.zeros(self.window.size)
            first = zero if link.parity == "even" else transform(chance * z)
            self._cache[key] = transform(chance), first, transform(chance * (z**2 - 1))
        return self._cache[key]

    def back(self, transform: np.ndarray) -> np.ndarray:
        """Invert a transform to values on the ascending grid of labels."""
        return np.fft.fftshift(np.fft.irfft(transform * self.damping, self.size))

    @property
    def labels(self) -> np.ndarray:
        return (np.arange(self.size) - self.size // 2) * self.cell


def _spline_weights(share: np.ndarray) -> np.ndarray:
    """Weights (order, n) of a central B-spline at positions that lie a given fraction above a cell."""
    weights = np.zeros((SPLINE_ORDER, share.size))
    weights[0], weights[1] = 1 - share, share
    for order in range(3, SPLINE_ORDER + 1):
        # M_n(u) = [u M_{n-1}(u) + (n - u) M_{n-1}(u - 1)] / (n - 1)
        weights[order - 1] = share * weights[order - 2]
        for j in range(1, order - 1):
            place = order - 1 - j
            weights[place] = (share + j) * weights[place - 1] + (order - j - share) * weights[place]
        weights[0] *= 1 - share
        weights[:order] /= order - 1
    return weights


def _gathered(transforms: _Transforms, *, pairs: bool) -> ConditionalMoments:
    """Conditional moments on the grid of labels; neighbouring labels are merged."""
    channel = transforms.channel
    parts = list(zip(channel.links, channel.amplitudes, strict=True))
    others = products_of_others([transforms.of(*part)[0] for part in parts])
    # p(y) = F^-1[exp(-Delta t² / 2) prod_j phi_j]   (multi-index 2)
    density = transforms.back(others[0] * transforms.of(*parts[0])[0])
    keep = density > 1e-12 * density.max()
    inside = np.flatnonzero(keep)
    keep[inside[0] : inside[-1] + 1] = density[inside[0] : inside[-1] + 1] > 0
    merge = _Merge(transforms.labels[keep], density[keep])
    first, second = [], []
    known: dict[tuple[Link, float], tuple[np.ndarray, np.ndarray]] = {}
    for part, rest in zip(parts, others, strict=True):
        if part not in known:
            _, odd, even = transforms.of(*part)
            zero = np.zeros(merge.labels.size)
            m = merge(transforms.back(rest * odd)[keep]) if odd.any() else zero
            # p(y) G_kk(y) = F^-1[exp(-Delta t² / 2) nu_k prod_{j != k} phi_j]
            known[part] = m, merge(transforms.back(rest * even)[keep])
        first.append(known[part][0])
        second.append(known[part][1])
    cross = _pairs(transforms, parts, merge, keep, second) if pairs else None
    return ConditionalMoments(
        merge.labels, merge.probabilities, np.stack(first, axis=1), np.stack(second, axis=1), cross
    )


def _pairs(
    transforms: _Transforms,
    parts: Sequence[tuple[Link, float]],
    merge: _Merge,
    keep: np.ndarray,
    second: Sequence[np.ndarray],
) -> np.ndarray:
    """E[z_k z_l | y] off the diagonal, E[z_k² - 1 | y] on the diagonal."""
    p = len(parts)
    cross = np.zeros((merge.labels.size, p, p))
    known: dict[tuple[tuple[Link, float], ...], np.ndarray] = {}
    for k in range(p):
        cross[:, k, k] = second[k]
        for j in range(k):
            key = tuple(sorted((parts[k], parts[j]), key=lambda part: (part[1], part[0].name)))
            if key not in known:
                # F^-1 of exp(-Delta t² / 2), E[z exp(i t a sigma)] of both, and phi of the others
                rest = [transforms.of(*part)[0] for i, part in enumerate(parts) if i not in (j, k)]
                product = transforms.of(*parts[k])[1] * transforms.of(*parts[j])[1]
                for phi in rest:
                    product = product * phi
                known[key] = merge(transforms.back(product)[keep])
            cross[:, k, j] = cross[:, j, k] = known[key]
    return cross


class _Merge:
    """Averages over neighbouring labels, which reduce a label distribution to a few thousand labels."""

    def __init__(self, labels: np.ndarray, density: np.ndarray) -> None:
        most = 4_096
        weights = density / density.sum()
        if labels.size <= most:
            group = np.arange(labels.size)
        else:
            # choose group widths proportional to density^(-1/3), which minimises the interpolation error
            place = np.cumsum(np.cbrt(density))
            group = np.unique((place / place[-1] * (most - 1)).astype(int), return_inverse=True)[1]
        self._group, self._total = group, np.bincount(group, density)
        self._count = int(group[-1]) + 1
        self.probabilities = np.bincount(group, weights)
        self.labels = np.bincount(group, weights * labels) / self.probabilities

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Conditional mean of each group, from its product with the density."""
        return np.asarray(np.bincount(self._group, values, self._count) / self._total)


def products_of_others(factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For each factor, the product of all other factors."""
    before: list[np.ndarray] = [np.ones_like(factors[0])]
    for factor in factors[:-1]:
        before.append(before[-1] * factor)
    after = np.ones_like(factors[0])
    products = []
    for factor, start in zip(reversed(factors), reversed(before), strict=True):
        products.append(start * after)
        after = after * factor
    return products[::-1]
