"""Root of a function of one variable inside a bracket, for functions that are slow to evaluate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.errors import NotConverged


def bracketed_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    absolute: float = 0.0,
    relative: float = 4e-16,
    ends: tuple[float, float] | None = None,
) -> float:
    """Find a root by inverse quadratic interpolation where this is safe, else by bisection."""
    # Chandrupatla's method, Adv. Eng. Softw. 28 (1997). It is implemented here because importing
    # SciPy's optimisers takes longer than a prediction. The function must be continuous, with
    # different signs at the ends of the bracket; known values at the ends save one evaluation each.
    # The search stops when the bracket is at most twice (absolute + relative times the modulus of
    # the root) wide.
    older, newer = float(low), float(high)
    at_older, at_newer = ends if ends is not None else (function(older), function(newer))
    if at_older == 0:
        return older
    if at_newer == 0:
        return newer
    if not _opposite(at_older, at_newer):
        raise NotConverged(
            f"the function is {at_older:.3g} and {at_newer:.3g} at the ends {low:.6g} and {high:.6g} "
            "of the bracket; allowed: values of different sign.",
            {"low": low, "high": high, "at_low": at_older, "at_high": at_newer},
        )
    share = 0.5
    # number of steps that bisects all exponents and digits of double precision
    for _ in range(1_200):
        place = newer + share * (older - newer)
        value = function(place)
        if np.isnan(value):
            break
        # The root is between ``place`` and ``older``; ``dropped`` is the interpolation's third point.
        if _opposite(value, at_newer):
            dropped, at_dropped = older, at_older
            older, at_older = newer, at_newer
        else:
            dropped, at_dropped = newer, at_newer
        newer, at_newer = place, value
        best = newer if abs(at_newer) < abs(at_older) else older
        width = abs(older - newer)
        tolerance = absolute + relative * abs(best)
        if at_newer == 0 or width <= 2 * tolerance or np.nextafter(newer, older) == older:
            return best
        share = _share((newer, older, dropped), (at_newer, at_older, at_dropped))
        least = tolerance / width
        share = min(max(share, least), 1 - least)
    raise NotConverged(
        "the root search met a value that is not a number, or did not settle.",
        {"place": newer, "value": at_newer, "other_end": older},
    )


def _opposite(one: float, other: float) -> bool:
    return (one < 0 < other) or (other < 0 < one)


def _share(places: tuple[float, float, float], values: tuple[float, float, float]) -> float:
    """Next point as a share of the way from first to second point: 1/2 unless the parabola is safe."""
    (a, b, c), (fa, fb, fc) = places, values
    if fc in (fa, fb):
        return 0.5
    place = (a - b) / (c - b)
    value = (fa - fb) / (fc - fb)
    # Under this condition the inverse parabola through the three points is monotone between the ends.
    if not 1 - np.sqrt(1 - place) < value < np.sqrt(place):
        return 0.5
    first = fa / (fb - fa) * fc / (fb - fc)
    second = (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return float(first + second)
