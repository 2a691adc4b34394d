"""What quadratic networks claim: rows of agreement, and checks of what is no agreement."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.points import Point
from solvable.models.quadratic.network.feature_groups import group_names, group_scatter
from solvable.models.quadratic.network.finite_size import unreachable
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.predict import degrees_left
from solvable.models.quadratic.network.solutions import measure_of, state_of
from solvable.spectra.measures import second_moment


def shape_effect(setting: QuadraticParameters) -> float:
    """Coordinates over samples, d/n, by which the shape of a sample's noise goes; 0 for the control."""
    return setting.dimension / setting.n_samples if setting.sensing == "network" else 0.0


def _first_order(cell: Cell, name: str) -> float:
    """First order in 1/d of an error, relative to the limit: of any measurements, and of samples."""
    if f"control_{name}" not in cell.point.prediction:  # of an earlier version
        return np.inf
    limit, control, expected = (
        cell.predicted(f"{order}{name}") for order in ("", "control_", "finite_size_")
    )
    return (abs(control - limit) + abs(expected - control)) / abs(limit) if limit else np.inf


def _expands(cell: Cell) -> bool:
    """Whether the next orders in 1/d and d/n are small: ten samples per coordinate, and no peak."""
    orders = [_first_order(cell, name) for name in ("matrix_error", "train_error")]
    return shape_effect(cell.setting) <= 0.1 and max(orders) <= 0.25


def _fits(cell: Cell) -> bool:
    """Whether hardly a label is below what a positive matrix can fit."""
    if not _expands(cell) or cell.setting.sensing != "network":
        return _expands(cell)
    lost = unreachable(state_of(cell.setting), cell.setting.dimension)
    return lost <= 0.05 * cell.predicted("finite_size_train_error")


def _next_order(cell: Cell, name: str) -> float:
    """Twice the square of the first order, and 3/d."""
    order = 2 * _first_order(cell, name) ** 2 + 3 / cell.setting.dimension
    return order * abs(cell.predicted(name))


def _next_rank(cell: Cell) -> float:
    limit = cell.predicted("rank_fraction")
    return 2 * (cell.expected - limit) ** 2 / limit if limit else 0.0


def _feature_shift(cell: Cell) -> float:
    # The expansion tells the size of the whole shift, not along which features it goes.
    largest = max(cell.expected, cell.predicted("matrix_error"))
    # Edges of a random target's spectrum move by d^(-2/3) between replicates.
    drawn = cell.setting.dimension ** (-2 / 3) if cell.setting.target != "power-law" else 0.0
    return _first_order(cell, "matrix_error") * largest + drawn * cell.expected


def _feature_scatter(cell: Cell) -> float:
    # A group of one scatters five times as much, relative to its error, as one of many features.
    return _scatters(cell.setting)[cell.entry or 0]


@lru_cache(maxsize=256)
def _scatters(setting: QuadraticParameters) -> list[float]:
    return group_scatter(setting, state_of(setting))


def _degrees_left(cell: Cell) -> float:
    return degrees_left(cell.setting, cell.predicted("degrees_of_freedom"))


def _tells(cell: Cell) -> bool:
    return _degrees_left(cell) >= 4


def _certain(point: Point, value: float) -> np.ndarray:
    """A number of all replicates together, which does not scatter: at least two equal ones."""
    return np.full(max(2, point.replicates), value)


def _spectral_distance(point: Point) -> np.ndarray:
    if point.prediction["eigenvalues"] is None:
        return _certain(point, np.nan)
    measured, predicted = point.values("eigenvalues"), point.predicted("eigenvalues")
    return _certain(point, distribution_distance(measured, predicted))


