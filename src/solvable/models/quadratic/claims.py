"""What quadratic networks claim: rows of agreement, and checks of what is no agreement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.quadratic.parameters import QuadraticParameters
from solvable.models.quadratic.predict import group_names, group_sizes


def shape_effect(setting: QuadraticParameters) -> float:
    """Coordinates over samples, d/n, by which the shape of a sample's noise goes; 0 for the control."""
    return setting.dimension / setting.n_samples if setting.sensing == "network" else 0.0


def _shape(cell: Cell) -> float:
    """Deviation of samples beyond the first order in 1/d, relative to the limit."""
    # 0.3 to 1.5 times d/n at d = 24 to 100 below the interpolation threshold, where it is largest.
    return 1.5 * shape_effect(cell.setting)


def _correction(cell: Cell) -> float:
    """First order in 1/d of the error, relative to the limit."""
    return abs(cell.predicted("finite_size_matrix_error") / cell.predicted("matrix_error") - 1)


def _expands(cell: Cell) -> bool:
    """Whether the next orders in 1/d and d/n are smaller: ten samples per coordinate."""
    enough = cell.setting.noise > 0 and shape_effect(cell.setting) <= 0.1
    return enough and _correction(cell) <= 0.4


def _next_order(cell: Cell, name: str, power: int) -> float:
    """Square of the first correction in 1/d, and what the shape of a sample's noise adds."""
    limit = cell.predicted(name)
    shape = power * _shape(cell) * max(abs(cell.expected), abs(limit))
    return shape + (cell.expected - limit) ** 2 / abs(limit)


def _feature_shift(cell: Cell) -> float:
    # The expansion tells the size of the whole shift, not along which features it goes.
    largest = max(cell.expected, cell.predicted("matrix_error"))
    # Edges of a random target's spectrum move by d^(-2/3) between replicates.
    drawn = cell.setting.dimension ** (-2 / 3) if cell.setting.target != "power-law" else 0.0
    return (_correction(cell) + _shape(cell)) * largest + drawn * cell.expected


def _degrees_left(point: Point) -> float:
    """Degrees of freedom per coordinate that training leaves, (n - df)/d; 4 tell something."""
    setting = point.setting
    return float(setting.dimension * (setting.ratio - point.predicted("degrees_of_freedom")))


def _tells(cell: Cell) -> bool:
    return _degrees_left(cell.point) >= 4


def _summed_features(point: Point) -> np.ndarray:
    """Predicted errors of the features, added up, over the predicted error."""
    sizes, total = group_sizes(point.setting), float(point.predicted("matrix_error"))
    summed = float(point.predicted("feature_errors") @ sizes / sizes.sum())
    return _certain(point, summed / total if total > 0 else np.nan)


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
    return 2 / cell.setting.dimension + abs(corrected - rank) + _shape(cell) * rank


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


def _clearly(cell: Cell) -> bool:
    """Whether a change of the fit should lower the error by 15 %."""
    # Either takes the noise that the training data tell, and takes it for a semicircle, which n
    # matrices of rank one resemble for n >> d.
    return cell.expected <= 0.85 and _tells(cell) and shape_effect(cell.setting) <= 0.06


def _minimum(points: Sequence[Point]) -> Finding:
    """Largest optimality residual over all replicates."""
    residuals = np.concatenate([point.values("kkt_residual") for point in points])
    return Finding(float(residuals.max()), 1e-6, 0.0, None, residuals.size, "at most")


