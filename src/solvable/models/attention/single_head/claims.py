"""Claims of the single attention head, each with the reason for its tolerance."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import at_least, at_most
from solvable.frame.estimates import Contrast, Lead, Slope
from solvable.frame.points import Point
from solvable.models.attention.single_head.parameters import NOISELESS_PENALTY

SOURCE = "derivations/attention (9), (11), (12), (17)"
ORDERS = (
    "With f the first order in 1/d over the limit: 2 f² for the next order, f / 2 for the sampling error "
    "of f, and 2/d."
)
SAMPLES = (
    "needed: a stable point with five samples per dimension, whose width exceeds the learned rank and "
    "whose first order in 1/d is below a quarter of the limit; raise dimension, sample_ratio or "
    "regularisation"
)


POWER_LAW = (
    "needed: target=power-law with noise, at three sample sizes a factor of 2 apart; run with --preset "
    "power-law"
)


def _first_order(cell: Cell, name: str) -> float:
    """First-order term in 1/d of a metric, relative to the metric's limit."""
    limit = cell.predicted(name)
    return abs(cell.predicted(f"finite_size_{name}") - limit) / abs(limit) if limit else np.inf


def _expands(cell: Cell) -> bool:
    """Return True for n >= 5 d, a learned rank of at least 2, and relative first orders below 1/4."""
    # With 1 to 3.4 samples per dimension errors of a power law are 4 to 14 % above the expansion in 1/d.
    if cell.setting.n_samples < 5 * cell.setting.dimension:
        return False
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
    """Sample ratio over the recovery threshold; NaN with noise, full rank or a larger penalty."""
    setting = cell.setting
    exact = setting.noise == 0 and setting.regularisation <= NOISELESS_PENALTY
    if not (setting.low_rank and (exact or setting.trained_without_noise)):
        return np.nan
    return float(setting.ratio / cell.predicted("recovery_ratio"))


def _unexplained(point: Point) -> np.ndarray:
    """Matrix error over 1 + r/d, the error of the estimate 0."""
    name = "noiseless_matrix_error" if point.setting.noise else "matrix_error"
    return point.values(name) / (1 + point.setting.rank / point.setting.dimension)


def _power_law(point: Point) -> bool:
    """Return True for a power law with noise, where the first order in 1/d of the error is small."""
    setting, error = point.setting, point.prediction.get("finite_size_matrix_error")
    if setting.target != "power-law" or setting.noise == 0 or error is None:
        return False
    if setting.trained != "weights":
        return False
    limit = float(point.predicted("matrix_error"))
    return bool(abs(point.predicted("finite_size_matrix_error") - limit) <= 0.25 * limit)


def _at_its_rate(point: Point) -> bool:
    """Return True between features below the noise and a bulk that is learned."""
    # a cut at 0.6 delta leaves a quarter of the bulk; at 1.5 delta the penalty starts to dominate
    return _power_law(point) and bool(0.6 <= point.predicted("cut_over_noise") <= 1.5)


def _rate(point: Point) -> float:
    """Power of n/d² in the excess error, n^(-1 + 1 / (2 gamma))."""
    return float(point.setting.ratio ** (-1 + 1 / (2 * point.setting.exponent)))


def _parts(point: Point) -> float:
    """Sum of the parts of the matrix error, with the first order in 1/d of this error."""
    if not _power_law(point):
        return np.nan
    names = ("overfitting_error", "underfitting_error", "approximation_error", "mismatch_error")
    order = point.predicted("finite_size_matrix_error") / point.predicted("matrix_error")
    return float(order) * sum(float(point.predicted(name)) for name in names)


def _agreement(name: str, metric: str, statement: str) -> Agreement:
    return Agreement(
        name, statement, metric=metric, expected=f"finite_size_{metric}", where=_expands,
        missing=SAMPLES, within=lambda cell: _next_order(cell, metric), because=ORDERS, source=SOURCE,
        power=0.25,
    )  # fmt: skip


def _log_error(point: Point) -> np.ndarray:
    """Logarithm of the matrix error of each replicate."""
    return np.asarray(np.log(point.values("matrix_error")))


