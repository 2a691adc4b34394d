"""The matrix of least nuclear norm that fits noiseless labels: solver, and error in the limit."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.hermite import panel_nodes
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.spectra.nuclear_norm import nuclear_norm_ratio
from solvable.spectra.rectangular import RectangularLaw
from solvable.spectra.roots import bracketed_root


class LeastNuclearNorm(NamedTuple):
    """A matrix that fits the labels, and how far its nuclear norm can be above the least one."""

    estimate: np.ndarray
    gap: float  # duality gap, relative to the nuclear norm
    steps: int


def least_nuclear_norm(
    inputs: np.ndarray,
    shape: tuple[int, int],
    y: np.ndarray,
    *,
    tolerance: float = 2e-5,
    max_steps: int = 20_000,
) -> LeastNuclearNorm:
    """Minimise the nuclear norm under the linear constraints by Douglas-Rachford splitting."""
    # `inputs` are the n token matrices (n, d L); the labels are their products with the matrix over
    # (d L)^(1/4).
    if len(y) >= inputs.shape[1]:
        # as many labels as entries: one matrix fits them
        X = np.asarray(inputs, dtype=float) / (shape[0] * shape[1]) ** 0.25
        return LeastNuclearNorm(np.linalg.lstsq(X, y[:, 0])[0].reshape(shape), 0.0, 0)
    basis, triangle = np.linalg.qr(np.asarray(inputs, dtype=float).T)
    # A S = y  <=>  basis^T S = c
    c = np.linalg.solve(triangle.T, y[:, 0] * (shape[0] * shape[1]) ** 0.25)
    z = basis @ c
    # a step of half the size of the least-squares solution's singular values takes the fewest iterations
    step = 0.5 * float(np.linalg.norm(z)) / np.sqrt(min(shape))
    gap = np.inf
    for k in range(1, max_steps + 1):
        x = z + basis @ (c - basis.T @ z)
        left, values, right = np.linalg.svd((2 * x - z).reshape(shape), full_matrices=False)
        shrunk = (left * np.maximum(values - step, 0)) @ right
        if k % 25 == 0:
            gap = _gap(x.reshape(shape), ((x - z) / step).reshape(shape))
            if gap <= tolerance:
                return LeastNuclearNorm(x.reshape(shape), gap, k)
        z += shrunk.ravel() - x
    raise NotConverged(
        f"the nuclear norm is at most a share {gap:.2g} above the least one after {max_steps} steps; "
        f"allowed: {tolerance:g}. Raise max_steps or the tolerance.",
        {"gap": gap, "steps": max_steps},
    )


def _gap(x: np.ndarray, dual: np.ndarray) -> float:
    """Relative duality gap of a feasible matrix and a matrix in the span of the sensors."""
    # <dual, x'> is equal for all x' that fit the labels, and at most |dual|_op |x'|_*
    norm = float(np.linalg.svd(x, compute_uv=False).sum())
    bound = float(np.sum(dual * x)) / max(1.0, float(np.linalg.norm(dual, 2)))
    return max(1 - bound / max(norm, 1e-300), 0.0)


def nuclear_norm_error(signal: RectangularSignal, sample_ratio: np.ndarray) -> np.ndarray:
    """Error of the least nuclear norm in the limit; 0 above its recovery threshold."""
    log_ratio, log_error = _curve(signal.aspect, signal.rank_ratio)
    alpha = np.asarray(sample_ratio, dtype=float)
    least = nuclear_norm_ratio(aspect=signal.aspect, rank_ratio=signal.rank_ratio)
    # the curve ends at the sample ratio where the error is 1e-4; both ends are continued as a line
    found = np.interp(np.log(alpha), log_ratio, log_error)
    few = alpha < np.exp(log_ratio[0])
    found = np.where(few, -alpha * -np.expm1(log_error[0]) / np.exp(log_ratio[0]), found)
    return np.where(alpha < least, np.exp(found), 0.0)


@lru_cache(maxsize=64)
def _curve(aspect: float, rank_ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of sample ratio and error along the effective noise, ascending in the ratio."""
    # Without penalty the threshold b solves D(t, b) = alpha, and E(t, b) = alpha t  (sensing 23): at each
    # t, the b with E = t D.
    rows = []
    for u in np.linspace(*LOG_NOISE, 36):
        law = RectangularLaw(aspect=aspect, rank_ratio=rank_ratio, noise=float(np.exp(u)))

        def excess(cut: float, law: RectangularLaw = law) -> float:
            error, divergence = soft_threshold(law, cut)
            return error - law.noise * divergence

        # b = 0 is a root too; between it and the wanted one the excess is negative. Starts below a tenth
        # of the noise's edge would be dominated by rounding.
        edge = law.noise**0.5 * (aspect**0.25 + aspect**-0.25)
        tried = [(part * edge, excess(part * edge)) for part in (0.6, 0.3, 0.1, 0.03)]
        low = next((pair for pair in tried if pair[1] < 0), None)
        if low is None:
            continue  # at rank ratios near 1 the threshold vanishes with the noise
        high = float(law.edges[-1, 1])
        cut = bracketed_root(excess, low[0], high, relative=1e-7, ends=(low[1], 1.0))
        error, divergence = soft_threshold(law, cut)
        rows.append((u, np.log(divergence), np.log(error)))
    # both are smooth in u
    fit = np.polynomial.Chebyshev.fit
    nodes, *columns = np.array(rows).T
    fine = np.linspace(*LOG_NOISE, 2_000)
    fine = fine[fine >= nodes[0]]
    log_ratio, log_error = (fit(nodes, column, 16)(fine) for column in columns)
    order = np.argsort(log_ratio)
    return log_ratio[order], log_error[order]


LOG_NOISE = (-8.0, 5.5)
"""Range of the logarithm of the effective noise along the curve."""


def soft_threshold(law: RectangularLaw, cut: float) -> tuple[float, float]:
    """Error of the soft threshold of the singular values, and its divergence per entry."""
    # E = 1 + int (f² - 2 f xi) mu / sqrt(beta), D = int f (s - xi) mu / (t sqrt(beta)), f = (s - b)_+
    # (sensing 23)
    angle, weight = panel_nodes([0.0, np.pi], 64)
    error, divergence = 1.0, 0.0
    for low, high in law.edges:
        start = max(float(low), cut)
        if start >= high:
            continue
        s = (start + high) / 2 - (high - start) / 2 * np.cos(angle)
        mass = law.density(s) * weight * np.sin(angle) * (high - start) / 2 / np.sqrt(law.aspect)
        best, f = law.denoised(s), s - cut
        error += float(mass @ (f**2 - 2 * f * best))
        divergence += float(mass @ (f * (s - best))) / law.noise
    return error, divergence
