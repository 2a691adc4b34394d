"""Sums of many directions of equal amplitude: moments given the label, and sample thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial, inf

import numpy as np

from solvable.links import Link, make_link
from solvable.message_passing.channels import MOST_CROSS, AdditiveChannel
from solvable.models.multi_index.exponents import exponents_of
from solvable.spectra.label_law import LabelLaw


@dataclass(frozen=True)
class EqualDirections:
    """Label of p directions of equal amplitude: p^(-1/2) sum_k sigma(<w_k, x>) + sqrt(Delta) xi."""

    link: Link
    directions: int  # number p; exact thresholds need p <= 40 if the link is not even
    noise: float  # variance Delta of the label noise

    @cached_property
    def channel(self) -> AdditiveChannel:
        """Channel from the coordinates of all p directions to the label."""
        p = self.directions
        return AdditiveChannel((self.link,) * p, (p**-0.5,) * p, self.noise)

    @property
    def exact(self) -> bool:
        """Return True if thresholds are exact: pair moments are zero or fit in memory."""
        return self.link.parity == "even" or self.directions <= MOST_CROSS

    @cached_property
    def pair(self) -> np.ndarray:
        """Moment B(y) = E[z_k z_l | y] of two different directions, on the grid of labels."""
        cross = self.channel.pair_moments.cross
        zero = np.zeros(self.channel.moments.labels.size)
        return zero if cross is None else np.asarray(cross[:, 0, 1])

    @property
    def sum_moment(self) -> np.ndarray:
        """Moment E[s² - 1 | y] of the normalised sum s of all directions."""
        # E[z z^T - I | y] = (A - B) I + B 1 1^T   (multi-index 16). This matrix has the eigenvalue
        # A + (p - 1) B along the sum, and A - B on directions orthogonal to the sum.
        return np.asarray(self.channel.moments.second[:, 0] + (self.directions - 1) * self.pair)

    @property
    def single_moment(self) -> np.ndarray:
        """Moment E[s² - 1 | y] of a direction s orthogonal to the sum."""
        return np.asarray(self.channel.moments.second[:, 0] - self.pair)

    @cached_property
    def weak_recovery_ratio(self) -> float:
        """Samples per dimension above which second moments find single directions."""
        # alpha_c = 1 / E[(A - B)²]   (multi-index 16). A mean below 1e-18 is a rounding error.
        power = self.channel.moments.probabilities @ self.single_moment**2
        return float(1 / power) if power > 1e-18 else inf

    @cached_property
    def first_order_ratio(self) -> float:
        """Samples per dimension that a first-order method needs for single directions."""
        alone = self.weak_recovery_ratio if self.exact else self.leading_ratio
        if self.link.parity == "even":
            return alone
        # First moments find the sum: q = alpha I / (1 + alpha I), I = p E[m_k²]   (multi-index 5)
        linear = self.directions * float(self.channel.moments.linear_information[0])
        if not linear > 1e-12:
            return alone
        ratio = known_sum_ratio(*self._standard)
        for _ in range(6):
            overlap = ratio * linear / (1 + ratio * linear) if np.isfinite(ratio) else 1.0
            # The sum's overlap grows with n/d and lowers the threshold, so there is one fixed point.
            ratio = float(np.sqrt(ratio * known_sum_ratio(*self._standard, overlap)))
        return min(ratio, alone)

    @property
    def leading_ratio(self) -> float:
        """Threshold n/d of second moments, to leading order in the number of directions."""
        return leading_ratio(*self._standard)

    @property
    def information_ratio(self) -> float:
        """Samples per dimension that a method of unlimited computing time needs, for many directions."""
        # The approximation for many directions may exceed the exact first-order threshold.
        return min(information_ratio(*self._standard), self.first_order_ratio)

    @property
    def _standard(self) -> tuple[Link, int, float]:
        """Standardised link, number of directions, and noise divided by the link's variance."""
        variance = float(self.link.correlation(1.0))
        return make_link(self.link.name), self.directions, self.noise / variance

    def law(self, weights: np.ndarray) -> LabelLaw:
        """Distribution of the weights, with the moments of all directions given the label.

        If the link is not even, the sum of all directions comes first.
        """
        p = self.directions
        columns = [self.channel.moments.second[:, 0]] * p
        if self.pair.any():
            columns = [self.sum_moment] + [self.single_moment] * (p - 1)
        moments = np.maximum(1 + np.stack(columns, axis=1), 0.0)
        return LabelLaw(weights, self.channel.moments.probabilities, moments)


