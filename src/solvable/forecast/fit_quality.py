"""Judge whether at least one model fits a learning curve within its noise."""

from __future__ import annotations

from collections.abc import Iterable

from solvable.forecast.fitting import Fitted
from solvable.forecast.noise import ReplicateNoise
from solvable.forecast.results import Score
from solvable.plots.numbers import format_number

LEAST_CHANCE = 0.01  # smallest probability of the deviations at which a model still fits


def fit_chance(models: Iterable[Fitted], noise: ReplicateNoise) -> float | None:
    """Return the probability that noise alone deviates this much from the better fit.

    It is None if the noise is unknown or if a model has as many parameters as there are sizes.
    """
    from scipy.stats import f as fisher

    models = list(models)
    if not noise.known or any(model.freedom < 1 for model in models):
        return None
    # chi² / f of a true model follows Fisher's F(f, nu), where nu are the degrees of freedom of the
    # variances. The smallest nu is used, so that false alarms are rare.
    behind = float(noise.freedom.min())
    return max(
        float(fisher.sf(model.chi_square / model.freedom, model.freedom, behind))
        for model in models
    )


def fits(chance: float | None) -> bool | None:
    """Return whether a model fits; None if this cannot be judged."""
    return None if chance is None else chance >= LEAST_CHANCE


def misfit_note(chance: float | None, score: Score) -> str | None:
    """Return a sentence if neither model fits; ``score`` is that of the model of larger weight."""
    if fits(chance) is not False:
        return None
    return (
        "Neither model fits the measured errors: noise between replicates exceeds these deviations in "
        f"fewer than one of {1 / LEAST_CHANCE:.0f} curves. The errors deviate from the model of larger "
        f"weight by {format_number(100 * score.misfit, 2)} % beyond noise. The intervals treat this as "
        "further noise, so they hold only if the curve goes on as before on average. Look for a size "
        "at which the learner, the data or the training changed, and plot the curve: a jump or a rise "
        "is in neither model."
    )
