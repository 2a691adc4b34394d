"""Quadrature panels that grow with the distance from given points, and tables of smooth functions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from solvable.hermite import panel_nodes

FAR = 9.5
"""Standard deviations at which Gaussian integrals end; the mass beyond is 2e-21."""


def graded_nodes(
    low: float,
    high: float,
    points: Iterable[float] = (),
    scale: float = 1.0,
    *,
    order: int = 12,
    panels: int = 60,
    inner: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [low, high]: even panels, and panels of half a scale around each point."""
    places = np.unique(np.fromiter(points, float))
    places = places[(places >= low - 14 * scale) & (places <= high + 14 * scale)]
    edges = [np.linspace(low, high, panels + 1), places]
    if places.size:
        # panels around neighbouring points lie on one lattice, so that they are shared
        cell = np.round(places[:, None] / (scale / 2)) + np.arange(-28, 29)
        edges.append(np.unique(cell) * scale / 2)
        # beyond 14 scales widths grow by 1.35, up to half way to the next point
        middles = (places[1:] + places[:-1]) / 2
        bounds = np.concatenate([[low], middles, [high]])[:, None]
        count = int(max(np.log(max((high - low) / (14 * scale), 1.0)) / np.log(1.35), 0.0)) + 1
        far = 14 * scale * 1.35 ** np.arange(1, count + 1)
        right, left = places[:, None] + far, places[:, None] - far
        edges += [right[right < bounds[1:]], left[left > bounds[:-1]]]
        # `inner` halves panels next to a point, for functions that vary there like a square root
        small = scale * 0.5 ** np.arange(2, inner + 2)
        edges += [(places[:, None] + small).ravel(), (places[:, None] - small).ravel()]
    cuts = np.unique(np.concatenate(edges))
    cuts = cuts[(cuts >= low) & (cuts <= high)]
    cuts = cuts[np.concatenate([[True], np.diff(cuts) > 1e-12 * (high - low)])]
    return panel_nodes(cuts, order)


def gaussian_nodes(
    variance: float, points: Iterable[float] = (), scale: float = 1.0, **options: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and probabilities of a centred Gaussian variable, dense around the points."""
    if variance <= 0:
        return np.zeros(1), np.ones(1)
    spread = np.sqrt(variance)
    x, weight = graded_nodes(-FAR * spread, FAR * spread, points, scale, **options)
    chance = weight * np.exp(-(x**2) / (2 * variance))
    return x, chance / chance.sum()
