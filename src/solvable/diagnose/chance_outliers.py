"""Random-sign controls, which find values above a bulk that unequal or correlated noise also has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.spectra.edges import tracy_widom_quantile

# Axes of the cosine transform before the sign flips, with the name of each control.
CONTROLS = (
    ((), "random signs"),
    ((1,), "random signs of the cosines of each row"),
    ((0,), "random signs of the cosines of each column"),
    ((0, 1), "random signs of the cosines of rows and columns"),
)

LARGE = 256  # length of the shorter side from which on twenty steps and their edge are enough


def confirmed(
    matrix: np.ndarray,
    tops: np.ndarray,
    vectors: Callable[[int], np.ndarray],
    *,
    symmetric: bool = False,
    overwrite: bool = False,
    level: float = 0.01,
    seed: int = 0,
) -> tuple[int, str]:
    """Count the largest values that exceed all controls, and name the control that ends the count."""
    # Random signs (spectra 8; arXiv:2012.02985). Independent symmetric entries keep their joint
    # distribution under random signs for any sizes: heavy tails, zeros, unequal variances of rows.
    # Cosines of a stationary sequence are nearly independent, so random signs of cosines keep
    # correlations along rows or columns. A signal of generic direction loses its norm in each control.
    # ``matrix`` is not taller than wide; ``vectors(k)`` are the singular vectors of the k largest
    # values on its shorter side, as columns. With ``overwrite``, a matrix in single precision is not
    # copied, because it may be large; afterwards its entries have no meaning.
    count, stopped = tops.size, ""
    work = workspace(matrix, overwrite)
    now: tuple[int, ...] = ()
    for axes, name in CONTROLS:
        if symmetric and len(axes) == 1:
            continue
        work, now = cosines(work, axes, now, overwrite=True), axes
        # Random signs of cosines keep the spectrum of correlated noise only to first order in correlation
        # length divided by row length: the largest value fluctuates by up to a third more.
        strict = level / 5 if axes else level
        control = Signs(symmetric, strict, axes=axes)
        passed = control.beyond(
            work, tops[:count], vectors, random_stream(seed, "signs", str(axes))
        )
        if passed < count:
            count, stopped = passed, name
        if not count:
            break
    return count, stopped


@dataclass(frozen=True)
class Signs:
    """Control of the largest values of a matrix: the same matrix, in cosine space, under random signs."""

    symmetric: bool
    level: float
    axes: tuple[int, ...] = ()  # axes along which the matrix is in cosine space
    draws: int | None = None  # matrices under random signs in the first round
    rounds: int = 8  # rounds in which the values counted so far are removed
    # True if the control is raised to the edge of noise without its largest directions, which gives a
    # level of 5 % for all counted values; features, at 1 %, have their level without it.
    raised: bool = False

    def beyond(
        self,
        work: np.ndarray,
        tops: np.ndarray,
        vectors: Callable[[int], np.ndarray],
        rng: np.random.Generator,
    ) -> int:
        """Count the largest values above the control; the entries keep their values up to rounding."""
        # The matrix is flipped and flipped back, lowered and raised in place, because it may be large.
        total = sum(float(np.vdot(row, row)) for row in work)
        rests = np.sqrt(np.maximum(total - np.cumsum(np.append(0.0, tops**2)), 0.0))
        # The edge under random signs is about proportional to the norm of what is left.   (spectra 38)
        edges = rests[:-1] * [self._after(work.shape, k) for k in range(tops.size)]
        passed = 0
        removed: list[tuple[np.ndarray, np.ndarray]] = []
        for _ in range(self.rounds):
            # Later rounds of a lower bound go on from a count that is confirmed: two draws are enough.
            reach = self._reach(work, rng, 2 if removed and self.draws else self.draws)
            reach *= self._after(work.shape, passed)
            beyond = int((tops > reach).sum())
            if beyond <= passed:
                passed = beyond
                break
            # All values above the edge that is expected without those before them are removed at once;
            # the next round tests them against random signs of the rest.
            ahead = tops > reach * edges / edges[min(passed, tops.size - 1)]
            before, passed = (
                passed,
                max(beyond, tops.size if ahead.all() else int(np.argmin(ahead))),
            )
            found = vectors(passed)[:, before:].astype(np.float32)
            found = cosines(found, tuple(axis for axis in self.axes if axis == 0))
            removed.append((found, -(found.T @ work)))
            _add(work, *removed[-1])
        for found, sizes in removed:
            _add(work, found, -sizes)
        return passed

    def _after(self, shape: tuple[int, int], count: int) -> float:
        return after_removal(shape, count) if self.raised else 1.0

    def _reach(self, matrix: np.ndarray, rng: np.random.Generator, draws: int | None) -> float:
        """Quantile of the largest singular value of the matrix under random signs."""
        p, q = matrix.shape
        # The largest value of a large matrix hardly fluctuates.
        draws = draws or int(np.clip(3_000 // p, 3, 24))
        tops = np.empty(draws)
        signs = np.full(-(-matrix.size // 8), 255, np.uint8)
        for k in range(draws):
            if self.symmetric:
                signed = flipped(matrix, rng, True)
                if not self.axes:
                    # A single large diagonal entry of a symmetric matrix is a feature along a
                    # coordinate axis.
                    np.fill_diagonal(signed, 0.0)
                tops[k] = _largest(signed, rng)
            else:
                # From one draw to the next, the entries whose sign differs are flipped.
                drawn = rng.integers(0, 256, signs.size, dtype=np.uint8)
                flip(matrix, ~(drawn ^ signs))
                tops[k] = _largest(matrix, rng)
                signs = drawn
        if not self.symmetric:
            flip(matrix, signs)
        # A control fluctuates by at least the Tracy-Widom unit, relative to the edge.
        unit = 0.5 * p ** (-2 / 3) if self.symmetric else _unit(p, q)
        return top_quantile(tops, self.level, unit)


def _unit(p: int, q: int) -> float:
    """Tracy-Widom unit of the largest singular value of noise, relative to the edge."""
    return float((p**-0.5 + q**-0.5) ** (1 / 3) / (2 * (p**0.5 + q**0.5)))


def after_removal(shape: tuple[int, int], count: int) -> float:
    """Edge of noise without its ``count`` largest directions, over that edge under random signs."""
    # (spectra 38) Noise without k directions is noise of (p - k) x (q - k) entries: its edge is
    # sqrt(p - k) + sqrt(q - k). Random signs spread what is left over all p x q entries.
    p, q = shape
    k = min(count, p - 1, q - 1)
    spread = ((p - k) * (q - k) / (p * q)) ** 0.5 * (p**0.5 + q**0.5)
    return float(((p - k) ** 0.5 + (q - k) ** 0.5) / spread)


def workspace(matrix: np.ndarray, overwrite: bool) -> np.ndarray:
    """Matrix in single precision, contiguous; a copy unless it may be overwritten."""
    small = 2_000_000  # entries, up to which a matrix is brought into the order of its rows
    if matrix.size <= small:
        return np.array(matrix, dtype=np.float32, order="C")
    whole = matrix.flags.c_contiguous or matrix.flags.f_contiguous
    if overwrite and whole and matrix.flags.writeable and matrix.dtype == np.float32:
        return matrix
    return np.array(matrix, dtype=np.float32, order="K" if whole else "C")


def _add(work: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Add left @ right in place."""
    for start in range(0, len(work), 256):
        work[start : start + 256] += left[start : start + 256] @ right


