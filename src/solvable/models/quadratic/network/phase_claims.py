"""Claims on scaling phases: laws, exponents, best penalty, parts of the error, kinds of spectra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import not_
from solvable.frame.estimates import Estimate, Slope
from solvable.frame.points import Point
from solvable.models.quadratic.network.spectral_phase import measured_phase
from solvable.models.quadratic.phase_diagram import WINDOW, exponent_claim

PAPER = "arXiv:2509.24882"

CLEAR = 0.25
"""Smallest change of the logarithm of a field, to another kind of spectrum, of a clear kind."""


def expands(point: Point) -> bool:
    """Return True if the first order in 1/d changes the error by at most a quarter."""
    if point.prediction.get("local_exponent") is None:
        return False  # other targets, no label noise, or records of earlier versions
    error, limit = point.predicted("finite_size_matrix_error"), point.predicted("matrix_error")
    large = (
        point.setting.sensing == "goe" or point.setting.n_samples >= 10 * point.setting.dimension
    )
    return bool(large and abs(error - limit) <= 0.25 * limit)


GIVEN = {"regularisation_unit": not_("best")}
"""The penalty does not depend on the number of samples."""


def near(point: Point, exponent: float) -> bool:
    """Return True if the predicted slope at this dimension is close to the exponent of the limit."""
    return expands(point) and bool(abs(point.predicted("local_exponent") - exponent) <= WINDOW)


def minimax_exponent(setting: Any) -> float:
    """Exponent of n in the least error over all penalties, for 1 << n/d << d^(2 gamma)."""
    return -1 + 1 / (2 * float(setting.exponent))


def at_optimum(point: Point) -> bool:
    """Return True for the best penalty."""
    return bool(
        point.setting.regularisation_unit == "best" and abs(point.setting.regularisation - 1) < 1e-9
    )


def at_optimal_rate(point: Point) -> bool:
    """Return True if the error at the best penalty follows the minimax rate at this dimension."""
    setting = point.setting
    few = setting.ratio * setting.dimension < setting.dimension ** (2 * setting.exponent)
    return at_optimum(point) and few and near(point, minimax_exponent(setting))


def best_of_three(points: Sequence[Point]) -> tuple[float, float] | None:
    """Return the smallest error at another penalty over the error at the best one."""
    errors = {round(float(point.setting.regularisation), 9): point for point in points}
    if 1.0 not in errors or min(errors) >= 1 or max(errors) <= 1:
        return None
    measured, expected = (
        {place: float(read(point)) for place, point in errors.items()}
        for read in (
            lambda point: point.mean("matrix_error"),
            lambda point: point.predicted("finite_size_matrix_error"),
        )
    )
    nearest = min((place for place in errors if place != 1.0), key=lambda place: expected[place])
    return measured[nearest] / measured[1.0], expected[nearest] / expected[1.0]


def parts_of_error(point: Point) -> float:
    """Sum of overfitting, underfitting and approximation error, with the first order in 1/d of R."""
    names = ("overfitting_error", "underfitting_error", "approximation_error")
    if not expands(point):
        return float("nan")
    total = sum(float(point.predicted(name)) for name in names)
    order = point.predicted("finite_size_matrix_error") / point.predicted("matrix_error")
    return total * float(order)


def bulk_is_cut(cell: Cell) -> bool:
    """Return True if the threshold cuts most of the bulk and a few directions are learned."""
    # At b = 1.5 delta 2 % of the bulk are left. The parts are those of K << d isolated features.
    if not expands(cell.point) or "cut_over_noise" not in cell.point.prediction:
        return False
    learned = cell.predicted("rank_fraction") * cell.setting.dimension
    few = 3 <= learned <= 0.3 * cell.setting.dimension
    return bool(cell.predicted("cut_over_noise") >= 1.5 and few)


def kind_of(point: Point) -> str:
    """Phase of the measured spectra of a power law; empty without an estimate of the noise."""
    setting = point.setting
    if any("threshold" not in metrics for metrics in point.metrics):
        return ""  # stored records of a figure hold the metrics that it reads
    noise, threshold = (point.mean(name) for name in ("effective_noise", "threshold"))
    if setting.target != "power-law" or not np.isfinite([noise, threshold]).all():
        return ""
    shape = setting.dimension / setting.n_samples if setting.sensing == "network" else 0.0
    return measured_phase(
        point.values("eigenvalues"), effective_noise=float(noise), threshold=float(threshold),
        shape=shape,
    ).value  # fmt: skip


def clear_kind(point: Point) -> bool:
    """Return True for a power law whose predicted kind of spectrum is clear of the border to another."""
    setting = point.setting
    known = setting.target == "power-law" and "spectral_margin" in point.prediction
    enough = setting.n_samples >= 10 * setting.dimension  # the edge of the noise is known
    return bool(known and enough and point.predicted("spectral_margin") >= CLEAR)


def share_of_right_kinds(points: Sequence[Point]) -> tuple[float, float] | None:
    """Share of settings whose measured spectrum is of the predicted kind; all of them are expected."""
    kinds = [(kind_of(point), point.prediction["spectral_phase"]) for point in points]
    known = [measured == predicted for measured, predicted in kinds if measured]
    return (float(np.mean(known)), 1.0) if known else None


_exponent = partial(
    exponent_claim, metric="matrix_error", along="sample_ratio", ignore=("samples",),
    expected=lambda point: float(point.setting.ratio ** point.predicted("phase_exponent")),
    where={**GIVEN, "a first order in 1/d of at most a quarter": expands},
)  # fmt: skip
LAWS = "derivations/quadratic (25), (26), (27)"
NEAR = "derivations/quadratic (22)"


def _near_its_law(cell: Cell) -> bool:
    """Return True if the predicted error at this dimension is within 30 % of the law of the phase."""
    # The first order in 1/d is no part of the law, which is that of large d.
    if not expands(cell.point):
        return False
    return 1 / 1.3 <= cell.predicted("finite_size_matrix_error") / cell.expected <= 1.3


# fmt: off
PHASE_CLAIMS = (
    Agreement(
        "phase-law", "The error equals the leading law of its phase, with its constant.",
        metric="matrix_error", expected="scaling_law_matrix_error", relative=True, within=0.35, power=0.8,
        source=f"{PAPER}, Result 1; {LAWS}", where=_near_its_law,
        because="The law is judged where it is within 30 % of the error, both in the limit and at this "
        "dimension.",
        missing="no point of a power law with label noise lies deep inside a phase; run with "
        "--preset phases",
    ),
    _exponent("II", "In phase II the error falls as n^-(2 - 1/gamma).", f"{PAPER}, Result 1; {LAWS}"),
    _exponent("III", "In phase III the error falls as n^-2.", f"{PAPER}, Result 1; {LAWS}"),
    Slope(
        "slope-IV", "In phase IV the slope of the error in n is the predicted one at this dimension, "
        "which tends to -1 + 1/(2 gamma).", f"{PAPER}, Result 1; {LAWS}", metric="matrix_error",
        expected="finite_size_matrix_error", along="sample_ratio", ignore=("samples",), span=2.0,
        where=({"scaling_phase": "IV"}, expands, GIVEN),
        within=0.1, power=0.25, because="The second order in 1/d, which is larger for fewer samples.",
        missing="no curve has three sample sizes in phase IV, a factor of 2 apart; run with --preset "
        "dimensions",
    ),
    _exponent("VIa", "In phase VIa the error falls as 1/n.", f"{PAPER}, Result 1; {NEAR}"),
    _exponent("VIb", "In phase VIb the error falls as 1/n.", f"{PAPER}, Result 1; {LAWS}"),
    Slope(
        "harmful-overfitting", "In phase V the error rises with n, with the slope predicted at this "
        "dimension.", f"{PAPER}, Result 1; {NEAR}", metric="matrix_error",
        expected="finite_size_matrix_error", along="sample_ratio", ignore=("samples",), fewest=2,
        span=1.3, where=({"scaling_phase": "V"}, expands, GIVEN),
        within=0.25, because="The second order in 1/d, which grows towards the peak.", power=0.6,
        missing="no curve has two sample sizes in phase V where the first order in 1/d is small; run "
        "with --preset dimensions",
    ),
    Slope(
        "minimax-rate", "At the best penalty the error falls as n^(-1 + 1/(2 gamma)).",
        f"{PAPER}, Corollary 1; derivations/quadratic (28)", metric="matrix_error",
        expected=lambda p: p.setting.ratio ** minimax_exponent(p.setting), along="sample_ratio",
        ignore=("samples",), where=at_optimal_rate, within=0.15, power=0.3,
        because="The slope at this dimension differs by up to 0.12 from the exponent.",
        missing="no curve has three sample sizes at the best penalty where the predicted slope is within "
        "0.12 of the exponent; run with --preset best",
    ),
    Slope(
        "rate-at-the-best-penalty", "At the best penalty the slope of the error in n is the "
        "predicted one at this dimension.", f"{PAPER}, Corollary 1; derivations/quadratic (18)",
        metric="matrix_error", expected="finite_size_matrix_error", along="sample_ratio",
        ignore=("samples",),
        where=(at_optimum, expands), within=0.08, power=0.2,
        because="The second order in 1/d, which is larger for fewer samples.",
        missing="no curve has three sample sizes with regularisation_unit=best; run with --preset best",
    ),
    Estimate(
        "best-penalty", "The error at the best penalty is below the error at other penalties, by the "
        "predicted factor.", f"{PAPER}, Corollary 1; derivations/quadratic (18)", estimate=best_of_three,
        apart=("regularisation",), fewest=3, where=({"regularisation_unit": "best"}, expands),
        relative=True, within=0.05, power=0.15, because="The second order in 1/d.",
        missing="no sample size was run at a smaller and a larger penalty than the best one; run with "
        "--preset best",
    ),
    Agreement(
        "error-parts", "Overfitting, underfitting and approximation error add up to the error.",
        metric="matrix_error", expected=parts_of_error, relative=True, within=0.12, power=0.25,
        source=f"{PAPER}, Result 3; derivations/quadratic (10)", where=bulk_is_cut,
        because="The bulk also learns a part of the features just below the noise: up to 8 % of the "
        "error at b = 1.5 delta.",
        missing="the threshold is below 1.5 delta at every point of a power law; run with --preset "
        "regularisation",
    ),
    Estimate(
        "spectral-kinds", "Clear of the borders between kinds, at least four in five measured spectra "
        "are of the predicted one of six kinds.", f"{PAPER}, Figure 2; derivations/quadratic (12)",
        estimate=share_of_right_kinds, fewest=8, where=clear_kind, within=0.2, power=0.5,
        because="A feature near the edge of the noise moves between replicates.",
        missing="fewer than eight settings have a power-law target and a kind of spectrum that is clear; "
        "run with --preset spectra",
    ),
)
