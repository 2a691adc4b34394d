"""Checks of filters on Gaussian inputs: spectra, overlaps, hidden features, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from solvable.frame.checking import spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point

RESOLVED = 0.2
"""Predicted squared overlap from which the eigenvalue of a direction counts as out of the bulk."""

FAR_BELOW = 0.6
"""Part of the emergence ratio below which nothing is found."""

SMALLEST = 50
"""Dimension below which corrections of order 1/d exceed the tolerances."""

FOUND = 0.7
"""Predicted subspace overlap from which the filter has something to give to a readout."""


def where(point: Point) -> str:
    """Words for a place in the study."""
    setting = point.parameters
    text = f"n/d = {setting['ratio']:.3g}, target {setting['target']}"
    if setting["target"] == "subspace":
        return text
    text += f", channel {setting['channel']}, label map {setting['label_map']}"
    return text if setting["lift"] == "none" else f"{text}, lift {setting['lift']}"


def _plain(points: Iterable[Point]) -> list[Point]:
    return [
        one
        for one in points
        if one.parameters["target"] == "single-index" and one.parameters["lift"] == "none"
    ]


def _of(points: Iterable[Point], target: str) -> list[Point]:
    return [one for one in points if one.parameters["target"] == target]


def least_spread(overlap: np.ndarray) -> np.ndarray:
    """A standard deviation that squared overlaps have at least, for few replicates that agree.

    Half of what was measured at d = 120, where it is largest.
    """
    return np.asarray(overlap * (1 - overlap) ** 2 / 2)


def _compared(
    points: Sequence[Point],
    name: str,
    tolerance: Callable[[Point], float],
    missing: str,
    errors: float = 3.0,
    *,
    is_overlap: bool = False,
) -> Finding | NotTestable:
    """Worst deviation of a metric from its prediction, largest entry of a list."""
    findings = []
    for point in points:
        measured, predicted = np.atleast_1d(point.mean(name)), np.atleast_1d(point.predicted(name))
        error = np.atleast_1d(spread(point, name))
        if is_overlap:
            error = np.maximum(error, least_spread(predicted) / np.sqrt(point.replicates))
        if not np.isfinite(measured).all() or not np.isfinite(predicted).all():
            continue
        findings += [
            Finding(
                float(measured[k]),
                float(predicted[k]),
                tolerance(point) + errors * float(error[k]),
                float(error[k]),
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
            for k in range(measured.size)
        ]
    return worst(findings) if findings else NotTestable(missing)


def overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the squared overlap of a single direction, through the transition."""
    return _compared(
        _plain(points),
        "squared_overlap",
        lambda _: 0.04,
        "no point has the target single-index without lift; run with --set target=single-index",
        errors=4,
        is_overlap=True,
    )


