r"""Outputs that depend on several indices at once: messages and information by Fourier transforms.

Indices :math:`z=(z_1,\dots,z_K)` have the law N(omega, V) given what is known. The probability of a label
is its indicator, or its density, convolved with N(0, V): a product of Fourier transforms on a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from solvable.arrays import check_integer, check_real
from solvable.errors import InvalidData, InvalidParameter, NotConverged

Function = Callable[[np.ndarray], np.ndarray]

MOST_LABELS = 24
"""Largest number of labels without noise."""

MOST_VALUES = 3e7
"""Largest number of values of the transforms of all labels together."""

REACH = {2: 8.0, 3: 6.5}
"""Half-width of the grid in standard deviations of an index, by the number of indices."""

SIDES = {2: (128, 256, 512), 3: (64, 96, 128)}
"""Numbers of nodes on a side."""

FINE = {(2, False): 2048, (3, False): 256, (2, True): 512, (3, True): 128}
"""Nodes on a side at which labels are computed, by the number of indices and whether there is noise."""


class MultiIndexOutput:
    r"""Output of two or three indices: :math:`y=f(z_1,\dots,z_K)+\sqrt\Delta\,\xi`.

    Parameters
    ----------
    function : callable
        Function of an array of shape (m, K), which returns an array of shape (m,). Without noise it
        takes at most 24 values, such as a sign, a sum of signs, or the number of the largest index.
    directions : int
        Number K of indices, 2 or 3.
    noise : float
        Variance of Gaussian noise added to the label.

    Raises
    ------
    InvalidParameter
        If the function returns another shape, NaN or infinity, or, without noise, too many values.

    Notes
    -----
    Information of a label (inference 10). Backed by ``tests/inference/test_multi_index.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from solvable.inference import Gaussian, state_evolution
    >>> committee = MultiIndexOutput(lambda z: np.sign(z).sum(axis=-1), 2)
    >>> state_evolution(Gaussian(), committee, sample_ratio=1.5).overlap.round(3)
    array([[0.307, 0.307],
           [0.307, 0.307]])
    """

    def __init__(self, function: Function, directions: int = 2, *, noise: float = 0.0) -> None:
        if not callable(function):
            raise InvalidParameter(
                f"the function is {function!r:.40}; allowed: a function of an array (formulas: Output)."
            )
        check_integer("directions", directions, 2, 3)
        check_real("noise", noise, 0)
        self.function, self.directions, self.noise = function, directions, float(noise)
        self._values: dict[float, np.ndarray] = {}

    def draw(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a label for each row of indices, shape (n, K)."""
        clean = self.clean(z)
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape)

    def clean(self, z: np.ndarray) -> np.ndarray:
        """Labels without noise."""
        rows = z.reshape(-1, self.directions)
        labels = np.asarray(self.function(rows), dtype=np.float64)
        if labels.shape != rows.shape[:1] or not np.isfinite(labels).all():
            raise InvalidParameter(
                f"the function maps indices of shape {rows.shape} to {labels.shape}, or to NaN or "
                f"infinity; allowed: finite numbers of shape {rows.shape[:1]}."
            )
        return labels.reshape(z.shape[:-1])

    def labels(self, rho: float) -> np.ndarray:
        """Values of the label; with noise nodes of a trapezoid rule over it."""
        if rho not in self._values:
            self._values[rho] = self._find_labels(rho)
        return self._values[rho]

    def _find_labels(self, rho: float) -> np.ndarray:
        rng = np.random.default_rng(0)
        seen = self.clean(np.sqrt(rho) * rng.standard_normal((200_000, self.directions)))
        if self.noise:
            # the integrand varies over the deviation of the noise, and the rule converges geometrically
            step, reach = 0.8 * np.sqrt(self.noise), 6 * np.sqrt(self.noise)
            low, high = seen.min() - reach, seen.max() + reach
            most = MOST_VALUES / SIDES[self.directions][0] ** self.directions
            if (high - low) / step > most:
                least = ((high - low) / most / 0.8) ** 2
                raise InvalidParameter(
                    f"noise is {self.noise:g} for labels from {seen.min():.3g} to {seen.max():.3g}; "
                    f"allowed: 0 for a few labels, or at least {least:.2g}."
                )
            return np.arange(low, high + step, step)
        values = np.unique(seen)
        if values.size > MOST_LABELS:
            raise InvalidParameter(
                f"the function takes at least {values.size} values; allowed: at most {MOST_LABELS} "
                "without noise. Give noise above 0."
            )
        if values.size == 1:
            raise InvalidParameter(
                f"the function is {values[0]:g} everywhere; allowed: labels that depend on the indices."
            )
        return values

    def density(self, labels: np.ndarray | float, clean: np.ndarray) -> np.ndarray:
        """Probability or density of labels given those without noise, by broadcasting."""
        off = np.asarray(clean - labels)
        if not self.noise:
            return (np.abs(off) < 1e-9).astype(np.float64)
        return np.asarray(np.exp(-(off**2) / (2 * self.noise)) / np.sqrt(2 * np.pi * self.noise))

    def places(self, y: np.ndarray, rho: float) -> np.ndarray:
        """Places of labels among the values; all 0 with noise."""
        if self.noise:
            return np.zeros(y.shape, dtype=int)
        values = self.labels(rho)
        place = np.clip(np.searchsorted(values, y - 1e-9), 0, values.size - 1)
        if (wrong := np.abs(values[place] - y) > 1e-9).any():
            raise InvalidData(
                f"y holds {y[wrong][0]:g}; allowed: the values of the function, "
                f"{', '.join(f'{value:g}' for value in values)}."
            )
        return place

    @property
    def weight(self) -> float:
        """Weight of a label in sums over labels."""
        return 0.8 * float(np.sqrt(self.noise)) if self.noise else 1.0


