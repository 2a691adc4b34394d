r"""Sums of many directions of equal amplitude: what a label tells of the sum and of each alone."""

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
    """Labels of p directions of equal amplitude: p^(-1/2) sum_k sigma(<w_k, x>) + sqrt(Delta) xi."""

    link: Link
    directions: int  # p, up to 40 for a link that is not even
    noise: float  # Delta

    @cached_property
    def channel(self) -> AdditiveChannel:
        """The channel of all p directions."""
        p = self.directions
        return AdditiveChannel((self.link,) * p, (p**-0.5,) * p, self.noise)

    @property
    def exact(self) -> bool:
        """Whether moments of pairs vanish, or are few enough to be held."""
        return self.link.parity == "even" or self.directions <= MOST_CROSS

    @cached_property
    def pair(self) -> np.ndarray:
        """B(y) = E[z_k z_l | y] at the labels of the channel's moments."""
        cross = self.channel.pair_moments.cross
        zero = np.zeros(self.channel.moments.labels.size)
        return zero if cross is None else np.asarray(cross[:, 0, 1])

    @property
    def sum_moment(self) -> np.ndarray:
        """E[s² - 1 | y] of the sum s of all directions."""
        # E[z z^T - I | y] = (A - B) I + B 1 1^T: A + (p - 1) B along the sum, A - B beside it
        return np.asarray(self.channel.moments.second[:, 0] + (self.directions - 1) * self.pair)

    @property
    def single_moment(self) -> np.ndarray:
        """E[s² - 1 | y] of a direction beside the sum."""
        return np.asarray(self.channel.moments.second[:, 0] - self.pair)

    @cached_property
    def weak_recovery_ratio(self) -> float:
        """Samples per dimension from which second moments find single directions."""
        # alpha_c = 1 / E[(A - B)²] (3.2); what cancels leaves rounding of the moments.
        power = self.channel.moments.probabilities @ self.single_moment**2
        return float(1 / power) if power > 1e-18 else inf

    @cached_property
    def first_order_ratio(self) -> float:
        """Samples per dimension that tell directions apart, the sum being found before if it can be."""
        alone = self.weak_recovery_ratio if self.exact else self.leading_ratio
        if self.link.parity == "even":
            return alone
        # First moments find the sum: q = alpha I / (1 + alpha I), I = E[E[s | y]²] = p E[m_k²] (3.1).
        told = self.directions * float(self.channel.moments.linear_information[0])
        if not told > 1e-12:
            return alone
        ratio = known_sum_ratio(*self._standard)
        for _ in range(6):
            overlap = ratio * told / (1 + ratio * told) if np.isfinite(ratio) else 1.0
            # More samples tell more of the sum, and fewer are needed beside: one crossing.
            ratio = float(np.sqrt(ratio * known_sum_ratio(*self._standard, overlap)))
        return min(ratio, alone)

    @property
    def leading_ratio(self) -> float:
        """The same to leading order in the number of directions."""
        return leading_ratio(*self._standard)

    @property
    def information_ratio(self) -> float:
        """Samples per dimension from which any method tells directions apart, of many directions."""
        # To leading order in their number, where methods that are known may need fewer.
        return min(information_ratio(*self._standard), self.first_order_ratio)

    @property
    def _standard(self) -> tuple[Link, int, float]:
        """The same with a link of variance 1."""
        variance = float(self.link.correlation(1.0))
        return make_link(self.link.name), self.directions, self.noise / variance

    def law(self, weights: np.ndarray) -> LabelLaw:
        """Law of a map of the label with the sum (first, if links are not even) and all others."""
        p = self.directions
        columns = [self.channel.moments.second[:, 0]] * p
        if self.pair.any():
            columns = [self.sum_moment] + [self.single_moment] * (p - 1)
        moments = np.maximum(1 + np.stack(columns, axis=1), 0.0)
        return LabelLaw(weights, self.channel.moments.probabilities, moments)