def cosines(
    matrix: np.ndarray,
    axes: tuple[int, ...],
    now: tuple[int, ...] = (),
    *,
    overwrite: bool = False,
) -> np.ndarray:
    """Transform a matrix so that it is in cosine space along ``axes``; now it is so along ``now``."""
    from scipy.fft import dct, idct

    for axis in (0, 1):
        if (axis in axes) != (axis in now):
            transform = dct if axis in axes else idct
            matrix = transform(matrix, axis=axis, norm="ortho", overwrite_x=overwrite)
    return np.asarray(matrix)


def top_quantile(tops: np.ndarray, level: float, unit: float) -> float:
    """Quantile of the largest value from a few draws, with a fluctuation of at least ``unit``."""
    # -1.2065 and 1.2680 are mean and standard deviation of the Tracy-Widom distribution.
    mean = float(tops.mean())
    spread = max(float(tops.std(ddof=1)) / 1.2680, unit * mean)
    margin = tracy_widom_quantile(1 - level) + 1.2065
    return mean + margin * spread * (1 + 1 / tops.size) ** 0.5


def flip(matrix: np.ndarray, bits: np.ndarray) -> None:
    """Flip the sign of each entry whose bit is zero, in place; a second call restores the entries."""
    whole = _by_rows(matrix).reshape(-1).view(np.uint32)
    step = 2**16  # blocks stay in the cache
    for start in range(0, whole.size, step):
        part = whole[start : start + step]
        chosen = np.unpackbits(~bits[start // 8 : (start + step) // 8], count=part.size)
        # The first bit of a floating-point number is its sign.
        mask = chosen.astype(np.uint32)
        mask <<= 31
        part ^= mask


def flipped(matrix: np.ndarray, rng: np.random.Generator, symmetric: bool) -> np.ndarray:
    """Flip the signs of the matrix entries at random; a symmetric matrix stays symmetric."""
    bits = rng.integers(0, 256, -(-matrix.size // 8), dtype=np.uint8)
    if not symmetric:
        signed = np.array(matrix, dtype=np.float32, order="C")
        flip(signed, bits)
        return signed
    signs = np.unpackbits(bits, count=matrix.size).reshape(matrix.shape).astype(np.float32)
    signs *= 2
    signs -= 1
    signs = np.triu(signs) + np.triu(signs, 1).T
    signs *= matrix
    return signs


def _by_rows(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix or its transpose, whichever is stored row by row."""
    return matrix if matrix.flags.c_contiguous else matrix.T


def _largest(matrix: np.ndarray, rng: np.random.Generator) -> float:
    """Largest singular value, computed by Golub-Kahan steps from a random vector."""
    p, q = sorted(matrix.shape)
    matrix = _by_rows(matrix)
    # Values next to an edge have the spacing p^(-2/3); p^(1/3) steps resolve this spacing.
    steps = 20 if p >= LARGE else min(p - 1, int(3 * p ** (1 / 3)) + 10)
    right = np.asarray(rng.standard_normal(matrix.shape[1]), dtype=np.float32)
    right /= np.linalg.norm(right)
    left = np.zeros(matrix.shape[0], dtype=np.float32)
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    rows = max(1, 2**18 // matrix.shape[1])  # a block of rows stays in the cache for both products
    for k in range(steps):
        left *= np.float32(-beside[k - 1] if k else 0.0)
        back = np.zeros_like(right)
        for start in range(0, len(left), rows):
            block = matrix[start : start + rows]
            left[start : start + rows] += block @ right
            back += left[start : start + rows] @ block
        diagonal[k] = float(left @ left) ** 0.5
        if not diagonal[k]:
            break
        left /= np.float32(diagonal[k])
        right = back / np.float32(diagonal[k]) - np.float32(diagonal[k]) * right
        beside[k] = float(right @ right) ** 0.5
        if not beside[k]:
            break
        right /= np.float32(beside[k])
    bidiagonal = np.diag(diagonal) + np.diag(beside[:-1], 1)
    top = float(np.linalg.norm(bidiagonal, 2))
    if p < LARGE:
        return top
    # In a large bulk twenty steps end below the edge. The coefficients converge to half the sum and
    # half the difference of the bulk's ends, which gives the edge. The largest value is 1.2
    # units below.
    half = steps // 2
    edge = float(diagonal[half:].mean() + beside[half - 1 : -1].mean())
    return max(top, edge * (1 - 1.2065 * _unit(p, q)))
