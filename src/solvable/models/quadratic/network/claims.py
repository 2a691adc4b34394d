"""Claims of quadratic networks: rows of agreement, with their ranges and tolerances."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.points import Point
from solvable.models.quadratic.network.feature_groups import group_names, group_scatter
from solvable.models.quadratic.network.finite_size import unreachable
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.phase_claims import PHASE_CLAIMS
from solvable.models.quadratic.network.predict import degrees_left
from solvable.models.quadratic.network.recovery_claims import RECOVERY_CLAIMS
from solvable.models.quadratic.network.solutions import NOISELESS_PENALTY, measure_of, state_of
from solvable.spectra.measures import second_moment


def shape_effect(setting: QuadraticParameters) -> float:
    """Return d/n, the size of the effects of non-Gaussian samples; 0 for Gaussian matrices."""
    return setting.dimension / setting.n_samples if setting.sensing == "network" else 0.0


def _first_order(cell: Cell, name: str) -> float:
    """Size of the first order in 1/d of an error, relative to its limit."""
    # Records of earlier versions lack this prediction.
    if f"control_{name}" not in cell.point.prediction:
        return np.inf
    limit, control, expected = (
        cell.predicted(f"{order}{name}") for order in ("", "control_", "finite_size_")
    )
    return (abs(control - limit) + abs(expected - control)) / abs(limit) if limit else np.inf


def _expands(cell: Cell) -> bool:
    """Return True for n/d of at least 10 and a first order of at most a quarter of the limit."""
    orders = [_first_order(cell, name) for name in ("matrix_error", "train_error")]
    return shape_effect(cell.setting) <= 0.1 and max(orders) <= 0.25


def _fits(cell: Cell) -> bool:
    """Return True if labels that no positive matrix fits add at most 5 % to the training error."""
    if cell.setting.sensing != "network":
        return True
    lost = unreachable(state_of(cell.setting), cell.setting.dimension)
    return lost <= 0.05 * cell.predicted("finite_size_train_error")


def _next_order(cell: Cell, name: str) -> float:
    """Tolerance for the next order in 1/d: twice the square of the first order, plus 3/d."""
    order = 2 * _first_order(cell, name) ** 2 + 3 / cell.setting.dimension
    return order * abs(cell.predicted(name))


def _next_rank(cell: Cell) -> float:
    limit = cell.predicted("rank_fraction")
    return 2 * (cell.expected - limit) ** 2 / limit if limit else 0.0


def _feature_shift(cell: Cell) -> float:
    # Leverages differ between features, by an effect of the size of the shift of the mean error.
    largest = max(cell.expected, cell.predicted("matrix_error"))
    # The edges of a random target's spectrum fluctuate by d^(-2/3) between replicates.
    drawn = cell.setting.dimension ** (-2 / 3) if cell.setting.target != "power-law" else 0.0
    return _first_order(cell, "matrix_error") * largest + drawn * cell.expected


def _feature_scatter(cell: Cell) -> float:
    # A single feature scatters about five times as much, relative to its error, as a large group.
    return _scatters(cell.setting)[cell.entry or 0]


@lru_cache(maxsize=256)
def _scatters(setting: QuadraticParameters) -> list[float]:
    return group_scatter(setting, state_of(setting))


def _degrees_left(cell: Cell) -> float:
    return degrees_left(cell.setting, cell.predicted("degrees_of_freedom"))


def _noise_estimated(cell: Cell) -> bool:
    """Return True if training leaves 4 degrees of freedom per coordinate to estimate the noise."""
    return _degrees_left(cell) >= 4


def _certain(point: Point, value: float) -> np.ndarray:
    """Return a number that is computed from all replicates as if every replicate had measured it."""
    return np.full(max(2, point.replicates), value)


def _spectral_distance(point: Point) -> np.ndarray:
    if point.prediction["eigenvalues"] is None:
        return _certain(point, np.nan)
    measured, predicted = point.values("eigenvalues"), point.predicted("eigenvalues")
    return _certain(point, distribution_distance(measured, predicted))


def distribution_distance(measured: np.ndarray, quantiles: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance over positive eigenvalues; predictions are quantiles at (k - 1/2)/d."""
    pooled, d = np.sort(measured.ravel()), quantiles.size
    places = pooled[pooled > 0]
    if places.size == 0:
        return float(np.mean(quantiles > 0))
    expected = np.interp(places, quantiles[::-1], (np.arange(d) + 0.5) / d)
    below = np.searchsorted(pooled, places, "left") / pooled.size
    until = np.searchsorted(pooled, places, "right") / pooled.size
    return float(np.maximum(np.abs(below - expected), np.abs(until - expected)).max())


