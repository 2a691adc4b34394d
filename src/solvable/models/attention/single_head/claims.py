"""Claims of the single attention head, each with the reason for its tolerance."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.points import Point

SOURCE = "derivations/attention (9), (11), (12), (17)"
ORDERS = (
    "With f the first order in 1/d over the limit: 2 f² for the next order, f / 2 for the sampling error "
    "of f, and 2/d."
)
SAMPLES = (
    "needed: a stable point whose width exceeds the learned rank and whose first order in 1/d is below a "
    "quarter of the limit; raise dimension, sample_ratio or regularisation"
)


def _first_order(cell: Cell, name: str) -> float:
    """First-order term in 1/d of a metric, relative to the metric's limit."""
    limit = cell.predicted(name)
    return abs(cell.predicted(f"finite_size_{name}") - limit) / abs(limit) if limit else np.inf


def _expands(cell: Cell) -> bool:
    """Return True if the learned rank is at least 2 and the relative first-order terms are below 1/4."""
    if not cell.predicted("rank_fraction") * cell.setting.dimension >= 2:
        return False
    return all(_first_order(cell, name) <= 0.25 for name in ("matrix_error", "train_error"))


def _next_order(cell: Cell, name: str) -> float:
    order = _first_order(cell, name)
    return (2 * order**2 + order / 2 + 2 / cell.setting.dimension) * abs(cell.predicted(name))


def _spectral_distance(point: Point) -> np.ndarray:
    """Mean distance of sorted eigenvalues from predictions, over the predictions' root mean square."""
    if point.prediction["eigenvalues"] is None:
        return np.full(max(2, point.replicates), np.nan)
    places = point.predicted("eigenvalues")
    size = float(np.sqrt(np.mean(places**2))) or np.nan
    return np.asarray(np.abs(point.values("eigenvalues") - places).mean(axis=1) / size)


def _over_recovery(cell: Cell) -> float:
    """Sample ratio over recovery_ratio; NaN with noise, full rank or regularisation above 1e-3."""
    setting = cell.setting
    if setting.noise > 0 or setting.regularisation > 1e-3 or setting.rank >= setting.dimension:
        return np.nan
    return float(setting.ratio / cell.predicted("recovery_ratio"))


def _unexplained(point: Point) -> np.ndarray:
    """Matrix error over 1 + r/d, the error of the estimate 0."""
    return point.values("matrix_error") / (1 + point.setting.rank / point.setting.dimension)


def _agreement(name: str, metric: str, statement: str) -> Agreement:
    return Agreement(
        name, statement, metric=metric, expected=f"finite_size_{metric}", where=_expands,
        missing=SAMPLES, within=lambda cell: _next_order(cell, metric), because=ORDERS, source=SOURCE,
        power=0.25,
    )  # fmt: skip


CLAIMS = (
    _agreement(
        "test-error", "test_error",
        "The test error equals the prediction at this dimension.",
    ),
    _agreement(
        "train-error", "train_error", "The training error equals the prediction at this dimension."
    ),
    _agreement(
        "matrix-error", "matrix_error",
        "The matrix error equals the prediction at this dimension.",
    ),
    Agreement(
        "rank", "The rank of the learned matrix equals the prediction.", metric="rank_fraction",
        where=_expands, missing=SAMPLES, source="derivations/attention (12)", power=0.3,
        within=lambda cell: 1.5 / cell.setting.dimension
        + cell.expected * _first_order(cell, "matrix_error"),
        because="1.5 eigenvalues, and the relative first order of the matrix error, by which the "
        "threshold moves.",
    ),
    Agreement(
        "spectrum", "The eigenvalues of the learned matrix equal the predicted quantiles.",
        metric=_spectral_distance, expected=0.0, kind="at most", where=_expands, missing=SAMPLES,
        within=lambda cell: 6 / cell.setting.dimension + _first_order(cell, "norm") / 2,
        because="6/d for the scatter of a drawn matrix's eigenvalues, and half the relative first order "
        "of the norm.",
        source="derivations/attention (9)", power=0.3,
    ),
    Agreement(
        "perfect-recovery",
        "Without noise a target of low rank is recovered above 1.2 times recovery_ratio.",
        metric=_unexplained, expected=0.0, kind="at most", within=0.02,
        source="derivations/attention (15)",
        because="Small error that remains at a small, positive regularisation above 1.2 times the "
        "threshold.",
        where=lambda cell: _over_recovery(cell) > 1.2, power=0.3,
        missing="needed: a point without noise above 1.2 times recovery_ratio; run with --preset "
        "recovery",
    ),
)  # fmt: skip