def eigenvalue(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the place of an outlier, in units of the edge of the bulk."""
    chosen = [
        one for one in _plain(points) if float(one.predicted("squared_overlap")[0]) > RESOLVED
    ]
    return _compared(
        chosen,
        "eigenvalue",
        lambda point: 0.03 * abs(float(point.predicted("bulk_edge"))),
        f"no point of a single-index target has a predicted squared overlap above {RESOLVED}; raise "
        "ratio",
    )


def edges(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the extreme eigenvalue at the end that holds no direction."""
    chosen = [
        one for one in _plain(points) if one.parameters["label_map"] != "raw" or _bounded(one)
    ]
    return _compared(
        chosen,
        "opposite_edge",
        lambda point: 0.05 * abs(float(point.predicted("opposite_edge"))) + 0.01,
        "no point has the target single-index with bounded labels; run with --set "
        "target=single-index",
    )


def _bounded(point: Point) -> bool:
    return point.parameters["channel"] not in ("square", "absolute")


def nothing_below(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest squared overlap far below the threshold."""
    findings = []
    for point in _plain(points):
        threshold = float(point.predicted("emergence_ratio")[0])
        dimension = point.parameters["dimension"] or 400
        if not point.parameters["ratio"] <= FAR_BELOW * threshold or dimension < SMALLEST:
            continue
        error = float(spread(point, "squared_overlap")[0])
        findings.append(
            Finding(
                float(point.mean("squared_overlap")[0]),
                0.1,
                3 * error,
                error,
                point.replicates,
                "at most",
                f"Largest: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            f"no point of a single-index target has ratio below {FAR_BELOW} of its threshold"
        )
    return worst(findings)


def lifted(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the squared overlap after a lift, well above the threshold."""
    # The transition after a lift is predicted without its rounding.
    chosen = [
        one
        for one in points
        if one.parameters["lift"] != "none" and float(one.predicted("squared_overlap")[0]) > 0.3
    ]
    return _compared(
        chosen,
        "squared_overlap",
        lambda _: 0.05,
        "no point has a lift and a predicted squared overlap above 0.3; run with --preset lift",
        errors=4,
        is_overlap=True,
    )


def hidden_overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the best overlap among strong irrelevant directions."""
    return _compared(
        _of(points, "hidden"),
        "best_squared_overlap",
        lambda _: 0.1,
        "no point has the target hidden; run with --set target=hidden",
    )


def hidden_rank(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the rank by modulus of the best eigenvector, in nuisance directions."""
    chosen = [
        one
        for one in _of(points, "hidden")
        # Without a feature the best of the eigenvectors may be any.
        if float(one.predicted("deflated_squared_overlap")) > 0.5
    ]
    return _compared(
        chosen,
        "best_rank",
        lambda point: 0.25 * point.parameters["nuisance"],
        "no point of a hidden target has a feature to be found; raise ratio",
    )


def deflated_overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the overlap once the strong directions are filtered out."""
    chosen = [
        one
        for one in _of(points, "hidden")
        if float(one.predicted("deflated_squared_overlap")) > RESOLVED
    ]
    return _compared(
        chosen,
        "deflated_squared_overlap",
        lambda _: 0.05,
        f"no point of a hidden target has a predicted overlap above {RESOLVED}; raise ratio",
    )


def deflation_leads(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest rank of a feature that is clearly out after the deflation."""
    findings = []
    for point in _of(points, "hidden"):
        if float(point.predicted("deflated_squared_overlap")) > 0.5:
            findings.append(
                Finding(
                    float(point.values("deflated_rank").max()),
                    0.0,
                    0.0,
                    None,
                    point.replicates,
                    "at most",
                    f"Raw rank {float(point.mean('best_rank')):.0f}. Largest: {where(point)}.",
                )
            )
    if not findings:
        return NotTestable("no point of a hidden target has a predicted overlap above 0.5")
    return worst(findings)


def subspace(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the subspace overlap."""
    return _compared(
        _of(points, "subspace"),
        "subspace_overlap",
        lambda _: 0.05,
        "no point has the target subspace; run with --set target=subspace",
        errors=4,
        is_overlap=True,
    )


def one_sign(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest share of the subspace that eigenvectors of one sign hold, where both hold it."""
    findings = []
    for point in _of(points, "subspace"):
        if float(point.predicted("subspace_overlap")) < FOUND:
            continue
        error = float(spread(point, "upper_subspace_overlap"))
        findings.append(
            Finding(
                float(point.mean("upper_subspace_overlap")),
                0.5,
                0.05 + 3 * error,
                error,
                point.replicates,
                "at most",
                f"Both signs: {float(point.mean('subspace_overlap')):.2f}. {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(f"no subspace target has a predicted overlap above {FOUND}; raise ratio")
    return worst(findings)


def beats_kernels(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest gap between the errors of unfiltered networks and that of the filtered one."""
    findings = []
    for point in _of(points, "subspace"):
        if float(point.predicted("subspace_overlap")) < FOUND:
            continue
        for name in ("kernel_error", "deep_kernel_error"):
            gaps = point.values(name) - point.values("error")
            if not np.isfinite(gaps).all():
                continue
            error = float(gaps.std(ddof=1) / np.sqrt(gaps.size)) if gaps.size > 1 else 0.0
            layers = "1 layer" if name == "kernel_error" else "3 layers"
            findings.append(
                Finding(
                    float(gaps.mean()),
                    0.1,
                    0.0,
                    error,
                    point.replicates,
                    "at least",
                    f"NNGP of {layers}: {float(point.mean(name)):.3f}, filtered: "
                    f"{float(point.mean('error')):.3f}; {where(point)}.",
                )
            )
    if not findings:
        return NotTestable(
            f"no subspace target has a predicted overlap above {FOUND} and fitted networks "
            "(kernel_samples >= n); raise ratio or kernel_samples"
        )
    return worst(findings)


def above_floor(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest error of the filtered network less what its coordinates allow."""
    findings = []
    for point in _of(points, "subspace"):
        if not np.isfinite(point.mean("error")):
            continue
        error = float(spread(point, "error"))
        findings.append(
            Finding(
                float(point.mean("error")),
                float(point.predicted("error_floor")),
                0.02 + 3 * error,
                error,
                point.replicates,
                "at least",
                f"Closest: {where(point)}.",
            )
        )
    return worst(findings) if findings else NotTestable("no subspace target has fitted networks")
