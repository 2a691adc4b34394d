"""What matrix sensing claims: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.points import Point

SENSING = "arXiv:2503.14121, arXiv:2408.03733"


def tails(cell: Cell) -> float:
    """What few measurements of rank one add to the limit, over it; 0 for Gaussian ones."""
    setting = cell.setting
    return 0.0 if setting.sensors == "goe" else 2 / (setting.ratio * setting.dimension)


def at_size(estimator: str) -> Callable[[Cell], bool]:
    """Cells of an estimator at sizes near the limit, with something left to learn."""

    def chosen(cell: Cell) -> bool:
        setting = cell.setting
        settled = setting.estimator == estimator and tails(cell) < 0.05
        # Fewer dimensions have spectra of their own; at recovery a percent of samples is everything.
        near = setting.ratio / cell.predicted("recovery_ratio")
        steep = setting.noise < 0.05 * cell.predicted("bayes_matrix_error") and near > 0.8
        return settled and setting.dimension >= 30 and cell.expected > 1e-4 and not steep

    return chosen


def close(cell: Cell) -> float:
    """Five per cent, and what a finite size adds."""
    return 0.05 + tails(cell) + 1 / cell.setting.dimension


def recovery(points: Sequence[Point]) -> Finding | NotTestable:
    """Share of the prior error that is left beyond recovery without noise."""
    name = "matrix_error"
    beyond = [
        point
        for point in points
        if point.setting.noise == 0
        and not point.refused
        and point.setting.ratio > 1.15 * float(point.predicted("recovery_ratio"))
        and np.isfinite(point.values(name)).all()
    ]
    below = [
        point
        for point in points
        if point.setting.noise == 0
        and not point.refused
        and point.setting.ratio < 0.85 * float(point.predicted("recovery_ratio"))
        and np.isfinite(point.values(name)).all()
    ]
    if not (beyond and below):
        return NotTestable(
            "no points without noise on both sides of the recovery threshold; run with --preset recovery"
        )

    def mean(which: Sequence[Point], value: Callable[[Point], float]) -> float:
        return float(np.mean([value(point) for point in which]))

    measured = mean(below, lambda p: float(p.mean(name))) - mean(
        beyond, lambda p: float(p.mean(name))
    )
    expected = mean(below, lambda p: float(p.predicted(name))) - mean(
        beyond, lambda p: float(p.predicted(name))
    )
    errors = [float(p.standard_error(name)) / len(side) for side in (below, beyond) for p in side]
    error = float(np.linalg.norm(errors))
    return Finding(measured, expected, 0.1 * expected + 2.6 * error, error, below[0].replicates)


def lead(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean lead of the Bayesian over the nuclear norm at the same setting."""
    groups: dict[tuple[str, ...], dict[str, Point]] = {}
    for point in points:
        key = tuple(str(v) for name, v in point.parameters.items() if name != "estimator")
        if np.isfinite(point.values("matrix_error")).all() and not point.refused:
            groups.setdefault(key, {})[str(point.parameters["estimator"])] = point
    pairs = [(g["bayes"], g["nuclear-norm"]) for g in groups.values() if len(g) == 2]
    pairs = [(a, b) for a, b in pairs if a.replicates > 1]
    if not pairs:
        return NotTestable(
            "no setting has both estimators and two replicates; set estimator to both"
        )
    name, count = "matrix_error", len(pairs)
    measured = sum(float(b.mean(name) - a.mean(name)) for a, b in pairs) / count
    expected = sum(float(b.predicted(name) - a.predicted(name)) for a, b in pairs) / count
    errors = [float(p.standard_error(name)) for pair in pairs for p in pair]
    error = float(np.linalg.norm(errors)) / count
    if 2.6 * error > 0.5 * expected:
        return NotTestable(f"the lead scatters by {error:.2g}: more replicates")
    return Finding(measured, expected, 0.2 * expected + 2.6 * error, error, pairs[0][0].replicates)


# fmt: off
CLAIMS = (
    Agreement(
        "error-of-bayes",
        "Message passing reaches the error of state evolution, the least of any algorithm that is known.",
        "matrix_error", SENSING, within=close, relative=True,
        because="Five per cent, 1/d, and 2/(n/d) for measurements of rank one, whose noise has tails.",
        where=at_size("bayes"), power=0.3,
        missing="needs estimator=bayes, dimension 30, and 40 measurements of rank one a coordinate, away "
        "from recovery without noise",
    ),
    Agreement(
        "error-of-nuclear-norm",
        "The best penalty of the nuclear norm has the error of the best soft threshold.",
        "matrix_error", "derived from arXiv:2408.03733", within=close, relative=True,
        because="As for message passing.", where=at_size("nuclear-norm"), power=0.3,
        missing="needs estimator=nuclear-norm, dimension 30, and 40 measurements of rank one for each "
        "coordinate, away from recovery without noise",
    ),
    Agreement(
        "train-error",
        "What is left of the labels is what the degrees of freedom of the estimate leave.",
        "train_error", "derived", within=lambda cell: 0.08 + 2 * tails(cell) + 2 / cell.setting.dimension,
        relative=True, because="Five per cent of the degrees of freedom, and terms of order 1/d.",
        where=lambda cell: at_size(cell.setting.estimator)(cell) and cell.setting.noise > 0, power=0.5,
        missing="needs noise, dimension 30, and 40 measurements of rank one for each coordinate",
    ),
    Agreement(
        "rank-of-nuclear-norm",
        "The share of eigenvalues that the nuclear norm keeps is that beyond the best threshold.",
        "rank_fraction", "derived", within=lambda cell: 0.04 + 1 / cell.setting.dimension + tails(cell),
        because="An eigenvalue more or less, and the flat optimum of the penalty.",
        where=lambda cell: at_size("nuclear-norm")(cell), power=0.3,
        missing="needs estimator=nuclear-norm at 30 dimensions or more",
    ),
    Agreement(
        "spectrum-of-the-estimate",
        "Eigenvalues of the estimate, in eight groups from the largest, are those of the denoised law.",
        "eigenvalues", SENSING, entry="group", power=0.3,
        within=lambda cell: 0.06 + 0.06 * abs(cell.expected) + tails(cell),
        because="Six per cent, and the scatter of few eigenvalues.",
        where=lambda cell: at_size_of_list(cell),
        missing="needs dimension 32, and 40 measurements of rank one for each coordinate",
    ),
    Claim(
        "recovery-without-noise",
        "Without noise the error is that of the theory below the recovery threshold, and nothing beyond.",
        SENSING, "A tenth of the fall.", recovery, power=0.3,
    ),
    Claim(
        "bayes-beats-nuclear-norm",
        "To know the spectrum is worth what the two theories differ by.",
        "derived", "A fifth of the lead.", lead, power=0.5,
    ),
)
# fmt: on


def at_size_of_list(cell: Cell) -> bool:
    """As for errors, read at the error of the point."""
    setting = cell.setting
    error = float(cell.point.predicted("matrix_error"))
    return tails(cell) < 0.05 and setting.dimension >= 32 and error > 1e-4
