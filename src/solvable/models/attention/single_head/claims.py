"""Claims on attention heads, one row each, with the reason of its tolerance."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.points import Point

SOURCE = "arXiv:2509.24914; first order in 1/d derived"
ORDERS = "Twice the square of the first order in 1/d, half of it for what is drawn, and 2/d."
SAMPLES = (
    "no point is stable, wide enough and has a first order in 1/d below a quarter of the limit; raise "
    "dimension, sample_ratio or regularisation"
)


def _first_order(cell: Cell, name: str) -> float:
    """First order in 1/d over the limit."""
    limit = cell.predicted(name)
    return abs(cell.predicted(f"finite_size_{name}") - limit) / abs(limit) if limit else np.inf


def _expands(cell: Cell) -> bool:
    """Whether something is learned, and expansions in 1/d hold."""
    if not cell.predicted("rank_fraction") * cell.setting.dimension >= 2:
        return False
    return all(_first_order(cell, name) <= 0.25 for name in ("matrix_error", "train_error"))


def _next_order(cell: Cell, name: str) -> float:
    order = _first_order(cell, name)
    return (2 * order**2 + order / 2 + 2 / cell.setting.dimension) * abs(cell.predicted(name))


def _spectral_distance(point: Point) -> np.ndarray:
    """Mean distance of sorted eigenvalues from their typical places, over their root mean square."""
    if point.prediction["eigenvalues"] is None:
        return np.full(max(2, point.replicates), np.nan)
    places = point.predicted("eigenvalues")
    size = float(np.sqrt(np.mean(places**2))) or np.nan
    return np.asarray(np.abs(point.values("eigenvalues") - places).mean(axis=1) / size)


def _over_recovery(cell: Cell) -> float:
    """Sample ratio over that of perfect recovery; NaN where labels are noisy or much regularised."""
    setting = cell.setting
    if setting.noise > 0 or setting.regularisation > 1e-3 or setting.rank >= setting.dimension:
        return np.nan
    return float(setting.ratio / cell.predicted("recovery_ratio"))


def _unexplained(point: Point) -> np.ndarray:
    """Error over that of knowing nothing, 1 + r/d."""
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
        "Attention on fresh samples is as far from the target's as predicted at this dimension.",
    ),
    _agreement(
        "train-error", "train_error", "The training error is the predicted one at this dimension."
    ),
    _agreement(
        "matrix-error", "matrix_error",
        "The learned matrix is as far from the target's as predicted at this dimension.",
    ),
    Agreement(
        "rank", "The head learns the predicted number of directions.", metric="rank_fraction",
        where=_expands, missing=SAMPLES, source=SOURCE, power=0.3,
        within=lambda cell: 1.5 / cell.setting.dimension
        + cell.expected * _first_order(cell, "matrix_error"),
        because="One eigenvalue and a half, and the first order of the error, which moves the threshold.",
    ),
    Agreement(
        "spectrum", "Learned eigenvalues are those of target plus noise, shifted, cut and scaled.",
        metric=_spectral_distance, expected=0.0, kind="at most", where=_expands, missing=SAMPLES,
        within=lambda cell: 6 / cell.setting.dimension + _first_order(cell, "norm") / 2,
        because="Eigenvalues of a drawn matrix in their places, and the first order of the norm.",
        source=SOURCE, power=0.3,
    ),
    Agreement(
        "perfect-recovery",
        "Without noise a target of low rank is recovered beyond the predicted number of samples.",
        metric=_unexplained, expected=0.0, kind="at most", within=0.02, source="derived (note 5.3)",
        because="What a small regularisation leaves from 1.2 thresholds on.",
        where=lambda cell: _over_recovery(cell) > 1.2, power=0.3,
        missing="no point without noise is beyond 1.2 thresholds; run with --preset recovery",
    ),
)  # fmt: skip
