"""Checks of quadratic networks against themselves: optimality, control, order of errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.checking import spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.quadratic.checks import (
    ERRORS,
    LARGEST_SHAPE_EFFECT,
    LEAST_SPREAD,
    error_of,
    model_of,
    setting_of,
    shape_effect,
    where,
)

CLEARLY_BETTER = 0.85
"""Predicted ratio of two errors from which their order has to be seen."""

OPTIMAL = 1e-6
"""Largest optimality residual of a minimiser."""

RECOVERED = 1e-3
"""Error, over that of knowing nothing, below which a noiseless target counts as recovered."""

LEFT_OVER = 0.02
"""Error, likewise, above which it does not."""

LEAST_LEFT = 4.0
"""Degrees of freedom per coordinate that training must leave for its residuals to tell anything."""

ROUND_ENOUGH = 0.06
"""Largest d/n at which the spectrum of noise passes for a semicircle."""

MARGIN = 0.08
"""Distance from the threshold of perfect recovery, relative to it, where either is asked for."""


def optimality(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest optimality residual over all replicates."""
    residual = max(float(point.values("kkt_residual").max()) for point in points)
    return Finding(residual, OPTIMAL, 0.0, kind="at most", replicates=_count(points))


def network_is_convex(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst difference between the network's own objective and the convex minimum, relative."""
    findings = []
    for point in points:
        own, least = point.values("network_objective"), point.values("objective")
        width = round(point.parameters["network_ratio"] * point.parameters["dimension"])
        ranks = point.values("rank_fraction") * point.parameters["dimension"]
        wide = np.isfinite(own) & (ranks <= width)
        if wide.any():
            gap = float(np.max(own[wide] / least[wide]) - 1)
            findings.append(
                Finding(gap, 0.0, 1e-5, replicates=int(wide.sum()), detail=f"At {where(point)}.")
            )
    if findings:
        return worst(findings)
    return NotTestable(
        "no network as wide as the minimiser's rank was trained; set network_samples=2000"
    )


def training_data_tell(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst mean ratio of the test error predicted from training data to the true one."""
    findings = []
    for point in points:
        ratios = point.values("gcv_test_error") / point.values("test_error")
        left, d = degrees_left(point), point.parameters["dimension"]
        if left < LEAST_LEFT or not np.isfinite(ratios).all():
            continue
        least = LEAST_SPREAD / d / np.sqrt(ratios.size)
        error = float(ratios.std(ddof=1) / np.sqrt(ratios.size)) if ratios.size > 1 else least
        findings.append(
            Finding(
                float(ratios.mean()),
                1.0,
                1 / left + ERRORS * max(error, least),
                max(error, least),
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    if findings:
        return worst(findings)
    return NotTestable(_TOO_FEW_LEFT)


def out_of_the_noise(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the number of directions beyond the edge of the noise that the fit tells."""
    findings = []
    for point in points:
        counts = point.values("outliers")
        if degrees_left(point) < LEAST_LEFT or not np.isfinite(counts).all():
            continue
        expected = float(point.predicted("outliers"))
        error = float(spread(point, "outliers"))
        # A count of repelling eigenvalues scatters by less than one; the edge is known to 1/left.
        tolerance = 1 + expected / degrees_left(point) + 3 * error
        findings.append(
            Finding(
                float(counts.mean()), expected, tolerance, error, point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )  # fmt: skip
    return worst(findings) if findings else NotTestable(_TOO_FEW_LEFT)


_TOO_FEW_LEFT = (
    f"training leaves fewer than {LEAST_LEFT:g} degrees of freedom per coordinate at every "
    "point; raise sample_ratio or regularisation"
)


def degrees_left(point: Point) -> float:
    """Degrees of freedom per coordinate that training leaves, (n - df)/d."""
    ratio, d = setting_of(point)
    return d * (ratio - float(point.predicted("degrees_of_freedom")))


def control_is_closer(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean excess of the error over the limit: of samples, less that of Gaussian matrices."""
    groups: dict[tuple[object, ...], dict[str, Point]] = {}
    for point in points:
        key = tuple(value for name, value in point.parameters.items() if name != "sensing")
        groups.setdefault(key, {})[point.parameters["sensing"]] = point
    gaps, variances = [], []
    for pair in groups.values():
        if len(pair) < 2 or shape_effect(pair["network"]) > LARGEST_SHAPE_EFFECT:
            continue
        limit = float(pair["network"].predicted("matrix_error"))
        samples, control = (float(pair[one].mean("matrix_error")) for one in ("network", "goe"))
        gaps.append((samples - control) / limit)
        errors = [error_of(one, "matrix_error", limit) / limit for one in pair.values()]
        variances.append(sum(error**2 for error in errors))
    if not gaps:
        return NotTestable(
            "no setting was measured with both kinds of sensing; set sensing=network,goe"
        )
    error = float(np.sqrt(np.sum(variances)) / len(gaps))
    return Finding(
        float(np.mean(gaps)), 0.0, 3 * error, error, _count(points), "at least",
        detail=f"Over {len(gaps)} settings.",
    )  # fmt: skip


def above_bayes(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest ratio of the error to the least that any estimator can have."""
    findings = []
    for point in points:
        best = float(point.predicted("bayes_matrix_error"))
        if best > 0 and shape_effect(point) <= LARGEST_SHAPE_EFFECT:
            error = error_of(point, "matrix_error", best) / best
            findings.append(
                Finding(
                    float(point.mean("matrix_error")) / best, 1.0, 3 * error, error,
                    point.replicates, "at least", detail=f"Closest: {where(point)}.",
                )
            )  # fmt: skip
    if findings:
        return worst(findings)
    return NotTestable("no point has a positive Bayes-optimal error and n/d of at least 10")


def _improves(name: str, what: str) -> Callable[[Sequence[Point]], Finding | NotTestable]:
    """Check that an error is lower after a change of the fit, wherever it should clearly be."""

    def check(points: Sequence[Point]) -> Finding | NotTestable:
        findings = []
        for point in points:
            before, after = point.values("matrix_error"), point.values(name)
            predicted = float(point.predicted(name)) / float(point.predicted("matrix_error"))
            # Either takes the noise that the training data tell.
            told = degrees_left(point) >= LEAST_LEFT and bool(np.isfinite(after).all())
            # Both take it for a semicircle, which n matrices of rank one resemble for n >> d.
            round_enough = shape_effect(point) <= ROUND_ENOUGH
            if predicted > CLEARLY_BETTER or not told or not round_enough:
                continue
            ratios = after / before
            error = float(ratios.std(ddof=1) / np.sqrt(ratios.size)) if ratios.size > 1 else 0.0
            findings.append(
                Finding(
                    float(ratios.mean()), 1.0, 0.0, error, point.replicates, "at most",
                    detail=f"Least gain: {where(point)}; predicted {predicted:.3g}.",
                )
            )  # fmt: skip
        if findings:
            return max(findings, key=lambda one: one.measured)
        return NotTestable(
            f"at no point {what} should lower the error by {1 - CLEARLY_BETTER:.0%}; lower "
            "regularisation, or take a power-law target near the interpolation peak and n/d above 17"
        )

    return check


pruning = _improves("pruned_error", "pruning at the edge of the noise")

denoising = _improves("denoised_error", "denoising")


def recovery(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest error above the threshold of perfect recovery, over that of knowing nothing."""
    worst_error = [
        float(point.mean("matrix_error")) / _energy(point)
        for point in _noiseless(points)
        if setting_of(point)[0] > (1 + MARGIN) * float(point.predicted("perfect_recovery_ratio"))
    ]
    if not worst_error:
        return NotTestable(_NOISELESS)
    return Finding(max(worst_error), RECOVERED, 0.0, kind="at most", replicates=len(worst_error))


def no_recovery(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest error below the threshold of perfect recovery, over that of knowing nothing."""
    least = [
        float(point.mean("matrix_error")) / _energy(point)
        for point in _noiseless(points)
        if setting_of(point)[0]
        < (1 - 2 * MARGIN) * float(point.predicted("perfect_recovery_ratio"))
    ]
    if not least:
        return NotTestable(_NOISELESS)
    return Finding(min(least), LEFT_OVER, 0.0, kind="at least", replicates=len(least))


_NOISELESS = (
    "no point without label noise, with a regularisation of at most 0.002 and a low-rank target "
    "lies on that side of the threshold; run the preset recovery"
)


def _noiseless(points: Sequence[Point]) -> list[Point]:
    return [
        one
        for one in points
        if one.parameters["noise"] == 0
        and one.parameters["regularisation"] <= 2e-3
        and one.parameters["target"] == "marchenko-pastur"
        and model_of(one).target_rank < one.parameters["dimension"]
    ]


def _energy(point: Point) -> float:
    """Second moment of a Marchenko-Pastur target: the error of knowing nothing."""
    setting = model_of(point)
    return 1 + setting.target_units / setting.dimension


def _count(points: Sequence[Point]) -> int:
    return sum(point.replicates for point in points)