class Grid:
    """Transforms of the labels' probabilities on a periodic grid, in units of an index's deviation."""

    def __init__(self, output: MultiIndexOutput, rho: float, side: int) -> None:
        from scipy import fft

        self.K, self.side, self.weight = output.directions, side, output.weight
        step = 2 * REACH[self.K] / side
        waves = [2 * np.pi * fft.fftfreq(side, step)] * (self.K - 1)
        self.waves = np.meshgrid(*waves, 2 * np.pi * fft.rfftfreq(side, step), indexing="ij")
        self.transforms = _transforms(output, rho, side)
        # the grid is periodic: means are taken where both ends are far
        axis = np.abs(fft.fftfreq(side) * side * step)
        far = np.clip((axis / REACH[self.K] - 0.8) / 0.2, 0, 1)
        ends = np.meshgrid(*[(1 + np.cos(np.pi * far)) / 2] * self.K, indexing="ij")
        self.window = np.prod(ends, axis=0)

    def _gaussian(self, C: np.ndarray) -> np.ndarray:
        """Transform of N(0, C)."""
        form = sum(
            C[a, b] * self.waves[a] * self.waves[b] for a in range(self.K) for b in range(self.K)
        )
        return np.asarray(np.exp(-form / 2))

    def _probabilities(self, V: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """Probability of each label, and its slopes, at all cavity means."""
        kernel = self._gaussian(V)
        for transform in self.transforms:
            smooth = transform * kernel
            yield self._values(smooth), [self._values(1j * wave * smooth) for wave in self.waves]

    def _values(self, transform: np.ndarray) -> np.ndarray:
        from scipy import fft

        return np.asarray(fft.irfftn(transform, s=(self.side,) * self.K))

    def scores(
        self, place: np.ndarray, omega: np.ndarray, V: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Messages of labels, given by their places among the values, and the sum of their slopes."""
        from scipy.ndimage import map_coordinates

        g, slope = np.zeros_like(omega), np.zeros_like(V)
        pairs = [(a, b) for a in range(self.K) for b in range(a + 1)]
        # transforms of the coefficients of cubic splines through the nodes
        step = 2 * REACH[self.K] / self.side
        spline = np.prod([(2 + np.cos(wave * step)) / 3 for wave in self.waves], axis=0)
        kernel = self._gaussian(V) / spline
        for k, transform in enumerate(self.transforms):
            rows = np.flatnonzero(place == k)
            smooth = transform * kernel
            tables = [smooth, *(1j * wave * smooth for wave in self.waves)]
            tables += [-self.waves[a] * self.waves[b] * smooth for a, b in pairs]
            where = (omega[rows] / step).T
            P, *rest = (
                map_coordinates(self._values(table), where, mode="grid-wrap", prefilter=False)
                for table in tables
            )
            shown = P > 1e-9  # other labels have no message
            rest = [np.where(shown, part / np.where(shown, P, 1.0), 0.0) for part in rest]
            g[rows] = np.transpose(rest[: self.K])
            for (a, b), second in zip(pairs, rest[self.K :], strict=True):
                slope[a, b] += np.sum(second - rest[a] * rest[b])
        return g, slope + np.tril(slope, -1).T

    def information(self, Q: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, float]:
        """Information E[g g^T] of a label at overlaps Q, and its entropy (inference 10)."""
        total, entropy = np.zeros((self.K, self.K)), 0.0
        # mean over N(0, Q) of a function that is smooth on the grid, for any Q
        chance = self._values(self._gaussian(Q)) * self.window
        for P, slopes in self._probabilities(V):
            seen = P > 1e-9
            share = np.where(seen, chance / np.where(seen, P, 1.0), 0.0)
            for a in range(self.K):
                for b in range(a + 1):
                    total[a, b] += np.sum(share * slopes[a] * slopes[b])
            entropy -= float(np.sum(np.where(seen, chance * P * np.log(np.where(seen, P, 1.0)), 0)))
        return self.weight * (total + np.tril(total, -1).T), self.weight * entropy

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second moments E[z|y], E[z z^T - 1|y] of each label, times the root of its chance."""
        kernel, origin = self._gaussian(np.eye(self.K)), (0,) * self.K
        first, second = [], []
        for transform in self.transforms:
            smooth = transform * kernel
            P = max(float(self._values(smooth)[origin]), 1e-300)
            factors = [1j * wave for wave in self.waves]
            scale = np.sqrt(self.weight / P)
            first.append([scale * self._values(f * smooth)[origin] for f in factors])
            second.append(
                [[scale * self._values(f * g * smooth)[origin] for g in factors] for f in factors]
            )
        return np.array(first), np.array(second)


def _transforms(output: MultiIndexOutput, rho: float, side: int) -> np.ndarray:
    """Low frequencies of each label's probability, labels first."""
    from scipy import fft

    K = output.directions
    fine = max(FINE[K, bool(output.noise)], side)
    step = 2 * REACH[K] / fine
    # nodes lie between the lines on which symmetric functions jump
    axis = (fft.fftfreq(fine) * fine + 0.5) * step
    nodes = np.stack(np.meshgrid(*[axis] * K, indexing="ij"), axis=-1)
    # ties, such as of the largest index, are broken in both ways
    apart = 1e-6 * step * np.arange(1, K + 1)
    clean = [output.clean(np.sqrt(rho) * (nodes + way * apart)) for way in (1, -1)]
    low = np.r_[0 : side // 2, fine - side // 2 : fine]
    keep = np.ix_(*[low] * (K - 1), np.arange(side // 2 + 1))
    shifts = [np.exp(-1j * np.pi * fft.fftfreq(fine))[low]] * (K - 1)
    shifts.append(np.exp(-1j * np.pi * fft.rfftfreq(fine))[: side // 2 + 1])
    shift = np.prod(np.meshgrid(*shifts, indexing="ij"), axis=0) * (side / fine) ** K
    values = output.labels(rho)
    parts = (sum(output.density(value, part) for part in clean) / 2 for value in values)
    return np.array([fft.rfftn(part)[keep] * shift for part in parts])


@lru_cache(maxsize=6)
def _grid(output: MultiIndexOutput, rho: float, side: int) -> Grid:
    return Grid(output, rho, side)


def _limits(output: MultiIndexOutput, rho: float) -> dict[int, float]:
    """Smallest eigenvalue of V / rho that each grid resolves."""
    K = output.directions
    room = MOST_VALUES / output.labels(rho).size
    # at 2.4 steps per deviation the information changes by 1e-7 with half of the step
    return {n: (2.4 * 2 * REACH[K] / n) ** 2 for n in SIDES[K] if n**K <= room}


def largest_overlap(output: MultiIndexOutput, rho: float) -> float:
    """Largest overlap that a grid resolves."""
    return 1 - min(_limits(output, rho).values())


def grid_for(output: MultiIndexOutput, rho: float, smallest: float) -> Grid:
    """Grid that resolves the smallest eigenvalue of V / rho, with which labels vary."""
    limits = _limits(output, rho)
    for side, limit in limits.items():
        if smallest >= limit:
            return _grid(output, rho, side)
    raise NotConverged(
        f"an overlap is above {1 - min(limits.values()):.3f}, where labels vary faster than the grid; "
        "allowed: lower overlaps. Take a smaller sample ratio, or more noise.",
        {"smallest": smallest},
    )