def _spectral_step(cell: Cell) -> float:
    # Eigenvalues repel, so that counts scatter by less than one; a step of the distribution is 1/d.
    rank, corrected = (cell.predicted(f"{order}rank_fraction") for order in ("", "finite_size_"))
    return 2 / cell.setting.dimension + abs(corrected - rank)


def _wide_networks(point: Point) -> np.ndarray:
    """Objective of the trained network over the convex minimum; NaN below the rank of the minimiser."""
    width = round(point.setting.network_ratio * point.setting.dimension)
    wide = point.values("rank_fraction") * point.setting.dimension <= width
    return np.where(wide, point.values("network_objective") / point.values("objective"), np.nan)


def _unexplained(point: Point) -> np.ndarray:
    """Error without label noise over the mean second moment 1 + p*/d of a Marchenko-Pastur target."""
    name = "noiseless_matrix_error" if point.setting.noise else "matrix_error"
    return point.values(name) / (1 + point.setting.target_units / point.setting.dimension)


def _over_recovery(cell: Cell) -> float:
    """Sample ratio over the perfect-recovery threshold; NaN for noisy or full-rank problems."""
    setting = cell.setting
    exact = setting.noise == 0 and setting.regularisation <= NOISELESS_PENALTY
    fitted = 0 < setting.noiseless_samples <= setting.n_samples
    threshold = cell.predicted("perfect_recovery_ratio")
    return setting.ratio / threshold if setting.low_rank and (exact or fitted) else np.nan


def _clearly(cell: Cell, metric: str) -> bool:
    """Return True if a change of the fit should lower the error by 15 %."""
    # Pruning and denoising use the noise that is estimated from the training data, and assume that
    # this noise is a semicircle, which holds for n >> d.
    gains = cell.predicted(metric) <= 0.85 * cell.predicted("matrix_error")
    return gains and _noise_estimated(cell) and shape_effect(cell.setting) <= 0.06


def _over_control(point: Point) -> np.ndarray:
    """Measured over predicted excess, where the excess is the error of samples over Gaussian matrices."""
    assert point.other is not None
    pairs = zip(point.other.values("matrix_error"), point.values("matrix_error"), strict=False)
    return np.array([samples - control for samples, control in pairs]) / _control_gap(point)


def _control_gap(point: Point) -> float:
    assert point.other is not None
    samples, control = (p.predicted("finite_size_matrix_error") for p in (point.other, point))
    return float(samples - control)


def _error_estimated(cell: Cell) -> bool:
    # If nothing is learned the error is the variance of the labels, which is trivial to estimate.
    nothing = 2 * second_moment(measure_of(cell.setting)) + cell.setting.noise
    return bool(nothing >= 1.5 * cell.expected)


FIRST_ORDER = "derivations/quadratic (4), (19), (20)"
ORDERS = (
    "Twice the square of the first order in 1/d, plus 3/d: large for few samples and near the peak."
)
EXPANDS = {"n/d of at least 10, a first order in 1/d of at most a quarter of the limit": _expands}
NOISE = {"at least 4 unused degrees of freedom per coordinate after training": _noise_estimated}
RAISE = "raise dimension, sample_ratio or regularisation, as near the interpolation peak"
EXACT = (
    "no low-rank target without noise above its recovery threshold; set noiseless_samples, or run the "
    "preset recovery"
)
NO_GAIN = (
    "the predicted error falls by less than 15 % at every point; lower regularisation, or use a power "
    "law near the peak"
)
PAIRS = (
    "no setting with a predicted difference above 3 % was run with both kinds of measurements; run with "
    "--preset control"
)


def _changed(
    name: str, statement: str, metric: str, within: float, because: str, source: str
) -> Agreement:
    """Claim on the error of a pruned or denoised fit, where the predicted error falls by 15 %."""

    def judged(cell: Cell) -> bool:
        # With fewer than ten learned directions the law of their eigenvalues is wrong by 30 to 60 %.
        rank = cell.predicted("rank_fraction") * cell.setting.dimension
        return bool(rank >= 10) and _clearly(cell, metric)

    return Agreement(
        name, statement, metric=metric, relative=True, within=within, because=because, source=source,
        where=judged, missing=NO_GAIN, power=0.3,
    )  # fmt: skip


