"""Spectra of label-weighted second moments of anisotropic inputs: bulks, gaps, outliers, overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.arrays import check_positive, random_stream
from solvable.errors import InvalidData, NotConverged
from solvable.spectra.label_law import LabelLaw

FINEST = 1e-7  # distance from the real axis that resolves gaps, in units of the spectrum's size


@dataclass(frozen=True)
class Outlier:
    """Outlier: an eigenvalue outside every bulk, caused by the direction."""

    eigenvalue: float
    squared_overlap: float  # squared overlap of the outlier's eigenvector with the direction
    rank: float  # number of other eigenvalues with a larger modulus


@dataclass(frozen=True)
class DirectionProfile:
    """Distribution of the weight of a direction over the spectrum."""

    places: np.ndarray  # grid of eigenvalues, shape (m,)
    density: np.ndarray  # eigenvalue density of the bulk over all directions, outliers excluded
    squared_overlap: np.ndarray  # mean over the eigenvectors at each grid point; 0 in gaps
    outliers: tuple[Outlier, ...]  # outliers, sorted by descending overlap
    best_squared_overlap: float  # largest: of an outlier, or within a bulk on average
    best_rank: float  # number of eigenvalues with a larger modulus than the best eigenvector's


@dataclass(frozen=True)
class _Noise:
    """Weights and variances that determine the noise, with counts of repeated variances."""

    weights: np.ndarray
    chances: np.ndarray
    variances: np.ndarray
    counts: np.ndarray
    n_samples: float

    def push(self, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push-forward b = E[T / (1 - T m)] and its derivative."""
        inverse = self.weights / (1 - self.weights * m[:, None])
        return inverse @ self.chances, inverse**2 @ self.chances

    def image(self, z: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Evaluate (1/n) sum_j sigma_j / (z - b sigma_j) and its derivatives in m and in z."""
        b, change = self.push(m)
        inverse = 1 / (z[:, None] - b[:, None] * self.variances)
        share = self.counts * self.variances / self.n_samples
        return (
            inverse @ share,
            change * (inverse**2 @ (share * self.variances)),
            -(inverse**2 @ share),
        )

    def density(self, z: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Density of eigenvalues."""
        b = self.push(m)[0]
        trace = (1 / (z[:, None] - b[:, None] * self.variances)) @ self.counts
        return np.maximum(-trace.imag / np.pi, 0.0)

    def solve(self, places: np.ndarray, scale: float) -> np.ndarray:
        """Transform m just above the real axis, by continuation from far above the axis."""
        size = max(self.weights.size, self.variances.size)
        # Arrays (points, weights or variances) have at most two million entries.
        rows = max(1, 2_000_000 // size)
        parts = [
            self._solve(places[start : start + rows], scale)
            for start in range(0, places.size, rows)
        ]
        return np.concatenate(parts)

    def _solve(self, places: np.ndarray, scale: float) -> np.ndarray:
        power = float(self.counts @ self.variances) / self.n_samples
        m = np.asarray(power / (places + 1j * scale))
        missed = np.full(places.shape, np.inf)
        for height in np.geomspace(scale, FINEST * scale, 40):
            z = places + 1j * height
            for _ in range(60):
                value, slope, _ = self.image(z, m)
                missed = np.abs(value - m) / np.maximum(np.abs(m), 1e-300)
                if missed.max() < 1e-11:
                    break
                step = (value - m) / (1 - slope)
                # The transform is in the lower half-plane; steps out of the half-plane are rejected.
                wild = (m + step).imag > 0
                m = np.where(wild, (m + value) / 2, m + step)
        if not missed.max() < 1e-6:
            worst = float(places[np.argmax(missed)])
            raise NotConverged(
                f"the spectrum at {worst:.4g} did not converge: relative error {missed.max():.1e}. "
                "Check the variances and the label distribution for extreme values.",
                {"place": worst, "missed": float(missed.max())},
            )
        return m


def direction_profile(
    law: LabelLaw,
    *,
    variances: np.ndarray,
    direction_variance: float,
    n_samples: float,
    places: np.ndarray | None = None,
) -> DirectionProfile:
    """Spectrum of a label-weighted second moment of anisotropic inputs, seen from one direction."""
    # C = (1/n) sum T x x^T with x ~ N(0, Sigma) and a label that depends on s = e.x / sqrt(s_e),
    # where e is an eigenvector of Sigma with eigenvalue s_e   (spectra 19): m(z) = (1/n) sum_j
    # sigma_j / (z - b sigma_j), b = E[T / (1 - T m)], e^T (z - C)^-1 e = 1 / (z - s_e E[T s² / (1 -
    # T m)]). Poles of the last function outside the bulks, in gaps too, are outliers; the residue
    # is the squared overlap. Within a bulk its imaginary part over the density is the mean squared
    # overlap of the eigenvectors there. The best overlap is the overlap of a level at mu = s_e E[T s²]
    # with random couplings to random levels of the bulk (accurate to about 0.03).
    check_positive(direction_variance=direction_variance, n_samples=n_samples)
    spread = np.asarray(variances, dtype=np.float64)
    if spread.ndim != 1 or not spread.size or not (np.isfinite(spread) & (spread > 0)).all():
        raise InvalidData(
            f"variances have shape {spread.shape}; allowed: (d,) with d >= 1, finite, above 0. "
            "Leave out directions without variance."
        )
    law = law.clipped(n_samples).merged(60)  # 600 change overlaps by 0.001, at ten times the cost
    unique, counts = np.unique(spread, return_counts=True)
    noise = _Noise(law.weights, law.probabilities, unique, counts.astype(float), n_samples)
    scale = _extent(law, unique, counts, direction_variance, n_samples)
    power = law.weight_power * direction_variance * float(spread.sum()) / n_samples
    grid = _grid(scale, 0.05 * np.sqrt(power)) if places is None else np.asarray(places, float)
    m = noise.solve(grid, scale)
    z = grid + 1j * FINEST * scale
    # With fewer samples than directions the matrix has a kernel: eigenvalues 0, arbitrary eigenvectors.
    rank = min(float(spread.size), n_samples * float(law.probabilities[law.weights != 0].sum()))
    density = noise_density = noise.density(z, m)
    moments = law.probabilities * law.weights * law.second_moments[:, 0]
    pole = z - direction_variance * ((1 / (1 - law.weights * m[:, None])) @ moments)
    inside = -m.imag > 1e-4 * np.abs(m)
    weight = np.maximum(-(1 / pole).imag / np.pi, 0.0)
    # The direction has a separate eigenvalue if its resonance is narrower than the spacing of
    # the other eigenvalues.
    resonance = -np.gradient(np.unwrap(np.angle(pole)), grid) / np.pi
    density = np.where(inside, np.maximum(density + resonance, 0.1 * density), density)
    overlap = np.where(inside, weight / np.where(inside, density, 1.0), 0.0)
    poles = _outliers(noise, grid, m, pole, inside, moments, direction_variance)
    ranked = sorted(
        (Outlier(place, c2, _rank(grid, density, place)) for place, c2 in poles),
        key=lambda outlier: -outlier.squared_overlap,
    )
    best, order = 0.0, rank
    if not ranked or ranked[0].squared_overlap < 0.5:
        count = min(int(rank), 600)
        if rank < spread.size:
            levels = _quantiles(grid, noise_density, (np.arange(count) + 0.5) / count)
            best, order = _best_of_many(levels, np.interp(levels, grid, overlap))
        else:
            shares, normal = _random_levels(count)
            levels = _quantiles(grid, noise_density, shares)
            pull = np.where(inside, pole.imag / np.where(inside, np.pi * noise_density, 1.0), 0.0)
            coupling = np.interp(levels, grid, np.maximum(pull, 0.0)) * rank / count
            height = direction_variance * float(moments.sum())
            best, order = _best(levels, np.sqrt(coupling) * normal, height)
        order *= rank / count
    else:
        best, order = ranked[0].squared_overlap, ranked[0].rank
    return DirectionProfile(grid, density, overlap, tuple(ranked), best, order)


def _extent(
    law: LabelLaw, unique: np.ndarray, counts: np.ndarray, variance: float, n_samples: float
) -> float:
    """Upper bound on the modulus of all eigenvalues, close to the largest modulus."""
    largest = float(np.abs(law.weights).max())
    top = max(float(unique[-1]), variance)
    effective = float(counts @ unique) / unique[-1]
    # Norm of the strongest directions' sample covariance, times the largest weight.
    return 1.05 * largest * top * (1 + np.sqrt((effective + 1) / n_samples)) ** 2


def _grid(scale: float, smallest: float) -> np.ndarray:
    """Grid whose steps grow with the modulus, because weak directions have much narrower bulks."""
    step = min(max(smallest, 1e-4 * scale), scale)
    reach = np.arcsinh(scale / step)
    # An even number of points, so that no point is 0.
    return np.asarray(step * np.sinh(np.linspace(-reach, reach, 1600)))


def _outliers(
    noise: _Noise,
    grid: np.ndarray,
    m: np.ndarray,
    pole: np.ndarray,
    inside: np.ndarray,
    moments: np.ndarray,
    variance: float,
) -> list[tuple[float, float]]:
    """Zeros of the pole function in gaps, where the function is real, with the residues."""
    found = []
    crossing = np.flatnonzero(
        ~inside[:-1] & ~inside[1:] & (pole.real[:-1] < 0) & (pole.real[1:] >= 0)
    )
    for k in crossing:
        share = -pole.real[k] / (pole.real[k + 1] - pole.real[k])
        place = float(grid[k] + share * (grid[k + 1] - grid[k]))
        at = np.array([m.real[k] + share * (m.real[k + 1] - m.real[k])])
        # Newton's method on the pair (z, m) from the interpolated zero.
        z = np.array([place])
        for _ in range(30):
            value, by_m, by_z = noise.image(z, at)
            inverse = 1 / (1 - noise.weights * at[:, None])
            level = variance * (inverse @ moments)
            change = variance * (inverse**2 @ (moments * noise.weights))
            jacobian = np.array([[-by_z[0], 1 - by_m[0]], [1.0, -change[0]]])
            step = np.linalg.solve(jacobian, [value[0] - at[0], level[0] - z[0]])
            z, at = z + step[0], at + step[1]
            if np.abs(step).max() < 1e-13 * max(1.0, abs(z[0])):
                break
        motion = by_z[0] / (1 - by_m[0])
        residue = float(1 / (1 - change[0] * motion))
        if 0 < residue <= 1:
            found.append((float(z[0]), residue))
    return found


def _rank(grid: np.ndarray, density: np.ndarray, place: float) -> float:
    """Expected number of eigenvalues with a larger modulus."""
    beyond = np.where(np.abs(grid) > abs(place), density, 0.0)
    return float(np.trapezoid(beyond, grid))


def _best(levels: np.ndarray, couplings: np.ndarray, height: float) -> tuple[float, float]:
    """Mean largest overlap of a level with an eigenvector, and the mean rank of that eigenvector."""
    found = []
    for places, row in zip(levels, couplings, strict=True):
        matrix = np.diag(np.append(places, height))
        matrix[-1, :-1] = matrix[:-1, -1] = row
        values, vectors = np.linalg.eigh(matrix)
        best = int(np.argmax(vectors[-1] ** 2))
        found.append((vectors[-1, best] ** 2, np.sum(np.abs(values) > abs(values[best]))))
    overlap, rank = np.mean(found, axis=0)
    return float(overlap), float(rank)


@lru_cache(maxsize=8)
def _random_levels(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of levels, as shares of the density below, and of amplitudes; shape (draws, count)."""
    # Levels are those of GOE matrices, here in tridiagonal form: the highest ones are closer to the
    # edge of the bulk, and scatter more, than regularly spaced levels.
    from scipy.linalg import eigvalsh_tridiagonal

    rng = random_stream("direction profile", count)
    # Small matrices scatter more and take less time.
    draws = min(max(32, 2_000_000 // count**2), 400)
    root = np.sqrt(rng.chisquare(np.arange(count - 1, 0, -1), (draws, count - 1)) / count)
    normal = rng.standard_normal((2, draws, count))
    diagonal = normal[0] * np.sqrt(2 / count)
    x = np.array([eigvalsh_tridiagonal(*pair) for pair in zip(diagonal, root, strict=True)])
    x = np.clip(x / 2, -1, 1)
    shares = 0.5 + (x * np.sqrt(1 - x**2) + np.arcsin(x)) / np.pi
    # Levels beyond the edge of the bulk are put close to the edge. A mean square of exactly 1 halves
    # the variance of the average.
    normal[1] /= np.sqrt(np.mean(normal[1] ** 2, axis=0))
    return np.clip(shares, 0.02 / count, 1 - 0.02 / count), normal[1]


def _best_of_many(levels: np.ndarray, overlaps: np.ndarray) -> tuple[float, float]:
    """Mean of the largest overlap of a direction with the null space, for Gaussian amplitudes."""
    rng = random_stream("direction profile", levels.size)
    drawn = overlaps * rng.chisquare(1, (256, levels.size))
    best = np.argmax(drawn, axis=1)
    ranks = np.sum(np.abs(levels) > np.abs(levels[best])[:, None], axis=1)
    return float(np.minimum(drawn.max(axis=1), 1.0).mean()), float(ranks.mean())


def _quantiles(grid: np.ndarray, density: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Places below which there are given shares of a density."""
    steps = np.diff(grid) * (density[1:] + density[:-1]) / 2
    mass = np.concatenate([[0.0], np.cumsum(steps)])
    # Gaps without mass would make the inverse ambiguous.
    mass += np.linspace(0, 1e-9 * mass[-1], mass.size)
    return np.asarray(np.interp(shares * mass[-1], mass, grid))