def _log_prediction(point: Point) -> float:
    """Logarithm of the error predicted at this dimension."""
    return float(np.log(point.predicted("finite_size_matrix_error")))


def _peak(
    name: str, statement: str, below: tuple[float, float], above: tuple[float, float]
) -> Contrast:
    return Contrast(
        name, statement, "derivations/attention (12), (14), (17)", metric=_log_error,
        expected=_log_prediction, across="interpolation_ratio", along="sample_ratio", below=below,
        above=above, within=0.1, power=0.35, where=_small_penalty,
        because="Terms of second order in 1/d, and the sampling error of the first-order term, of up to "
        "20 %.",
        missing="needed: noise, regularisation of at most 1e-3, and points below 0.6, within 0.85 to 1.5 "
        "and above 2 times interpolation_ratio; run with --preset interpolation",
    )  # fmt: skip


def _small_penalty(point: Point) -> bool:
    """Return True with noise at a small penalty, where the error at this dimension is predicted."""
    setting, error = point.setting, point.prediction.get("finite_size_matrix_error")
    small = setting.regularisation <= 1e-3 and setting.trained == "weights"
    return bool(setting.noise > 0 and small and error is not None)


CLAIMS = (
    Slope(
        "scaling-law",
        "For a power-law target the error falls with the number of samples with the predicted slope.",
        SOURCE, metric="matrix_error", expected="finite_size_matrix_error", along="sample_ratio",
        where=_power_law, within=0.08, power=0.25, because="The second order in 1/d.",
        missing=POWER_LAW,
    ),
    Slope(
        "scaling-exponent",
        "For a power-law target i^-gamma the error falls as n^(-1 + 1/(2 gamma)).",
        "derivations/attention (19)", metric="matrix_error", expected=_rate, along="sample_ratio",
        where=_at_its_rate, within=0.15, power=0.4,
        because="The predicted slope at this dimension differs by up to 0.1 from the exponent.",
        missing=POWER_LAW,
    ),
    Agreement(
        "error-parts",
        "Overfitting, underfitting, approximation and mismatch add up to the error of the matrix.",
        metric="matrix_error", expected=_parts, relative=True, within=0.12, power=0.25,
        where={"cut_over_noise": at_least(1.5), "rank_fraction": at_most(0.3)},
        source="derivations/attention (19)",
        because="The bulk also learns a part of the features just below the noise: up to 8 % of the "
        "error at b = 1.5 delta.",
        missing="run with --preset decomposition",
    ),
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
    Lead(
        "weights-beat-matrix",
        "Training the weights instead of the matrix S lowers the error of S by the predicted amount.",
        "derivations/attention (9), (17), (23)", metric="matrix_error",
        expected="finite_size_matrix_error", of={"trained": "matrix"}, over={"trained": "weights"},
        within=0.15, relative=True, power=0.35,
        because="Terms of second order in 1/d in both errors, and the sampling error of the first-order "
        "terms.",
        missing="needed: a setting measured with both trainings; run with --preset matrix",
    ),
    Agreement(
        "rank", "The rank of the learned matrix equals the prediction.", metric="rank_fraction",
        where=(_expands, {"trained": "weights"}), missing=SAMPLES,
        source="derivations/attention (12)", power=0.3,
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
    _peak(
        "interpolation-rise",
        "With noise and a small penalty, more samples raise the error up to the interpolation threshold.",
        (0.0, 0.6), (0.85, 1.5),
    ),
    _peak(
        "interpolation-fall", "Beyond the interpolation threshold the error falls from its peak.",
        (0.85, 1.5), (2.0, np.inf),
    ),
    Agreement(
        "perfect-recovery",
        "Without noise a target of low rank is recovered above 1.2 times the recovery threshold.",
        metric=_unexplained, expected=0.0, kind="at most", within=0.02,
        source="derivations/attention (15)",
        because="Small error that remains at a small, positive regularisation above 1.2 times the "
        "threshold.",
        where=lambda cell: _over_recovery(cell) > 1.2, power=0.3,
        missing="needed: a target of low rank without noise above 1.2 times its recovery threshold; set "
        "noiseless_samples, or run with --preset recovery",
    ),
)  # fmt: skip
