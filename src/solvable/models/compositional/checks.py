"""Checks of compositional targets: overlaps, last layer, scaling with the dimension, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from solvable.frame.checking import spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point

RESOLVED = 0.5
"""Predicted squared overlap above which a feature counts as recovered."""

ASYMPTOTIC = 15
"""Samples per feature, n/D, from which the law of the first step is tested."""


def total(point: Point) -> int:
    """Number D of features of the input at a point."""
    setting = point.parameters
    return comb(setting["dimension"] + setting["degree"] - 1, setting["degree"])


def ratio(point: Point) -> float:
    """Samples per feature, n/D."""
    return float(point.parameters["samples"] / total(point))


def where(point: Point, feature: int | None = None) -> str:
    """Words for a place in the study."""
    setting = point.parameters
    text = f"d = {setting['dimension']}, {setting['second_layer']} last layer"
    text += f", {setting['layers']} layers, n/D = {ratio(point):.3g}"
    return text if feature is None else f"rotated feature {feature + 1}, {text}"


def _asymptotic(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if ratio(point) >= ASYMPTOTIC]


def feature_overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of one rotated feature's mean squared overlap from its prediction."""
    findings = []
    for point in _asymptotic(points):
        measured, predicted = point.mean("squared_overlap"), point.predicted("squared_overlap")
        errors = spread(point, "squared_overlap")
        for k in np.flatnonzero(predicted > RESOLVED):
            findings.append(
                Finding(
                    float(measured[k]),
                    float(predicted[k]),
                    float(0.06 + 4 * errors[k]),
                    float(errors[k]),
                    point.replicates,
                    detail=f"Largest deviation: {where(point, int(k))}.",
                )
            )
    if not findings:
        return NotTestable(
            f"no point has n/D >= {ASYMPTOTIC} and a rotated feature of predicted squared overlap "
            f"above {RESOLVED}; raise samples"
        )
    return worst(findings)


def subspace_overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the rotation-invariant overlap of the whole representation."""
    findings = []
    for point in _asymptotic(points):
        error = float(spread(point, "subspace_overlap"))
        findings.append(
            Finding(
                float(point.mean("subspace_overlap")),
                float(point.predicted("subspace_overlap")),
                0.04 + 3 * error,
                error,
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(f"no point has n/D >= {ASYMPTOTIC}; raise samples")
    return worst(findings)


def dense_like_diagonal(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean miss of the common law with a dense last layer less that with a diagonal one."""
    misses: dict[str, list[float]] = {"dense": [], "diagonal": []}
    for point in _asymptotic(points):
        difference = point.values("squared_overlap") - point.predicted("squared_overlap")
        used = point.predicted("squared_overlap") > RESOLVED
        if used.any():
            misses[point.parameters["second_layer"]] += difference[:, used].mean(axis=1).tolist()
    if min(map(len, misses.values())) < 2:
        return NotTestable(
            "the study does not hold recovered features with second_layer=dense and with "
            "second_layer=diagonal; run with --set second_layer=dense,diagonal"
        )
    dense, diagonal = (np.array(misses[kind]) for kind in ("dense", "diagonal"))
    error = float(np.hypot(_error(dense), _error(diagonal)))
    return Finding(
        float(dense.mean() - diagonal.mean()),
        0.0,
        0.02 + 3 * error,
        error,
        dense.size + diagonal.size,
        detail=f"Dense misses the law by {dense.mean():.3f}, diagonal by {diagonal.mean():.3f}.",
    )


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


