"""Checks of the overlaps and of the error of sequential feature recovery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np

from solvable.frame.checking import spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point

RESOLVED = 0.5
"""Predicted squared overlap above which a feature counts as recovered."""

ASYMPTOTIC = 30
"""Samples per feature, n/D, from which heavy tails no longer matter."""


def total(point: Point) -> int:
    """Number D of features of the input at a point."""
    setting = point.parameters
    return comb(setting["dimension"] + setting["degree"] - 1, setting["degree"])


def ratio(point: Point) -> float:
    """Samples per feature, n/D."""
    return float(point.parameters["samples"] / total(point))


def where(point: Point, feature: int | None = None) -> str:
    """Words for a place in the study."""
    text = f"n/D = {ratio(point):.3g}"
    return text if feature is None else f"feature {feature + 1}, {text}"


def skewed(point: Point) -> bool:
    """Whether the operator holds the skewed population bulk that the Wick correction removes."""
    setting = point.parameters
    return (
        setting["inputs"] == "hermite" and setting["degree"] > 1 and setting["correction"] == "none"
    )


def asymptotic(points: Sequence[Point]) -> list[Point]:
    """Points at which corrections beyond the formula are small; later where the bulk is skewed."""
    return [one for one in points if ratio(one) >= ASYMPTOTIC * (2 if skewed(one) else 1)]


def _fresh(points: Sequence[Point]) -> list[Point]:
    return [one for one in points if one.parameters["second_layer"] == "least-squares"]


def feature_overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of one feature's mean squared overlap from its prediction."""
    findings = []
    for point in asymptotic(points):
        measured, predicted = point.mean("squared_overlap"), point.predicted("squared_overlap")
        errors = spread(point, "squared_overlap")
        for i in np.flatnonzero(predicted > RESOLVED):
            findings.append(
                Finding(
                    float(measured[i]),
                    float(predicted[i]),
                    float(0.04 + 3 * errors[i]),
                    float(errors[i]),
                    point.replicates,
                    detail=f"Largest deviation: {where(point, int(i))}.",
                )
            )
    if not findings:
        return NotTestable(
            f"no point has n/D >= {ASYMPTOTIC} and a feature of predicted squared overlap above "
            f"{RESOLVED}; raise samples"
        )
    return worst(findings)


def mean_overlap(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the mean over features."""
    findings = []
    for point in asymptotic(points):
        resolved = point.predicted("squared_overlap") > RESOLVED
        if not resolved.all():
            continue
        error = float(spread(point, "mean_squared_overlap"))
        findings.append(
            Finding(
                float(point.mean("mean_squared_overlap")),
                float(point.predicted("mean_squared_overlap")),
                0.03,
                error,
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            f"no point has n/D >= {ASYMPTOTIC} and every feature above its threshold; raise samples"
        )
    return worst(findings)


def necessary(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest squared overlap of a feature far below its threshold."""
    findings = []
    for point in points:
        far = point.parameters["samples"] < point.predicted("threshold_samples") / 2
        measured, errors = point.mean("squared_overlap"), spread(point, "squared_overlap")
        chance = point.parameters["features"] / total(point)
        for i in np.flatnonzero(far):
            findings.append(
                Finding(
                    float(measured[i]),
                    chance,
                    float(0.85 * total(point) ** (-1 / 3) + 3 * errors[i]),
                    float(errors[i]),
                    point.replicates,
                    "at most",
                    f"Largest: {where(point, int(i))}.",
                )
            )
    if not findings:
        return NotTestable("no feature is below half its threshold; lower samples")
    return worst(findings)


def far_above(points: Sequence[Point]) -> Finding | NotTestable:
    """Loss of overlap far above threshold, relative to its prediction."""
    findings = []
    for point in asymptotic(points):
        measured = 1 - point.mean("squared_overlap")
        predicted = 1 - point.predicted("squared_overlap")
        errors = spread(point, "squared_overlap")
        far = point.parameters["samples"] > 8 * point.predicted("threshold_samples")
        for i in np.flatnonzero(far):
            scale = predicted[i]
            findings.append(
                Finding(
                    float(measured[i] / scale),
                    1.0,
                    float(0.15 + 3 * errors[i] / scale),
                    float(errors[i] / scale),
                    point.replicates,
                    detail=f"Largest deviation: {where(point, int(i))}.",
                )
            )
    if not findings:
        return NotTestable("no feature is eight times above its threshold; raise samples")
    return worst(findings)


def error_sum(points: Sequence[Point]) -> Finding | NotTestable:
    """Normalised error relative to its prediction."""
    findings = []
    for point in asymptotic(_fresh(points)):
        if skewed(point):
            continue
        predicted = float(point.predicted("normalised_mse"))
        error = float(spread(point, "normalised_mse")) / predicted
        findings.append(
            Finding(
                float(point.mean("normalised_mse")) / predicted,
                1.0,
                (0.08 if ratio(point) < 120 else 0.04) + 2 * error,
                error,
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable(
            "no point has second_layer=least-squares, a corrected operator or Gaussian features, "
            f"and n/D >= {ASYMPTOTIC}; raise samples"
        )
    return worst(findings)


def error_exceeds_tail(points: Sequence[Point]) -> Finding | NotTestable:
    """Measured error over that of the unrecovered features alone."""
    findings = []
    for point in _fresh(points):
        tail = float(point.predicted("normalised_mse_tail_only"))
        if ratio(point) < ASYMPTOTIC / 2 or not 0.001 < tail < 0.9:
            continue
        error = float(spread(point, "normalised_mse")) / tail
        findings.append(
            Finding(
                float(point.mean("normalised_mse")) / tail,
                1.0,
                0.0,
                error,
                point.replicates,
                "at least",
                f"Smallest ratio: {where(point)}.",
            )
        )
    if not findings:
        return NotTestable("no point has features on both sides of their threshold at n/D >= 15")
    return worst(findings)


def plug_in(kind: str, low: float, tolerance: float) -> Callable[..., Finding | NotTestable]:
    """Check of the error with a second layer made of the eigenvalues."""

    def check(points: Sequence[Point]) -> Finding | NotTestable:
        chosen = [one for one in points if one.parameters["second_layer"] == kind]
        findings = []
        for point in chosen:
            if ratio(point) < low or point.parameters["label_map"] != "identity":
                continue
            predicted = float(point.predicted("normalised_mse"))
            error = float(spread(point, "normalised_mse")) / predicted
            findings.append(
                Finding(
                    float(point.mean("normalised_mse")) / predicted,
                    1.0,
                    tolerance + 2 * error,
                    error,
                    point.replicates,
                    detail=f"Largest deviation: {where(point)}.",
                )
            )
        if not findings:
            return NotTestable(
                f"no point has second_layer={kind}, label_map=identity and n/D >= {low}; run with "
                f"--preset gaussian"
            )
        return worst(findings)

    return check


def in_sample_fails(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest error of the in-sample second layer at few samples per feature."""
    findings = [
        Finding(
            float(point.mean("normalised_mse")),
            1.0,
            0.0,
            float(spread(point, "normalised_mse")),
            point.replicates,
            "at least",
            f"Smallest: {where(point)}.",
        )
        for point in points
        if point.parameters["second_layer"] == "in-sample"
        and float(point.predicted("normalised_mse")) > 1
    ]
    if not findings:
        return NotTestable(
            "no point has second_layer=in-sample where its predicted error is above one; run with "
            "--preset gaussian"
        )
    return worst(findings)
