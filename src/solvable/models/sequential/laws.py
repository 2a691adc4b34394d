"""Checks of the spectrum, the exponents, the correction and the kernel of sequential recovery."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.checking import groups, spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.sequential.checks import ASYMPTOTIC, RESOLVED, asymptotic, ratio, total, where

CROSSING_FEATURES = 5
"""Fewest features with a crossing from which an exponent is fitted."""


def outlier_positions(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst relative deviation of the eigenvalue of a recovered feature."""
    findings = []
    for point in asymptotic(points):
        measured, predicted = point.mean("eigenvalues"), point.predicted("eigenvalues")
        errors = spread(point, "eigenvalues")
        for i in np.flatnonzero(point.predicted("squared_overlap") > RESOLVED):
            relative = float(errors[i] / abs(predicted[i]))
            findings.append(
                Finding(
                    float(measured[i] / predicted[i]),
                    1.0,
                    0.05 + 3 * relative,
                    relative,
                    point.replicates,
                    detail=f"Largest deviation: {where(point, int(i))}.",
                )
            )
    if not findings:
        return NotTestable(f"no point has a recovered feature at n/D >= {ASYMPTOTIC}")
    return worst(findings)


def bulk_edges(points: Sequence[Point]) -> Finding | NotTestable:
    """How far the bulk reaches beyond its predicted edges, in units of its predicted width."""
    findings = []
    for point in points:
        if point.metrics[0]["bulk_edges"] is None or ratio(point) < ASYMPTOTIC:
            continue
        lower, upper = point.predicted("bulk_edges")
        outward = np.array([-1.0, 1.0])
        excess = outward * (point.values("bulk_edges") - [lower, upper]) / (upper - lower)
        side = int(np.argmax(np.abs(excess.mean(axis=0))))
        error = float(spread(point, "bulk_edges")[side] / (upper - lower))
        findings.append(
            Finding(
                float(excess[:, side].mean()),
                0.0,
                0.04 + 3 * error,
                error,
                point.replicates,
                detail=f"Largest deviation: {('lower', 'upper')[side]} edge, {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            f"no point has a stored spectrum at n/D >= {ASYMPTOTIC}; set spectrum_samples to at "
            "least samples"
        )
    return worst(findings)


def crossings(samples: np.ndarray, overlaps: np.ndarray) -> np.ndarray:
    """Sample size at which each column of overlaps first passes one half; NaN where it does not."""
    found = np.full(overlaps.shape[1], np.nan)
    logs = np.log(samples)
    for i, column in enumerate(overlaps.T):
        above = np.flatnonzero(column >= RESOLVED)
        if above.size == 0 or above[0] == 0:
            continue
        k = above[0]
        part = (RESOLVED - column[k - 1]) / (column[k] - column[k - 1])
        found[i] = np.exp(logs[k - 1] + part * (logs[k] - logs[k - 1]))
    return found


def threshold_exponent(points: Sequence[Point]) -> Finding | NotTestable:
    """Slope of the crossing of one half against the rank of the feature, in logarithms."""
    findings = []
    for group in groups(points):
        decay = group[0].parameters["decay"]
        samples = np.array([point.parameters["samples"] for point in group], dtype=float)
        name = "squared_overlap"
        measured = crossings(samples, np.array([point.mean(name) for point in group]))
        predicted = crossings(samples, np.array([point.predicted(name) for point in group]))
        # The first feature is close to the whole label: it is left out, as in the paper's law.
        rank = np.arange(1, measured.size + 1)
        used = np.isfinite(measured) & np.isfinite(predicted) & (rank > 1)
        if used.sum() < CROSSING_FEATURES or decay == 0:
            continue
        logs = np.log(rank[used])
        findings.append(
            Finding(
                float(np.polyfit(logs, np.log(measured[used]), 1)[0]),
                float(np.polyfit(logs, np.log(predicted[used]), 1)[0]),
                0.15,
                None,
                group[0].replicates,
                detail=f"Features {rank[used][0]} to {rank[used][-1]}; 2 gamma is {2 * decay:g}.",
            )
        )
    if not findings:
        return NotTestable(
            f"fewer than {CROSSING_FEATURES} features beyond the first cross one half between two "
            "sample sizes; run with --preset exponents"
        )
    return worst(findings)


def error_exponent(points: Sequence[Point]) -> Finding | NotTestable:
    """Slope of the error against that of the predicted sum, in logarithms."""
    findings = []
    for group in groups(points):
        used = [one for one in group if ratio(one) >= ASYMPTOTIC]
        if len(used) < 4 or used[0].parameters["second_layer"] != "least-squares":
            continue
        logs = np.log([one.parameters["samples"] for one in used])
        measured = np.log([float(one.mean("normalised_mse")) for one in used])
        predicted = np.log([float(one.predicted("normalised_mse")) for one in used])
        findings.append(
            Finding(
                float(np.polyfit(logs, measured, 1)[0]),
                float(np.polyfit(logs, predicted, 1)[0]),
                0.05,
                None,
                used[0].replicates,
                detail=f"{len(used)} sample sizes, decay {used[0].parameters['decay']:g}.",
            )
        )
    if not findings:
        return NotTestable(
            f"fewer than four sample sizes of one curve have n/D >= {ASYMPTOTIC}; run with "
            "--preset exponents"
        )
    return worst(findings)


def neighbour_mixing(points: Sequence[Point]) -> Finding | NotTestable:
    """Mixing of neighbours on one side of the spectrum, relative to second-order theory."""
    findings = []
    for point in points:
        measured, predicted = point.mean("neighbour_mixing"), point.predicted("neighbour_mixing")
        errors = spread(point, "neighbour_mixing")
        overlap = point.predicted("squared_overlap")
        recovered = (overlap[1:] > 0.8) & (overlap[:-1] > 0.8)
        for i in np.flatnonzero(recovered & (predicted > 1e-3) & (predicted < 0.03)):
            error = float(errors[i] / predicted[i])
            findings.append(
                Finding(
                    float(measured[i] / predicted[i]),
                    1.0,
                    0.5 + 3 * error,
                    error,
                    point.replicates,
                    detail=f"Largest deviation: features {i + 1} and {i + 2}, {where(point)}.",
                )
            )
    if not findings:
        return NotTestable(
            "no two recovered neighbours lie on the same side of the spectrum with a predicted "
            "mixing between 0.001 and 0.03; run with --preset gaussian"
        )
    return worst(findings)


def correction_helps(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest gain of the mean squared overlap by the Wick correction."""
    plain = {_place(one): one for one in points if one.parameters["correction"] == "none"}
    findings = []
    for point in points:
        partner = plain.get(_place(point))
        if point.parameters["correction"] != "wick" or partner is None or ratio(point) < ASYMPTOTIC:
            continue
        name = "mean_squared_overlap"
        error = float(np.hypot(spread(point, name), spread(partner, name)))
        findings.append(
            Finding(
                float(point.mean(name) - partner.mean(name)),
                0.0,
                2 * error,
                error,
                point.replicates,
                "at least",
                f"Smallest gain: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            "the study does not hold the same point with correction=none and with "
            f"correction=wick at n/D >= {ASYMPTOTIC}; run with --preset corrections"
        )
    return worst(findings)


def _place(point: Point) -> tuple[object, ...]:
    return tuple(value for name, value in point.parameters.items() if name != "correction")


def kernel_blind(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest error of a kernel where the layered learner already has an error below 0.8."""
    findings = []
    for point in points:
        layered = float(point.mean("normalised_mse"))
        for name in ("polynomial", "rbf"):
            key = f"{name}_kernel_normalised_mse"
            error = point.mean(key)
            if np.isnan(error) or layered > 0.8 or point.parameters["dimension"] < 40:
                continue
            findings.append(
                Finding(
                    float(error),
                    0.9,
                    0.0,
                    float(spread(point, key)),
                    point.replicates,
                    "at least",
                    f"{name} kernel, {where(point)}; the layered learner has {layered:.2f} there.",
                )
            )
    if not findings:
        return NotTestable(
            "no point has dimension >= 40, a kernel baseline (kernel_samples >= samples) and a "
            "layered error below 0.8"
        )
    return worst(findings)


def kernel_ceiling(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest error of a kernel relative to what its degree allows."""
    findings = []
    for point in points:
        floor = float(point.predicted("polynomial_kernel_normalised_mse"))
        for name in ("polynomial", "rbf"):
            key = f"{name}_kernel_normalised_mse"
            if np.isnan(point.mean(key)) or np.isnan(floor):
                continue
            error = float(spread(point, key))
            findings.append(
                Finding(
                    float(point.mean(key)),
                    floor,
                    0.01 + 3 * error,
                    error,
                    point.replicates,
                    "at least",
                    f"{name} kernel, {where(point)}.",
                )
            )
    if not findings:
        return NotTestable(
            "no point has a kernel baseline below d^4/24 samples; set kernel_samples"
        )
    return worst(findings)


def rounding(points: Sequence[Point]) -> Finding | NotTestable:
    """Squared overlap of a weak feature at its threshold, in units of D^(-1/3)."""
    findings = []
    for point in points:
        near = point.parameters["samples"] / point.predicted("threshold_samples")
        measured, errors = point.mean("squared_overlap"), spread(point, "squared_overlap")
        unit = total(point) ** (-1 / 3)
        for i in np.flatnonzero(np.abs(np.log(near)) < 0.5 * unit):
            if ratio(point) < ASYMPTOTIC:
                continue
            findings.append(
                Finding(
                    float(measured[i] / unit),
                    0.85,
                    float(0.5 + 3 * errors[i] / unit),
                    float(errors[i] / unit),
                    point.replicates,
                    detail=f"Largest deviation: {where(point, int(i))}.",
                )
            )
    if not findings:
        return NotTestable(
            "no feature is at its threshold, within half a rounding width, at n/D >= "
            f"{ASYMPTOTIC}; set samples to a value of threshold_samples from `solvable theory`"
        )
    return worst(findings)
