r"""Finite-size overlap of a vector with the span of the outermost eigenvectors.

The deterministic equivalent of P + N, P with eigenvalues x of shares s and N free with weights w, has
G(z) = sum s / (zeta - x) and z = zeta + E[w² a / (1 - w a)], a = G / delta. The share of a vector
with the profile v on P beyond a cut is an integral along the vertical line through the cut, where all
functions are smooth. Each eigenvalue of P enters G with its share 1/D, which rounds the transition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def masses_beyond(
    cuts: np.ndarray,
    *,
    atoms: np.ndarray,
    shares: np.ndarray,
    profiles: np.ndarray,
    weights: np.ndarray,
    probabilities: np.ndarray,
    couplings: np.ndarray,
    aspect_ratio: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Share of all eigenvalues above each cut, (m,), and share of each vector's squared norm, (m, p)."""
    power, coupled = probabilities * weights**2, probabilities[:, None] * couplings
    scale = float(np.sqrt(power.sum() / aspect_ratio + shares @ (atoms - shares @ atoms) ** 2))
    # M(cut) = 1/2 - (1/pi) int_0^inf Re G(cut + i y) dy, by the trapezoid rule in log y. Beyond its ends
    # the integrand falls as 1/y and as y: the two geometric sums are added to the weights of the ends.
    steps, rate = 40, np.log(10) / 5
    heights = scale * 10.0 ** (4 - np.arange(steps) / 5)
    spans = np.full(steps, rate / np.pi)
    spans[[0, -1]] /= 1 - np.exp(-rate)
    above = np.full(cuts.size, 0.5)
    above_of = np.full((cuts.size, len(profiles)), 0.5)
    zeta = cuts + 1j * heights[0]
    for height, span in zip(heights, spans, strict=True):
        z = cuts + 1j * height
        for _ in range(
            40
        ):  # Newton's method, started from the solution one step higher up the vertical line
            inverse = 1 / (zeta[:, None] - atoms)
            G, change = inverse @ shares, -(inverse**2) @ shares
            a = G / aspect_ratio
            denominator = 1 / (1 - a[:, None] * weights)
            energy = (denominator @ power) * a
            gap = zeta + energy - z
            if np.abs(gap).max() < 1e-7 * (scale + height):
                break
            slope = 1 + (denominator**2 @ power) / aspect_ratio * change
            newton = zeta - gap / slope
            # Solutions are above z; a step below z is replaced by a fixed-point step.
            inside = newton.imag >= height * (1 - 1e-9)
            zeta = np.where(inside, newton, (zeta + z - energy) / 2)
        # A vector with coupling u has its own self-energy E[u a / (1 - w a)].
        own = _product(denominator, coupled) * a[:, None]
        resolvent = 1 / (1 / _product(inverse, profiles.T) + energy[:, None] - own)
        above -= span * height * G.real
        above_of -= span * height * resolvent.real
    return above, above_of


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Complex times real matrix, in half the time of a product of two complex matrices."""
    return np.asarray(left.real @ right + 1j * (left.imag @ right))


@dataclass(frozen=True)
class Ranking:
    """Ranking of eigenvalues by distance beyond the edges or, inside the edges, from a centre."""

    lower: float
    upper: float
    centre: float

    def cuts(self, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Upper and lower cuts of the ranking, from inside the bulk to given distances outside."""
        far = max(self.upper - self.centre, self.centre - self.lower)
        radii = np.linspace(0.1, 1, 40) * far
        high = [np.minimum(self.centre + radii, self.upper), self.upper + distances]
        low = [np.maximum(self.centre - radii, self.lower), self.lower - distances]
        return np.concatenate(high), np.concatenate(low)

    def masses(self, distances: np.ndarray, places: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Convert columns for the mass above grid points to columns for the mass beyond both cuts."""
        high, low = self.cuts(distances)
        columns = [
            1 + np.interp(high, places, column) - np.interp(low, places, column)
            for column in above.T
        ]
        return np.stack(columns, axis=1)


def _gathered(
    weights: np.ndarray, probabilities: np.ndarray, couplings: np.ndarray, **rest: Any
) -> dict[str, Any]:
    """Any number of weights is represented by 400: a hundred single weights at each end, and groups."""
    # Off the real axis all functions are smooth in the weights: overlaps change by up to 3e-4.
    order, ends = np.argsort(weights), 100
    if order.size > 4 * ends:
        inner = np.linspace(ends, order.size - ends, 2 * ends, endpoint=False).astype(int)
        starts = np.r_[:ends, inner, order.size - ends : order.size]
        chance = np.add.reduceat(probabilities[order], starts)
        both = np.column_stack([weights, couplings]) * probabilities[:, None]
        means = np.add.reduceat(both[order], starts, axis=0) / chance[:, None]
        weights, probabilities, couplings = means[:, 0], chance, means[:, 1:]
    return rest | {"weights": weights, "probabilities": probabilities, "couplings": couplings}


def span_overlaps(
    rankings: Sequence[Ranking],
    n_directions: int,
    n_features: int,
    **spectrum: np.ndarray | float,
) -> np.ndarray:
    """Mean over rankings of each vector's overlap with the directions ranked first."""
    atoms = np.asarray(spectrum["atoms"])
    centre = float(np.mean([ranking.centre for ranking in rankings]))
    bulk = [abs(edge - centre) for at in rankings for edge in (at.lower, at.upper)]
    reach = max(atoms.max() - centre, centre - atoms.min()) + float(np.mean(bulk))
    lower, upper = (
        float(np.mean([getattr(at, end) for at in rankings])) for end in ("lower", "upper")
    )
    whole = Ranking(lower, upper, centre)
    gathered = _gathered(**spectrum)  # type: ignore[arg-type]

    def evaluated(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Grid of eigenvalues; above each grid point, the share of all eigenvalues and of each vector."""
        places = np.unique(np.concatenate(whole.cuts(distances)))
        above, above_of = masses_beyond(places, **gathered)
        return places, np.column_stack([above, above_of])

    # the grid is finest at the edge, which contains the cut
    distances = reach * np.linspace(0, 1, 40) ** 3
    places, above = evaluated(distances)
    # cut beyond which there are as many eigenvalues as requested directions
    share = n_directions / n_features
    inner = whole.cuts(distances)[0].size - distances.size
    last = [
        int(np.argmax(at.masses(distances, places, above)[:, 0] <= share)) - inner
        for at in rankings
    ]
    if (
        min(last) > 0
    ):  # a lone eigenvalue far out is a step between two cuts, whose position is found here
        between = np.linspace(distances[min(last) - 1], distances[max(last)], 40)
        more, above_more = evaluated(between)
        distances = np.union1d(distances, between)
        places, order = np.unique(np.concatenate([places, more]), return_index=True)
        above = np.concatenate([above, above_more])[order]
    overlaps = []
    for ranking in rankings:
        mass = ranking.masses(distances, places, above)
        order = np.argsort(mass[:, 0], kind="stable")
        overlaps.append([np.interp(share, mass[order, 0], column[order]) for column in mass.T[1:]])
    return np.clip(np.mean(overlaps, axis=0), 0.0, 1.0)