def last_layer(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of an eigenvalue of the fitted last layer, in units of its norm."""
    findings = []
    for point in _asymptotic(points):
        if point.parameters["layers"] != 3:
            continue
        measured = point.mean("last_layer_eigenvalues")
        predicted = point.predicted("last_layer_eigenvalues")
        errors = spread(point, "last_layer_eigenvalues")
        norm = float(np.linalg.norm(predicted))
        k = int(np.argmax(np.abs(measured - predicted)))
        findings.append(
            Finding(
                float(measured[k]) / norm,
                float(predicted[k]) / norm,
                float(0.05 + 3 * errors[k] / norm),
                float(errors[k]) / norm,
                point.replicates,
                detail=f"Largest deviation: eigenvalue {k + 1}, {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            f"no point has three layers and n/D >= {ASYMPTOTIC}; raise samples or set layers=3"
        )
    return worst(findings)


def last_layer_found(points: Sequence[Point]) -> Finding | NotTestable:
    """Distance of the fitted from the true eigenvalues of B where recovery is nearly complete."""
    findings = []
    for point in points:
        truth = point.predicted("last_layer_eigenvalues_of_target")
        overlaps = point.predicted("squared_overlap")
        weights = point.predicted("weights")
        if truth.ndim == 0 or point.parameters["layers"] != 3:
            continue
        # Eigenvalues shrink by c^2, so that their distance says how much of B was recovered.
        if float(weights**2 @ overlaps) < 0.9:
            continue
        scale = float(np.linalg.norm(truth))
        distance = (point.values("last_layer_eigenvalues") - truth) / scale
        lengths = np.linalg.norm(distance, axis=1)
        findings.append(
            Finding(
                float(lengths.mean()),
                0.0,
                0.2,
                _error(lengths) if lengths.size > 1 else None,
                point.replicates,
                "at most",
                f"Largest: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            "no point with three layers and the identity readout has nine tenths of the last "
            "layer within reach; raise samples"
        )
    return worst(findings)


def error_level(points: Sequence[Point]) -> Finding | NotTestable:
    """Normalised error of a three-layer target relative to its prediction."""
    findings = []
    for point in _asymptotic(points):
        if point.parameters["layers"] != 3:
            continue
        predicted = float(point.predicted("normalised_mse"))
        error = float(spread(point, "normalised_mse")) / predicted
        findings.append(
            Finding(
                float(point.mean("normalised_mse")) / predicted,
                1.0,
                0.1 + 3 * error,
                error,
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            f"no point has three layers and n/D >= {ASYMPTOTIC}; raise samples or set layers=3"
        )
    return worst(findings)


def kernel_blind(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest share of the label beyond degree 2 that a kernel misses."""
    findings = []
    for point in points:
        layered = float(point.mean("normalised_mse"))
        beyond = 1 - float(point.predicted("degree_two_share"))
        for name in ("polynomial", "rbf"):
            key = f"{name}_kernel_normalised_mse"
            error = float(point.mean(key))
            if np.isnan(error) or layered > 0.8 or point.parameters["dimension"] < 40:
                continue
            findings.append(
                Finding(
                    error / beyond,
                    0.9,
                    0.0,
                    float(spread(point, key)) / beyond,
                    point.replicates,
                    "at least",
                    f"{name} kernel, {where(point)}: errors {error:.2f} and {layered:.2f}.",
                )
            )
    if not findings:
        return NotTestable(
            "no point has dimension >= 40, a kernel baseline (kernel_samples >= samples) and a "
            "layered error below 0.8"
        )
    return worst(findings)


def kernel_floor(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest error of a kernel less what its degree and samples allow."""
    findings = []
    for point in points:
        floor = float(point.predicted("polynomial_kernel_normalised_mse"))
        for name in ("polynomial", "rbf"):
            key = f"{name}_kernel_normalised_mse"
            if np.isnan(point.mean(key)):
                continue
            error = float(spread(point, key))
            findings.append(
                Finding(
                    float(point.mean(key)),
                    floor,
                    0.02 + 3 * error,
                    error,
                    point.replicates,
                    "at least",
                    f"{name} kernel, {where(point)}.",
                )
            )
    if not findings:
        return NotTestable("no point has a kernel baseline; set kernel_samples")
    return worst(findings)