@lru_cache(maxsize=256)
def known_sum_ratio(link: Link, directions: int, noise: float, overlap: float = 1.0) -> float:
    """Samples per dimension from which label and (part of) the sum show directions beside it."""
    z, chance = link.nodes(96)
    part = directions**-0.5 * link(z)
    reach = float(np.abs(part[np.abs(z) < 7]).max()) + 9 * np.sqrt(1 + noise)
    # Six cells to a deviation of the noise if memory allows, and 256 of the sum
    wanted = 2 * reach / (np.sqrt(noise) / 6) if noise else inf
    cells = int(2 ** np.ceil(np.log2(np.clip(wanted, 512, 2_048))))
    width = 2 * reach / cells
    t, u = (2 * np.pi * np.fft.fftfreq(n, step) for n, step in ((cells, width), (256, 20 / 256)))
    of_label, of_sum = (
        np.exp(1j * t[:, None] * part),
        np.exp(1j * np.outer(z, u) * (overlap / directions) ** 0.5),
    )

    def transform(power: np.ndarray) -> np.ndarray:
        """E[g(z) exp(i t sigma(z) / sqrt p + i u sqrt q z / sqrt p)]."""
        return np.asarray((of_label * (chance * power)) @ of_sum)

    one, first, second = transform(np.ones_like(z)), transform(z), transform(z**2 - 1)
    # Known is sqrt q s + sqrt(1 - q) eta.
    spread = max(noise, (2 * width) ** 2) * t[:, None] ** 2 + (1 - overlap) * u**2
    damping = np.exp(-spread / 2)
    # A - B given the label and that, times their density
    told = (second * one - first**2) * one ** (directions - 2)
    density, numerator = (np.fft.fft2(f * damping).real for f in (one**directions, told))
    inside = density > 1e-9 * density.max()
    power = (numerator[inside] ** 2 / density[inside]).sum() / density[inside].sum()
    return float(1 / power) if power > 1e-14 else inf


def pair_exponent(link: Link) -> float:
    """Power of the number of directions that samples telling them apart grow with."""
    return _leading(link)[0]


def leading_ratio(link: Link, directions: int, noise: float) -> float:
    """Samples per dimension that find single directions, to leading order in their number."""
    # alpha = beta! (1 + Delta)^beta / c_beta² p^beta (3.8)
    power, c = _leading(link)
    if not np.isfinite(power):
        return inf
    return factorial(int(power)) * ((1 + noise) * directions) ** power / c**2


def _leading(link: Link) -> tuple[float, float]:
    """Exponent and coefficient of what the label tells of one direction beside the sum."""
    linear = float(link.hermite(1)[1])
    for power, c in enumerate(exponents_of(link).moments, start=1):
        # E[z_k z_l | y] of a link with a linear part is of the order 1/p as well,
        # mu_1² He_2(y) / (1 + Delta), so that c_2 - 2 mu_1² is in the place of c_2.
        effective = c - 2 * linear**2 if power == 2 else c
        if abs(effective) > 1e-8:
            return power, effective
    return inf, 0.0


@lru_cache(maxsize=256)
def information_ratio(link: Link, directions: int, noise: float) -> float:
    """Samples per dimension from which labels of many directions determine each, in theory."""
    linear = float(link.hermite(1)[1]) ** 2

    def gain(overlap: np.ndarray) -> np.ndarray:
        # v(q) = Delta + kappa(1) - kappa(q); a linear part tells the sum, which is known before.
        unknown = link.correlation(1.0) - link.correlation(overlap) - linear * (1 - overlap)
        before = noise + link.correlation(1.0) - linear
        return np.asarray(np.log(before / (noise + unknown)))

    return directions * information_threshold(gain)


def information_threshold(gain: Callable[[np.ndarray], np.ndarray]) -> float:
    """Smallest ratio at which a potential -ratio gain(q) - q - log(1 - q) is below 0 at some q."""
    # q -> 1 as well as q -> 0, where the ratio of both has a limit
    q = np.concatenate([np.geomspace(1e-4, 0.5, 400)[:-1], 1 - np.geomspace(0.5, 1e-9, 2_000)])
    told = gain(q)
    with np.errstate(divide="ignore"):
        return float(np.min(np.where(told > 1e-12, (-q - np.log1p(-q)) / told, inf)))


@lru_cache(maxsize=256)
def large_noise_information_ratio(link: Link, noise: float) -> float:
    """Samples per dimension from which labels of much noise determine one direction, in theory."""
    # alpha = inf_q (-q - log(1 - q)) / kappa(q) / lambda (3.7)
    return noise * information_threshold(link.correlation)