def _control_is_closer(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean excess of the error over the limit: of samples, less that of Gaussian matrices."""
    pairs: dict[tuple[object, ...], dict[str, Point]] = {}
    for point in points:
        key = tuple(value for name, value in point.parameters.items() if name != "sensing")
        pairs.setdefault(key, {})[point.parameters["sensing"]] = point
    gaps, variances = [], []
    for pair in pairs.values():
        if len(pair) < 2 or shape_effect(pair["network"].setting) > 0.1:
            continue
        limit = float(pair["network"].predicted("matrix_error"))
        samples, control = (pair[kind].mean("matrix_error") for kind in ("network", "goe"))
        gaps.append((samples - control) / limit)
        for point in pair.values():
            # Relative deviations between replicates are 2.4/d to 5/d; few tell their own badly.
            least = 3 / point.setting.dimension / point.replicates**0.5
            scatter = np.nan_to_num(point.standard_error("matrix_error") / limit)
            variances.append(max(float(scatter), least) ** 2)
    if not gaps:
        return NotTestable("no setting was measured with both sensings; set sensing=network,goe")
    error, words = sum(variances) ** 0.5 / len(gaps), f"Over {len(gaps)} settings."
    count = sum(point.replicates for point in points)
    return Finding(float(np.mean(gaps)), 0.0, 3 * error, error, count, "at least", words)


NUCLEAR, SCALING, BAYES = "arXiv:2505.17958", "arXiv:2509.24882", "arXiv:2408.03733"
ORDERS = "The square of the first correction in 1/d; for samples 1.5 d/n, the shape of their noise."
SAMPLES = "no point has label noise and n/d >= 10 for an expansion; raise dimension or sample_ratio"
LEFT = "training leaves fewer than 4 degrees of freedom per coordinate; raise sample_ratio"
EXACT = "no low-rank target without noise on that side of its threshold; run the preset recovery"
NO_GAIN = "no point should gain 15 %; lower regularisation, or take a power law near the peak"


def _helps(name: str, statement: str, metric: str, source: str) -> Agreement:
    """A change of the fit lowers the error, wherever it should clearly do so."""
    return Agreement(
        name, statement, metric=lambda point: point.values(metric) / point.values("matrix_error"),
        expected=lambda point: point.predicted(metric) / point.predicted("matrix_error"),
        kind="at most", within=lambda cell: 1 - cell.expected, source=source, power=0.9,
        because="The whole gain that is predicted, where it is at least 15 % and d/n is below 0.06.",
        where=_clearly, missing=NO_GAIN,
    )  # fmt: skip


CLAIMS = (
    Agreement(
        "test-error", "The error of the learned matrix is the predicted one at this dimension.",
        metric="matrix_error", expected="finite_size_matrix_error", where=_expands, missing=SAMPLES,
        within=lambda cell: _next_order(cell, "matrix_error", 1), because=ORDERS, power=0.3,
        source=f"{NUCLEAR}; first order in 1/d derived",
    ),
    Agreement(
        "train-error", "The training error is the predicted one at this dimension.",
        metric="train_error", expected="finite_size_train_error", where=_expands, missing=SAMPLES,
        within=lambda cell: _next_order(cell, "train_error", 2), source="derived", power=0.5,
        because=f"{ORDERS} 1.5 d/n counts twice, as the training error is a square.",
    ),
    Agreement(
        "rank", "The network learns the predicted number of directions.",
        metric="rank_fraction", expected="finite_size_rank_fraction", where=_expands, missing=SAMPLES,
        within=lambda cell: 1 / cell.setting.dimension + _shape(cell) * cell.expected,
        because="One eigenvalue, and 1.5 d/n of the rank for samples.", source=NUCLEAR,
    ),
    Agreement(
        "spectrum",
        "Learned eigenvalues are distributed as those of target plus noise, shifted and cut.",
        metric=_spectral_distance, expected=0.0, kind="at most", where=_expands, missing=SAMPLES,
        within=_spectral_step, source=NUCLEAR,
        because="Two eigenvalues, the rank's first correction in 1/d, and 1.5 d/n of it for samples.",
    ),
    Agreement(
        "out-of-the-noise",
        "As many learned directions stand out of the noise as predicted, the noise told by the fit.",
        metric="outliers", where=_tells, missing=LEFT, source="derived", power=0.5,
        within=lambda cell: 1 + cell.expected / _degrees_left(cell.point),
        because="One eigenvalue, and their number over the degrees of freedom left.",
    ),
    Agreement(
        "feature-errors", "Each group of the target's features has its predicted error.",
        metric="feature_errors", entry=group_names, where=_expands, missing=SAMPLES, power=0.5,
        within=_feature_shift, source="derived",
        because="The first correction in 1/d, and 1.5 d/n for samples, of the mean error, which may fall "
        "on any feature; d^(-2/3) for the edges of a random target.",
    ),
    Agreement(
        "feature-errors-sum", "Predicted errors of the features add up to the predicted error.",
        metric=_summed_features, expected=1.0, missing="no point has an error to decompose",
        within=3e-3, source="derived",
        because="Accuracy of the quadrature over features of a continuous spectrum.",
    ),
    Agreement(
        "training-data-tell-the-test-error",
        "The test error predicted from training data alone is the true one.",
        metric=lambda point: point.values("gcv_test_error") / point.values("test_error"),
        expected=1.0, where=_tells, missing=LEFT, source="derived", power=0.15,
        within=lambda cell: 1 / _degrees_left(cell.point),
        because="d over the degrees of freedom that training leaves.",
    ),
    Claim(
        "minimum", "What was found is the global minimum.",
        NUCLEAR, "The solver's own tolerance, of dual feasibility and duality gap.", _minimum,
    ),
    Agreement(
        "network-is-convex",
        "Training the weights of a network, wide enough, finds the same minimum.",
        metric=_wide_networks, expected=1.0, source=NUCLEAR, within=1e-5,
        because="What a gradient method leaves, relative to the objective.",
        missing="no network as wide as the minimiser's rank was trained; set network_samples=2000",
    ),
    Claim(
        "control-is-closer",
        "Samples lie above the limit by more than Gaussian matrices of the same covariance do.",
        "derived", "A one-sided statement; three standard errors.", _control_is_closer,
    ),
    Agreement(
        "no-better-than-bayes", "The network's error is at least that of the best estimator.",
        metric=lambda point: point.predicted("bayes_matrix_error") / point.values("matrix_error"),
        expected=1.0, kind="at most", source=BAYES, within=0.05, because="Terms of order 1/d.", power=0.9,
        where=lambda cell: cell.measured > 0 and shape_effect(cell.setting) <= 0.1,
        missing="no point has a positive Bayes-optimal error and n/d of at least 10",
    ),
    _helps(
        "pruning-helps",
        "Cutting the learned spectrum at the edge of the noise lowers the error where it should.",
        "pruned_error", SCALING,
    ),
    _helps(
        "denoising-helps",
        "The rotationally invariant denoiser lowers the error where it should.",
        "denoised_error", "derived",
    ),
    Agreement(
        "perfect-recovery",
        "Without label noise a low-rank target is recovered beyond the predicted sample size.",
        metric=_unexplained, expected=0.0, kind="at most", source=NUCLEAR, within=1e-3,
        because="A thousandth of the error of knowing nothing, from 8 % above the threshold on.",
        where=lambda cell: _over_recovery(cell) > 1.08, missing=EXACT,
    ),
    Agreement(
        "no-recovery-below", "Short of that size a low-rank target is not recovered.",
        # The bound over the error, as the error itself scatters more than the bound is large.
        metric=lambda point: 0.02 / _unexplained(point), expected=0.0, kind="at most", within=1.0,
        because="Two hundredths of the error of knowing nothing, up to 16 % below the threshold.",
        source=NUCLEAR,
        where=lambda cell: _over_recovery(cell) < 0.84, missing=EXACT,
    ),
)  # fmt: skip