@lru_cache(maxsize=256)
def known_sum_ratio(link: Link, directions: int, noise: float, overlap: float = 1.0) -> float:
    """Threshold n/d for directions orthogonal to the sum, given labels and an estimate of the sum."""
    z, chance = link.nodes(96)
    part = directions**-0.5 * link(z)
    reach = float(np.abs(part[np.abs(z) < 7]).max()) + 9 * np.sqrt(1 + noise)
    # The label grid has six cells per standard deviation of the noise if memory allows. The grid of the
    # sum has 256 cells.
    wanted = 2 * reach / (np.sqrt(noise) / 6) if noise else inf
    cells = int(2 ** np.ceil(np.log2(np.clip(wanted, 512, 2_048))))
    width = 2 * reach / cells
    t, u = (2 * np.pi * np.fft.fftfreq(n, step) for n, step in ((cells, width), (256, 20 / 256)))
    of_label, of_sum = (
        np.exp(1j * t[:, None] * part),
        np.exp(1j * np.outer(z, u) * (overlap / directions) ** 0.5),
    )

    def transform(power: np.ndarray) -> np.ndarray:
        """Fourier transform E[g(z) exp(i t sigma(z) / sqrt p + i u sqrt q z / sqrt p)]."""
        return np.asarray((of_label * (chance * power)) @ of_sum)

    zeroth, first, second = transform(np.ones_like(z)), transform(z), transform(z**2 - 1)
    # The estimate sqrt(q) s + sqrt(1 - q) eta of the sum s has the overlap q.
    spread = max(noise, (2 * width) ** 2) * t[:, None] ** 2 + (1 - overlap) * u**2
    damping = np.exp(-spread / 2)
    # E[z_k² - 1 - z_k z_l | label, estimate] times the joint density of label and estimate
    # (multi-index 19)
    single = (second * zeroth - first**2) * zeroth ** (directions - 2)
    density, numerator = (np.fft.fft2(f * damping).real for f in (zeroth**directions, single))
    inside = density > 1e-9 * density.max()
    power = (numerator[inside] ** 2 / density[inside]).sum() / density[inside].sum()
    return float(1 / power) if power > 1e-14 else inf


def pair_exponent(link: Link) -> float:
    """Power of p with which the threshold of single directions grows."""
    return _leading(link)[0]


def leading_ratio(link: Link, directions: int, noise: float) -> float:
    """Sample ratio from which second moments find single directions, to leading order in p."""
    # threshold alpha = beta! (1 + Delta)^beta / c_beta² p^beta   (multi-index 17)
    power, c = _leading(link)
    if not np.isfinite(power):
        return inf
    return factorial(int(power)) * ((1 + noise) * directions) ** power / c**2


def _leading(link: Link) -> tuple[float, float]:
    """Exponent and coefficient in the threshold of directions orthogonal to the sum."""
    linear = float(link.hermite(1)[1])
    for power, c in enumerate(exponents_of(link).moments, start=1):
        # A linear part mu_1 of the link gives E[z_k z_l | y] = mu_1² He_2(y) / ((1 + Delta) p). This
        # pair moment is as large as the second moment: c_2 - 2 mu_1² replaces c_2   (multi-index 18).
        effective = c - 2 * linear**2 if power == 2 else c
        if abs(effective) > 1e-8:
            return power, effective
    return inf, 0.0


@lru_cache(maxsize=256)
def information_ratio(link: Link, directions: int, noise: float) -> float:
    """Samples per dimension at which labels determine each of many directions."""
    linear = float(link.hermite(1)[1]) ** 2

    def gain(overlap: np.ndarray) -> np.ndarray:
        # v(q) = Delta + kappa(1) - kappa(q)   (multi-index 20). The link's linear part is left out,
        # since only the sum depends on it, and the sum is found from fewer samples.
        unknown = link.correlation(1.0) - link.correlation(overlap) - linear * (1 - overlap)
        before = noise + link.correlation(1.0) - linear
        return np.asarray(np.log(before / (noise + unknown)))

    return directions * information_threshold(gain)


def information_threshold(gain: Callable[[np.ndarray], np.ndarray]) -> float:
    """Smallest ratio at which the potential -ratio gain(q) - q - log(1 - q) is below 0 at some q."""
    # The grid is fine near q = 0 and q = 1, where the infimum often lies.
    q = np.concatenate([np.geomspace(1e-4, 0.5, 400)[:-1], 1 - np.geomspace(0.5, 1e-9, 2_000)])
    gains = gain(q)
    with np.errstate(divide="ignore"):
        return float(np.min(np.where(gains > 1e-12, (-q - np.log1p(-q)) / gains, inf)))


@lru_cache(maxsize=256)
def large_noise_information_ratio(link: Link, noise: float) -> float:
    """Samples per dimension at which very noisy labels determine one direction."""
    # threshold alpha = inf_q (-q - log(1 - q)) / kappa(q) / lambda   (multi-index 15)
    return noise * information_threshold(link.correlation)
