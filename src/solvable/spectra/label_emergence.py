"""Sample ratios at which a direction leaves the bulk of a label-weighted second moment."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import critical_parameter, excess
from solvable.spectra.roots import bracketed_root


def balanced_emergence_ratio(strength: float) -> float:
    """Threshold of the plain label weighting for balanced labels of -1 and 1, in closed form."""
    if not abs(strength) <= 1:
        raise InvalidParameter(f"strength is {strength}; allowed: a number in [-1, 1].")
    if strength == 0:
        return float("inf")
    # alpha_c Delta² = 1 + 1 / lambda² with Delta lambda³ - lambda² - Delta lambda - 1 = 0
    # (spectra 26): alpha_c(lambda) is eliminated from the condition at the edge.
    delta = abs(strength)
    # The cubic is solved in 1 / lambda, whose leading coefficient does not vanish with the strength.
    roots = np.roots([1.0, delta, 1.0, -delta])
    inverse = float(roots[np.argmin(np.abs(roots.imag))].real)
    return float((1 + inverse**2) / delta**2)


def _grid() -> np.ndarray:
    """Logarithms of n/d at which ranges are searched; a range narrower than a step is not detected."""
    return np.linspace(np.log(1e-2), np.log(1e6), 97)


def _beyond(facing: LabelLaw, dimension: int | None, log_ratio: float) -> np.ndarray:
    """Relative distance of each direction beyond the upper edge, shape (k,)."""
    ratio = float(np.exp(log_ratio))
    used = facing if dimension is None else facing.clipped(max(ratio * dimension, 1.0))
    parameter = critical_parameter(used, ratio)[1]
    return excess(used, ratio, parameter) if parameter else np.full(facing.n_directions, -1.0)


def _on_grid(facing: LabelLaw, dimension: int | None) -> np.ndarray:
    """Distances of all directions on the grid, shape (ratios, k)."""
    return np.stack([_beyond(facing, dimension, float(log_ratio)) for log_ratio in _grid()])


def _windows(
    facing: LabelLaw, dimension: int | None, direction: int, values: np.ndarray
) -> tuple[tuple[float, float], ...]:
    """Ranges of n/d with an outlier at the upper end, from the distances on the grid."""

    def beyond(log_ratio: float) -> float:
        return float(_beyond(facing, dimension, log_ratio)[direction])

    grid = _grid()
    places = [float(np.exp(grid[0]))] if values[0] > 0 else []
    for k in np.flatnonzero((values[1:] > 0) != (values[:-1] > 0)):
        ends = float(values[k]), float(values[k + 1])
        crossing = bracketed_root(beyond, float(grid[k]), float(grid[k + 1]), ends=ends)
        places.append(float(np.exp(crossing)))
    if len(places) % 2:
        places.append(float("inf"))
    return tuple(zip(places[::2], places[1::2], strict=True))


def emergence_ratio(law: LabelLaw, *, dimension: int | None = None) -> np.ndarray:
    """Smallest n/d above which each direction stays an outlier at one end."""
    if dimension is None:
        law.check_bounded()
        return np.minimum(_last_crossings(law), _last_crossings(law.mirrored()))
    found = np.full(law.n_directions, np.inf)
    for facing in (law, law.mirrored()):
        values = _on_grid(facing, dimension)
        for i in range(law.n_directions):
            windows = _windows(facing, dimension, i, values[:, i])
            if windows and np.isinf(windows[-1][1]):
                found[i] = min(found[i], windows[-1][0])
    return found


def _last_crossings(law: LabelLaw) -> np.ndarray:
    """Ratio above which each direction is an outlier at the upper end, shape (k,), computed together."""
    # The edge's parameter lambda gives the ratio: 1 / alpha = E[T² / (lambda - T)²]   (spectra 25).
    largest = max(float(law.weights[-1]), 1e-300)
    reach = np.sqrt(law.weight_power) * 1e5
    above = np.geomspace(1e-9 * largest, max(reach, 10 * largest), 360)

    def beyond(above: np.ndarray, directions: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        share = law.probabilities * law.weights / (largest + above[:, None] - law.weights)
        ratios = 1 / np.einsum("qm,qm,m->q", share, share, 1 / law.probabilities)
        return ratios, ratios[:, None] * (share @ (law.second_moments[:, directions] - 1)) - 1

    ratios, values = beyond(above, slice(None))
    found = np.full(law.n_directions, np.inf)
    out = values[-1] > 0
    inside = values <= 0
    first = values.shape[0] - 1 - np.argmax(inside[::-1], axis=0)
    found[out] = np.where(inside[:, out].any(axis=0), np.inf, ratios[0])
    crossing = np.flatnonzero(out & inside.any(axis=0))
    if crossing.size:
        low, high = above[first[crossing]], above[first[crossing] + 1]
        for _ in range(48):
            middle = np.sqrt(low * high)
            at_middle = np.diagonal(beyond(middle, crossing)[1]) > 0
            low, high = np.where(at_middle, low, middle), np.where(at_middle, middle, high)
        found[crossing] = beyond(np.sqrt(low * high), crossing)[0]
    return found