def distribution_distance(measured: np.ndarray, quantiles: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance over positive eigenvalues; quantiles at (k - 1/2)/d."""
    pooled, d = np.sort(measured.ravel()), quantiles.size
    places = pooled[pooled > 0]
    if places.size == 0:
        return float(np.mean(quantiles > 0))
    expected = np.interp(places, quantiles[::-1], (np.arange(d) + 0.5) / d)
    below = np.searchsorted(pooled, places, "left") / pooled.size
    until = np.searchsorted(pooled, places, "right") / pooled.size
    return float(np.maximum(np.abs(below - expected), np.abs(until - expected)).max())


def _spectral_step(cell: Cell) -> float:
    # Eigenvalues repel: counts scatter by less than one, and steps are 1/d high.
    rank, corrected = (cell.predicted(f"{order}rank_fraction") for order in ("", "finite_size_"))
    return 2 / cell.setting.dimension + abs(corrected - rank)


def _wide_networks(point: Point) -> np.ndarray:
    """Objective of the trained network over the convex minimum, if it is as wide as its rank."""
    width = round(point.setting.network_ratio * point.setting.dimension)
    wide = point.values("rank_fraction") * point.setting.dimension <= width
    return np.where(wide, point.values("network_objective") / point.values("objective"), np.nan)


def _unexplained(point: Point) -> np.ndarray:
    """Error over that of knowing nothing, the second moment 1 + p*/d of a Marchenko-Pastur target."""
    return point.values("matrix_error") / (1 + point.setting.target_units / point.setting.dimension)


def _over_recovery(cell: Cell) -> float:
    """Sample ratio over that of perfect recovery; NaN where that is not asked for."""
    setting = cell.setting
    exact = setting.noise == 0 and setting.regularisation <= 2e-3
    low_rank = setting.target == "marchenko-pastur" and setting.target_rank < setting.dimension
    threshold = cell.predicted("perfect_recovery_ratio")
    return setting.ratio / threshold if exact and low_rank else np.nan


def _clearly(cell: Cell, metric: str) -> bool:
    """Whether a change of the fit should lower the error by 15 %."""
    # Either takes the noise that the training data tell, and takes it for a semicircle, which n
    # matrices of rank one resemble for n >> d.
    gains = cell.predicted(metric) <= 0.85 * cell.predicted("matrix_error")
    return gains and _tells(cell) and shape_effect(cell.setting) <= 0.06


def _over_control(point: Point) -> np.ndarray:
    """Error of samples less that of Gaussian matrices, over what is predicted."""
    assert point.other is not None
    pairs = zip(point.other.values("matrix_error"), point.values("matrix_error"), strict=False)
    return np.array([samples - control for samples, control in pairs]) / _control_gap(point)


def _control_gap(point: Point) -> float:
    assert point.other is not None
    samples, control = (p.predicted("finite_size_matrix_error") for p in (point.other, point))
    return float(samples - control)


def _tells_error(cell: Cell) -> bool:
    # Knowing nothing, the labels' variance is the error, and training data tell that as well.
    nothing = 2 * second_moment(measure_of(cell.setting)) + cell.setting.noise
    return _expands(cell) and _tells(cell) and nothing >= 1.5 * cell.expected


NUCLEAR, SCALING = "arXiv:2505.17958", "arXiv:2509.24882"
ORDERS = (
    "Twice the square of the first order in 1/d, large for few samples and near the peak, and 3/d."
)
SAMPLES = (
    "the first order in 1/d is above a quarter of the limit, as near the interpolation peak, or n/d is "
    "below 10: no expansion holds there; raise dimension, sample_ratio or regularisation"
)
LEFT = "training leaves fewer than 4 degrees of freedom per coordinate; raise sample_ratio"
EXACT = "no low-rank target without noise on that side of its threshold; run the preset recovery"
NO_GAIN = "no point should gain 15 %; lower regularisation, or take a power law near the peak"
PAIRS = (
    "no setting where samples should exceed the control by 3 % has both; set sensing=network,goe"
)


def _changed(
    name: str, statement: str, metric: str, within: float, because: str, source: str
) -> Agreement:
    """A change of the fit leads to the predicted error, wherever it should clearly lower it."""

    def judged(cell: Cell) -> bool:
        # With few eigenvalues out of the noise their law is off by 30 to 60 %.
        rank = cell.predicted("rank_fraction") * cell.setting.dimension
        return bool(rank >= 10) and _clearly(cell, metric)

    return Agreement(
        name, statement, metric=metric, relative=True, within=within, because=because, source=source,
        where=judged, missing=NO_GAIN, power=0.3,
    )  # fmt: skip


CLAIMS = (
    Agreement(
        "test-error", "The error of the learned matrix is the predicted one at this dimension.",
        metric="matrix_error", expected="finite_size_matrix_error", where=_expands, missing=SAMPLES,
        within=lambda cell: _next_order(cell, "matrix_error"), because=ORDERS,
        source=f"{NUCLEAR}; first order in 1/d derived", power=0.15,
    ),
    Agreement(
        "train-error", "The training error is the predicted one at this dimension.",
        metric="train_error", expected="finite_size_train_error", where=_fits,
        missing=f"{SAMPLES}; or too many labels are below what a positive matrix fits",
        within=lambda cell: _next_order(cell, "train_error"), because=ORDERS, source="derived",
        power=0.15,
    ),
    Agreement(
        "rank", "The network learns the predicted number of directions.",
        metric="rank_fraction", expected="finite_size_rank_fraction", where=_expands, missing=SAMPLES,
        within=lambda cell: 1 / cell.setting.dimension + _next_rank(cell),
        because="One eigenvalue, and twice the square of the first order in 1/d.",
        source=f"{NUCLEAR}; first order in 1/d derived",
    ),
    Agreement(
        "spectrum",
        "Learned eigenvalues are distributed as those of target plus noise, shifted and cut.",
        metric=_spectral_distance, expected=0.0, kind="at most", where=_expands, missing=SAMPLES,
        within=_spectral_step, source=NUCLEAR, power=0.2,
        because="Two eigenvalues, and the rank's first correction in 1/d.",
    ),
    Agreement(
        "out-of-the-noise",
        "As many learned directions stand out of the noise as predicted, the noise told by the fit.",
        metric="outliers", where=_tells, missing=LEFT, source="derived", power=0.3,
        within=lambda cell: 1 + cell.expected / _degrees_left(cell),
        because="One eigenvalue, and their number over the degrees of freedom left.",
    ),
    Agreement(
        "feature-errors", "Each group of the target's features has its predicted error.",
        metric="feature_errors", entry=group_names, where=_expands, missing=SAMPLES, power=0.2,
        within=_feature_shift, scatter=_feature_scatter, source="derived",
        because="The first order in 1/d of the mean error, which may fall on any feature; d^(-2/3) "
        "for the edges of a random target.",
    ),
    Agreement(
        "training-data-tell-the-test-error",
        "Training data alone tell the test error that is predicted at this dimension.",
        metric="gcv_test_error", expected="finite_size_test_error", relative=True, where=_tells_error,
        within=lambda cell: 0.5 / _degrees_left(cell) + 2 * _first_order(cell, "matrix_error") ** 2,
        because="Half of d over the degrees of freedom left, and the next order of the error.",
        missing=f"{LEFT}; or {SAMPLES}", source="derived", power=0.15,
    ),
    Agreement(
        "network-is-convex",
        "Training the weights of a network, wide enough, finds the same minimum.",
        metric=_wide_networks, expected=1.0, source=NUCLEAR, within=1e-5,
        because="What a gradient method leaves, relative to the objective.",
        missing="no network as wide as the minimiser's rank was trained; set network_samples=2000",
    ),
    Agreement(
        "control-is-closer",
        "Samples lie above Gaussian matrices of the same covariance by the predicted difference.",
        metric=_over_control, expected=1.0, pairs="sensing", source="derived", within=0.3, power=0.5,
        where=lambda cell: _control_gap(cell.point) > 0.03 * cell.predicted("matrix_error"),
        because="The next order in d/n of a difference that is itself of first order.", missing=PAIRS,
    ),
    _changed(
        "pruning-helps",
        "Cutting the learned spectrum at the edge of the noise leads to the predicted error.",
        "pruned_error", 0.2, "n matrices of rank one are no semicircle, d/n below 0.06.", SCALING,
    ),
    _changed(
        "denoising-helps", "The rotationally invariant denoiser leads to the predicted error.",
        "denoised_error", 0.2, "The same, and smoothed eigenvalues in place of their law.", "derived",
    ),
    Agreement(
        "perfect-recovery",
        "Without label noise a low-rank target is recovered beyond the predicted sample size.",
        metric=_unexplained, expected=0.0, kind="at most", source=NUCLEAR, within=1e-3,
        because="A thousandth of the error of knowing nothing, from 8 % above the threshold on.",
        where=lambda cell: _over_recovery(cell) > 1.08, missing=EXACT, power=0.3,
    ),
)  # fmt: skip