CLAIMS = (
    Agreement(
        "test-error", "The error of the learned matrix equals the prediction at this dimension.",
        metric="matrix_error", expected="finite_size_matrix_error", where=EXPANDS, missing=RAISE,
        within=lambda cell: _next_order(cell, "matrix_error"), because=ORDERS,
        source=FIRST_ORDER, power=0.15,
    ),
    Agreement(
        "train-error", "The training error equals the prediction at this dimension.",
        metric="train_error", expected="finite_size_train_error",
        where={**EXPANDS, "few labels out of reach of positive matrices": _fits},
        missing=RAISE,
        within=lambda cell: _next_order(cell, "train_error"), because=ORDERS, power=0.15,
        source="derivations/quadratic (5), (19), (20), (21)",
    ),
    Agreement(
        "rank", "The rank of the learned matrix equals the prediction at this dimension.",
        metric="rank_fraction", expected="finite_size_rank_fraction", where=EXPANDS, missing=RAISE,
        within=lambda cell: 1 / cell.setting.dimension + _next_rank(cell),
        because="One eigenvalue, plus twice the square of the first order in 1/d.",
        source="derivations/quadratic (5), (19), (20)",
    ),
    Agreement(
        "spectrum",
        "The learned eigenvalues follow the law of target plus noise, shifted and cut at 0.",
        metric=_spectral_distance, expected=0.0, kind="at most", where=EXPANDS, missing=RAISE,
        within=_spectral_step, source="derivations/quadratic (2)", power=0.2,
        because="Two eigenvalues, plus the first order in 1/d of the rank.",
    ),
    Agreement(
        "out-of-the-noise",
        "The number of learned directions above the noise equals the prediction.",
        metric="outliers", where=NOISE, missing="raise sample_ratio", power=0.3,
        source="derivations/quadratic (12)",
        within=lambda cell: 1 + cell.expected / _degrees_left(cell),
        because="One direction, plus the predicted number divided by the unused degrees of freedom per "
        "coordinate.",
    ),
    Agreement(
        "feature-errors",
        "The error along each group of the target's features equals the prediction at this dimension.",
        metric="feature_errors", expected="finite_size_feature_errors", entry=group_names,
        where=EXPANDS, missing=RAISE, power=0.2, within=_feature_shift, scatter=_feature_scatter,
        source="derivations/quadratic (8), (9), (39)",
        because="The first order in 1/d of the mean error. A part of it, by leverages, is predicted only "
        "on average over all features. For a random target also the fluctuation of its edges.",
    ),
    Agreement(
        "training-data-tell-the-test-error",
        "The test error estimated from training data (GCV) equals the prediction at this dimension.",
        metric="gcv_test_error", expected="finite_size_test_error", relative=True,
        where={**EXPANDS, **NOISE, "more learned than noise": _error_estimated},
        within=lambda cell: 0.5 / _degrees_left(cell) + 2 * _first_order(cell, "matrix_error") ** 2,
        because="Half of d over the unused degrees of freedom, plus the next order of the error.",
        missing=RAISE, source="derivations/quadratic (7)", power=0.15,
    ),
    Agreement(
        "network-is-convex",
        "Training the weights of a wide enough network reaches the minimum of the convex problem.",
        metric=_wide_networks, expected=1.0, source="derivations/quadratic (1)", within=1e-5,
        because="The error of a gradient method, relative to the objective.",
        missing="no trained network was as wide as the rank of the minimiser; set network_samples=2000",
    ),
    Agreement(
        "control-is-closer",
        "The error of samples exceeds that of Gaussian matrices by the predicted difference.",
        metric=_over_control, expected=1.0, pairs="sensing", within=0.3, power=0.5,
        source="derivations/quadratic (20)",
        where=lambda cell: _control_gap(cell.point) > 0.03 * cell.predicted("matrix_error"),
        because="The second order of the difference in d/n; the first order is predicted.", missing=PAIRS,
    ),
    _changed(
        "pruning-helps",
        "Cutting the learned spectrum at the edge of the noise gives the predicted error.",
        "pruned_error", 0.2, "The noise of n samples is a semicircle only up to order d/n.",
        "arXiv:2509.24882, Corollary 2; derivations/quadratic (15)",
    ),
    _changed(
        "denoising-helps", "The rotationally invariant denoiser gives the predicted error.",
        "denoised_error", 0.2, "The noise is not a semicircle, and eigenvalues are smoothed.",
        "derivations/quadratic (17)",
    ),
    Agreement(
        "perfect-recovery",
        "Without label noise a low-rank target is recovered above the predicted sample size.",
        metric=_unexplained, expected=0.0, kind="at most", within=1e-3,
        source="derivations/quadratic (13)",
        because="A thousandth of the error of learning nothing, from 8 % above the threshold on.",
        where=lambda cell: _over_recovery(cell) > 1.08, missing=EXACT, power=0.3,
    ),
    *RECOVERY_CLAIMS,
    *PHASE_CLAIMS,
)  # fmt: skip
