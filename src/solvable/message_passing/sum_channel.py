"""Evidence and output messages of a sum of even links of many directions, by Fourier transforms.

Given cavity means omega_k and variances V_k, the terms of the label are independent:

    phi_k(t; omega) = E exp(i t a_k sigma_k(omega + sqrt(V_k) zeta)),
    p(y | omega) = F^-1[exp(-Delta t² / 2) prod_k phi_k(t; omega_k)](y),
    g_k = d log p / d omega_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.errors import InvalidParameter
from solvable.links import Link
from solvable.message_passing.channels import AdditiveChannel, products_of_others
from solvable.message_passing.outputs import Message

MOST_FREQUENCIES = 2_000
"""Largest number of frequencies; smaller noise needs more."""

FARTHEST = 6.5
"""Standard deviations of z at which integrals end; the mass beyond is 8e-11."""

LEAST_VARIANCE = 1e-3
"""Smallest cavity variance that the nodes resolve."""

ROWS = 128
"""Number of labels whose messages are computed together."""


@dataclass(frozen=True)
class SumChannel:
    """Sum of even links with noise, tabulated on frequencies t, labels y and nodes z."""

    channel: AdditiveChannel

    def __post_init__(self) -> None:
        odd = [link.name for link in self.channel.links if link.parity != "even"]
        if odd:
            raise InvalidParameter(
                f"the link {odd[0]!r} is not even, so estimates of different directions are correlated; "
                "allowed: even links."
            )
        if not self.channel.noise > 0 or self.frequencies.size > MOST_FREQUENCIES:
            raise InvalidParameter(
                f"noise is {self.channel.noise:.3g}, which needs more than {MOST_FREQUENCIES} "
                "frequencies; allowed: larger noise."
            )

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Interval of labels, beyond which the density is negligible."""
        z = np.linspace(0, 6.0, 601)
        values = [a * link(z) for link, a in self._parts]
        low, high = (min(v.min() for v in values), max(v.max() for v in values))
        power = sum(a**2 * float(link.correlation(1.0)) for link, a in self._parts)
        centre = sum(a * float(link.hermite(0)[0]) for link, a in self._parts)
        spread = 9 * np.sqrt(power + self.channel.noise)
        return centre + min(low, 0.0) - spread, centre + max(high, 0.0) + spread

    @property
    def _parts(self) -> Sequence[tuple[Link, float]]:
        return list(zip(self.channel.links, self.channel.amplitudes, strict=True))

    @cached_property
    def frequencies(self) -> np.ndarray:
        """Frequencies t up to exp(-Delta t² / 2) = 1e-12."""
        low, high = self._range
        step = 2 * np.pi / (high - low)
        last = np.sqrt(2 * np.log(1e12) / max(self.channel.noise, 1e-300))
        return step * np.arange(int(min(last / step, 10 * MOST_FREQUENCIES)) + 2)

    @cached_property
    def _nodes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each direction nodes z and the table of cos and sin of t a sigma(z)."""
        last, known, found = float(self.frequencies[-1]), {}, []
        for link, a in self._parts:
            if (link, a) not in known:
                z = np.linspace(0, 4, 801)
                steep = float(np.abs(np.diff(a * link(z))).max() / (z[1] - z[0]))
                # at most 1.4 radians of the fastest phase and one smallest deviation
                spacing = np.clip(1.4 / (last * steep), 0.5 * np.sqrt(LEAST_VARIANCE), 0.03)
                z = np.linspace(-FARTHEST, FARTHEST, 2 * int(FARTHEST / spacing) + 1)
                phase = np.multiply.outer(a * link(z), self.frequencies)
                known[link, a] = z, np.exp(1j * phase).view(float)
            found.append(known[link, a])
        return found

    def _transforms(
        self, k: int, omega: np.ndarray, variance: float, orders: int
    ) -> list[np.ndarray]:
        """phi_k and its first derivatives in omega, each of shape (m, frequencies)."""
        z, table = self._nodes[k]
        moved = (z - omega[:, None]) / np.sqrt(variance)
        weight = np.exp(-(moved**2) / 2)
        weight *= (z[1] - z[0]) / np.sqrt(2 * np.pi * variance)
        # d^j/d omega^j N(z; omega, V) = He_j((z - omega) / sqrt V) V^(-j/2) N(z; omega, V)
        factors = (1.0, moved / np.sqrt(variance), (moved**2 - 1) / variance)
        return [((weight * factor) @ table).view(complex) for factor in factors[:orders]]

    @property
    def _damping(self) -> np.ndarray:
        return np.exp(-self.channel.noise * self.frequencies**2 / 2)

    def information(self, overlaps: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, float]:
        """Information E[g_k²] of a label about each direction, and E[log p(y | omega)].

        `normals` (m, p) are standard normal numbers zeta with omega_k = sqrt(q_k) zeta_k; the integral
        over y is a sum on a grid.
        """
        low, high = self._range
        size = 2 * self.frequencies.size
        shift = self._damping * np.exp(-1j * self.frequencies * low)
        pairs = [
            self._transforms(k, np.sqrt(q) * normals[:, k], max(1 - q, LEAST_VARIANCE), 2)
            for k, q in enumerate(overlaps)
        ]
        others = products_of_others([phi for phi, _ in pairs])

        def density(transform: np.ndarray) -> np.ndarray:
            # p(y) = F^-1[...] on the grid y_l = low + l (high - low) / size
            return np.fft.irfft(np.conj(transform * shift), size) * size / (high - low)

        cell = (high - low) / size
        p = density(others[0] * pairs[0][0])
        known = p > 1e-10
        safe = np.where(known, p, 1.0)
        found = [
            float(np.where(known, density(slope * rest) ** 2 / safe, 0.0).sum() * cell / len(p))
            for (_, slope), rest in zip(pairs, others, strict=True)
        ]
        return np.array(found), float((p * np.log(safe))[known].sum() * cell / len(p))

    def messages(self, labels: np.ndarray, omega: np.ndarray, variance: np.ndarray) -> Message:
        """Output messages g (n, p) of labels (n,), with the diagonal of their summed slopes."""
        V = np.maximum(np.diag(variance), LEAST_VARIANCE)
        transforms = [self._interpolated(k, omega[:, k], float(v)) for k, v in enumerate(V)]
        values, slopes = np.zeros(omega.shape), np.zeros(len(V))
        # Few rows at a time fit into the processor's cache.
        for start in range(0, len(labels), ROWS):
            rows = slice(start, start + ROWS)
            parts = [transform(omega[rows, k]) for k, transform in enumerate(transforms)]
            values[rows], part = self._messages(labels[rows], parts)
            slopes += part
        return Message(values, np.diag(slopes))

    def _messages(
        self, labels: np.ndarray, parts: list[list[np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Messages and summed slopes of a few labels, from the transforms of each direction."""
        low, high = self._range
        phase = np.exp(-1j * np.multiply.outer(labels, self.frequencies)) * self._damping
        phase[:, 0] /= 2
        others = products_of_others([part[0] for part in parts])
        evidence = 2 * np.einsum("nt,nt->n", phase, others[0] * parts[0][0]).real / (high - low)
        known = evidence > 1e-8
        safe = np.where(known, evidence, 1.0)
        values = np.zeros((len(labels), len(parts)))
        slopes = np.zeros(len(parts))
        for k, (part, rest) in enumerate(zip(parts, others, strict=True)):
            shown = phase * rest
            first, second = (
                2 * np.einsum("nt,nt->n", shown, d).real / (high - low) / safe for d in part[1:]
            )
            values[:, k] = np.where(known, first, 0.0)
            # d g / d omega = p'' / p - g²
            slopes[k] = float(np.where(known, second - first**2, 0.0).sum())
        return values, slopes

    def _interpolated(
        self, k: int, omega: np.ndarray, variance: float
    ) -> Callable[[np.ndarray], list[np.ndarray]]:
        """Transforms as a function of cavity means, by cubic splines if these exceed the table."""
        from scipy.interpolate import CubicSpline

        reach = min(float(np.abs(omega).max()), FARTHEST) + 1e-9
        if omega.size <= 241:
            return lambda means: self._transforms(k, np.clip(means, -reach, reach), variance, 3)
        # An even link has transforms that are even, odd and even in omega; ten places below 0 keep the
        # ends of the splines away from the values that are read.
        grid = np.linspace(-reach / 12, reach, 131)
        splines = [CubicSpline(grid, t) for t in self._transforms(k, grid, variance, 3)]

        def transforms(means: np.ndarray) -> list[np.ndarray]:
            distance = np.minimum(np.abs(means), reach)
            value, slope, bend = (spline(distance) for spline in splines)
            return [value, np.sign(means)[:, None] * slope, bend]

        return transforms
