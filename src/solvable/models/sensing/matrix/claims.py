"""What matrix sensing claims: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.sensing.matrix.predict import at_dimension

SENSING = "arXiv:2503.14121, arXiv:2408.03733"


def growth(cell: Cell) -> float:
    """What this size adds to the limit, over it; of the nuclear norm as of Bayes message passing."""
    setting = cell.setting
    bayes = setting.model_copy(update={"estimator": "bayes"})
    error = at_dimension(bayes, setting.ratio)
    limit = float(cell.point.predicted("bayes_matrix_error"))
    return float("inf") if error is None else error / max(limit, 1e-300) - 1


def at_size(cell: Cell) -> bool:
    """Cells near enough to the limit, with something left to learn."""
    setting = cell.setting
    if float(cell.point.predicted("matrix_error")) < 1e-3 or growth(cell) > 0.3:
        return False
    # Without noise a per cent of the samples is everything next to recovery.
    near = setting.ratio / float(cell.point.predicted("recovery_ratio"))
    quiet = setting.noise < 0.05 * float(cell.point.predicted("matrix_error"))
    return setting.dimension >= 20 and not (quiet and near > 0.8)


def of(estimator: str) -> Callable[[Cell], bool]:
    """Such cells of one estimator."""
    return lambda cell: cell.setting.estimator == estimator and at_size(cell)


def recovery(points: Sequence[Point]) -> Finding | NotTestable:
    """Fall of the error across recovery without noise, of samples on which message passing settled."""
    name = "matrix_error"
    sides: dict[bool, list[Point]] = {False: [], True: []}
    for point in points:
        told = point.setting.noise == 0 and not point.refused
        if told and np.isfinite(point.values(name)).sum() * 2 >= max(point.replicates, 4):
            place = point.setting.ratio / float(point.predicted("recovery_ratio"))
            if not 0.85 < place < 1.15:
                sides[place > 1].append(point)
    if not (sides[False] and sides[True]):
        return NotTestable(
            "no points without noise on both sides of the recovery threshold; run with --preset recovery"
        )
    means, theory, squares = [], [], 0.0
    for side in sides.values():
        values = [point.values(name)[np.isfinite(point.values(name))] for point in side]
        means.append(np.mean([one.mean() for one in values]))
        theory.append(np.mean([float(point.predicted(name)) for point in side]))
        squares += sum(one.var(ddof=1) / one.size for one in values) / len(side) ** 2
    measured, expected = float(means[0] - means[1]), float(theory[0] - theory[1])
    error = float(np.sqrt(squares))
    return Finding(
        measured, expected, 0.1 * expected + 2.6 * error, error, sides[False][0].replicates
    )


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
        "matrix_error", f"{SENSING}; first order in 1/d derived", relative=True, power=0.2,
        expected="finite_size_matrix_error", within=lambda cell: 0.04 + growth(cell) ** 2,
        because="Four per cent, and the square of what the first order in 1/d adds.", where=of("bayes"),
        missing="needs estimator=bayes, dimension 20 and a first order in 1/d below 0.3, away from "
        "recovery without noise",
    ),
    Agreement(
        "error-of-nuclear-norm",
        "The best penalty of the nuclear norm has the error of the best soft threshold.",
        "matrix_error", "derived from arXiv:2408.03733", relative=True, power=0.4,
        within=lambda cell: 0.04 + 1.5 * growth(cell),
        because="The limit alone is predicted: one and a half times what 1/d adds for a Bayesian.",
        where=of("nuclear-norm"),
        missing="needs estimator=nuclear-norm, dimension 20, a first order in 1/d below 0.3, away from "
        "recovery without noise",
    ),
    Agreement(
        "train-error",
        "What is left of the labels is what the degrees of freedom of the estimate leave.",
        "train_error", "derived", within=lambda cell: 0.08 + 2 * growth(cell), relative=True, power=0.5,
        because="The limit alone is predicted: twice what 1/d adds to the error.",
        # What little is left of few measurements doubles by 1/d (measured).
        where=lambda cell: at_size(cell)
        and cell.expected > 0.25 * (cell.setting.noise + 2 * cell.predicted("matrix_error")),
        missing="needs an estimate that leaves half of the residual: raise sample_ratio or noise",
    ),
    Agreement(
        "rank-of-nuclear-norm",
        "The share of eigenvalues that the nuclear norm keeps is that beyond the best threshold.",
        "rank_fraction", "derived", within=lambda cell: 0.03 + 1 / cell.setting.dimension, power=0.3,
        because="An eigenvalue more or less, and the flat optimum of the penalty.",
        where=of("nuclear-norm"), missing="needs estimator=nuclear-norm at 20 dimensions or more",
    ),
    Agreement(
        "spectrum-of-the-estimate",
        "Eigenvalues of the estimate, in eight groups from the largest, are those of the denoised law.",
        "eigenvalues", SENSING, entry="group", power=0.3,
        within=lambda cell: 0.05 + (0.05 + growth(cell) / 2) * abs(cell.expected),
        because="Five per cent, half of what 1/d adds to the error, and the scatter of few eigenvalues.",
        where=at_size, missing="needs dimension 32 and a first order in 1/d below 0.3",
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
