"""Claims on the interpolation peak, recovery thresholds, the width and the Bayes-optimal error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.conditions import at_least, at_most
from solvable.frame.estimates import Estimate, Slope
from solvable.frame.points import Point
from solvable.models.quadratic.network.solutions import NOISELESS_PENALTY

RECOVERED = 0.01
"""Error over that of learning nothing, below which a target counts as recovered."""


def at_interpolation(point: Point) -> bool:
    """Return True within 5 % of the interpolation threshold, where the expansion in 1/d holds."""
    place = point.prediction.get("interpolation_ratio")
    if place is None or point.prediction.get("finite_size_matrix_error") is None:
        return False
    error, limit = point.predicted("finite_size_matrix_error"), point.predicted("matrix_error")
    close = abs(point.setting.ratio / float(point.predicted("interpolation_ratio")) - 1) <= 0.05
    large = (
        point.setting.sensing == "goe" or point.setting.n_samples >= 10 * point.setting.dimension
    )
    return bool(close and large and abs(error - limit) <= 0.25 * limit)


def width_effect(points: Sequence[Point]) -> tuple[float, float] | None:
    """Largest deviation from 1, over widths, of the network's error over that of the minimiser."""
    ratios = [
        float(np.mean(point.values("network_matrix_error") / point.values("matrix_error")))
        for point in points
    ]
    return 1 + max(abs(ratio - 1) for ratio in ratios), 1.0


def wide(point: Point) -> bool:
    """Return True if every trained network is at least as wide as the rank of its minimiser."""
    if any(metrics.get("network_matrix_error") is None for metrics in point.metrics):
        return False
    width = round(point.setting.network_ratio * point.setting.dimension)
    return bool((point.values("rank_fraction") * point.setting.dimension <= width).all())


LOW_RANK = {
    "low_rank": True, "noise": 0, "regularisation": at_most(NOISELESS_PENALTY),
    "regularisation_unit": "one",
}  # fmt: skip
"""A low-rank target without label noise and a small penalty."""


def crossing(points: Sequence[Point], *, predicted: bool = False) -> float:
    """Sample ratio at which the relative error falls below `RECOVERED`; NaN if it does not."""
    rows = sorted(points, key=lambda point: float(point.setting.ratio))
    nothing = np.array([1 + p.setting.target_units / p.setting.dimension for p in rows])
    name = "finite_size_matrix_error"
    # The first order in 1/d is unknown close to the threshold, where the limit is taken.
    known = [p.predicted(name) if p.prediction.get(name) is not None else p.predicted("matrix_error")
             for p in rows]  # fmt: skip
    errors = np.array(known if predicted else [p.mean("matrix_error") for p in rows], dtype=float)
    logs = np.log(np.maximum(errors / nothing, 1e-12) / RECOVERED)
    ratios = np.log([float(p.setting.ratio) for p in rows])
    for k in range(1, len(rows)):
        if logs[k - 1] > 0 >= logs[k]:
            step = logs[k - 1] / (logs[k - 1] - logs[k])
            return float(np.exp(ratios[k - 1] + step * (ratios[k] - ratios[k - 1])))
    return float("nan")


def recovery(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted sample ratio of recovery."""
    return crossing(points), crossing(points, predicted=True)


# fmt: off
RECOVERY_CLAIMS = (
    Agreement(
        "peak-height", "At the interpolation threshold the error has the predicted height.",
        metric="matrix_error", expected="finite_size_matrix_error", relative=True,
        within=0.08, power=0.25, source="derivations/quadratic (14), (19), (20)",
        where=lambda cell: at_interpolation(cell.point),
        because="The second order in 1/d, where the first is at most a quarter.",
        missing="no sample ratio is within 5 % of the interpolation threshold with a first order in 1/d "
        "below a quarter; run with --preset peak",
    ),
    Slope(
        "peak-growth", "At the interpolation threshold the error grows with a smaller penalty, with the "
        "predicted slope.", "derivations/quadratic (14), (24)", metric="matrix_error",
        expected="finite_size_matrix_error", along="regularisation", where=at_interpolation, span=4,
        within=0.06, because="The second order in 1/d, which grows as the penalty falls.", power=0.25,
        missing="no three penalties, a factor of 4 apart, were run at the interpolation threshold; run "
        "with --preset peak",
    ),
    Estimate(
        "width-has-no-effect", "A trained network of any width above the rank of the minimiser has the "
        "error of the minimiser.", "derivations/quadratic (1)",
        estimate=width_effect, apart=("network_ratio",), fewest=2, where=wide, within=1e-3,
        because="The accuracy of the training.", power=0.1,
        missing="no two widths above the rank of the minimiser were trained; run with --preset "
        "descent --set network_ratio=0.7,1",
    ),
    Estimate(
        "recovery-threshold", "Without label noise the error vanishes at the predicted sample size, for "
        "every width of the target.", "derivations/quadratic (13)", estimate=recovery,
        apart=("sample_ratio", "samples"), fewest=3, relative=True, within=0.06,
        where=LOW_RANK,
        power=0.15,
        because="The error counts as 0 below 1 % of that of learning nothing, and the sample size is "
        "interpolated.",
        missing="no curve without label noise crosses the threshold of recovery; run with "
        "--preset thresholds",
    ),
    Agreement(
        "bayes-error", "Bayes-optimal message passing on the same samples has the predicted error.",
        metric="bayes_estimate_error", relative=True, within=0.08, power=0.25,
        source="derivations/quadratic (16)",
        where={"dimension": at_least(60), "n_samples": at_least(10, "dimension")},
        because="The first order in 1/d, which is not predicted here; it is 7 % for the minimiser at "
        "d = 60 and n/d² = 1.",
        missing="run with --preset quick --set bayes_samples=1440",
    ),
)
