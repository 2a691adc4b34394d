"""Query-key product of a head under random signs of its factors: the controls of learned directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from solvable.arrays import random_stream
from solvable.diagnose.attention.factors import (
    Factors,
    Product,
    gram_of,
    symmetry_of_grams,
    values_of_grams,
    without,
)
from solvable.diagnose.chance_outliers import CONTROLS, cosines, flip, top_quantile


@dataclass(frozen=True, eq=False)
class Signed:
    """Products under random signs of both factors."""

    values: np.ndarray  # (draws, h): singular values, descending
    symmetry: np.ndarray  # (draws,): symmetry Tr(M M) / Tr(M^T M) of each product


@dataclass(frozen=True, eq=False)
class SignedHead:
    """One head without its largest values, under random signs; nothing is drawn twice."""

    factors: Factors
    product: Product
    seed: int
    _rests: dict[int, Factors] = field(default_factory=dict)
    _drawn: dict[int, tuple[Iterator[tuple[np.ndarray, float]], list[tuple[np.ndarray, float]]]] = (
        field(default_factory=dict)
    )

    def without(self, count: int) -> Factors:
        """Return the factors without the largest values."""
        if count not in self._rests:
            self._rests[count] = without(self.factors, self.product, count)
        return self._rests[count]

    def signed(self, count: int, draws: int) -> Signed:
        """Draw products without the largest values, under random signs of the factors' entries."""
        if count not in self._drawn:
            self._drawn[count] = _draws(self.without(count), (), self.seed, symmetry=True), []
        source, seen = self._drawn[count]
        seen.extend(islice(source, max(draws - len(seen), 0)))
        return Signed(
            np.array([values for values, _ in seen[:draws]]),
            np.array([symmetry for _, symmetry in seen[:draws]]),
        )

    def beyond_signs(self, *, level: float = 0.01) -> tuple[int, str]:
        """Count the largest values above all controls, and name the control that ends the count."""
        # Random signs of both factors   (spectra 8). Independent symmetric entries keep their
        # distribution for any sizes of rows and columns. Random signs of cosines keep correlations.
        # (chance_outliers.py does the same for one matrix.)
        count, stopped = self.product.rank, ""
        for axes, name in CONTROLS:
            passed = self._beyond(count, axes, level / 5 if axes else level)
            if passed < count:
                count, stopped = passed, name
            if not count:
                break
        return count, stopped

    def _beyond(self, most: int, axes: tuple[int, ...], level: float) -> int:
        """Number of values above one control; counted values are removed before the next step."""
        passed, draws = 0, 40
        while passed < most:
            tops = self._tops(passed, axes, draws)
            # The largest value fluctuates by at least a thousandth.
            reach = top_quantile(tops, level, 1e-3)
            beyond = int((self.product.values[passed:most] > reach).sum())
            if not beyond:
                break
            passed += beyond
        return passed

    def _tops(self, count: int, axes: tuple[int, ...], draws: int) -> np.ndarray:
        """Largest value of each draw."""
        if not axes:
            return self.signed(count, draws).values[:, 0]
        source = _draws(self.without(count), axes, self.seed, symmetry=False)
        return np.array([values[0] for values, _ in islice(source, draws)])


def _draws(
    factors: Factors, axes: tuple[int, ...], seed: int, *, symmetry: bool
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield values and symmetry after random sign flips of the factors' entries, or of their cosines."""
    rng = random_stream(seed, "head signs", str(axes))
    query = cosines(np.array(factors.query, dtype=np.float32, order="C"), axes)
    key = query if factors.tied else cosines(np.array(factors.key, np.float32, order="C"), axes)
    parts = [query] if factors.tied else [query, key]
    now = [np.full(-(-part.size // 8), 255, np.uint8) for part in parts]
    while True:
        for part, bits in zip(parts, now, strict=True):
            # From one draw to the next, the entries whose sign differs are flipped.
            drawn = rng.integers(0, 256, bits.size, dtype=np.uint8)
            flip(part, ~(drawn ^ bits))
            bits[:] = drawn
        gram = other = gram_of(query)
        found = 1.0
        if not factors.tied:
            other = gram_of(key)
            if symmetry:
                found = symmetry_of_grams(query, key, gram, other)
        yield values_of_grams(gram, other), found
