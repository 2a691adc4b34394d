"""Parameters of a fitted family with intervals, in the units in which they are quoted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.forecast.bootstrap import Fitted
from solvable.forecast.families import PowerLaw
from solvable.forecast.fitting import Fits
from solvable.forecast.results import Estimate


def parameter_estimates(fitted: Fitted, confidence: float) -> Mapping[str, Estimate]:
    """Maximum likelihood and bootstrap percentiles of every parameter of a model.

    Parameters
    ----------
    fitted : Fitted
        A family fitted to a curve.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    mapping of str to Estimate
        ``offset``, ``amplitude``, then the non-linear parameters. They describe the model, not
        nature: where another model fits as well, so may its offset.
    """
    best, draws = (_quoted(fitted, one) for one in (fitted.best, fitted.draws))
    tail = (1 - confidence) / 2
    found = {}
    for name, values in draws.items():
        value = float(best[name][0])
        lower, upper = np.quantile(values, (tail, 1 - tail))
        # Percentiles of draws that pile up at a boundary may miss the estimate itself.
        found[name] = Estimate(value, min(float(lower), value), max(float(upper), value))
    return found


def _quoted(fitted: Fitted, fits: Fits) -> dict[str, np.ndarray]:
    family = fitted.grid.family
    parameters = fitted.grid.parameters[fits.rows]
    amplitude = fits.amplitude
    if isinstance(family, PowerLaw):
        amplitude = amplitude * np.exp(parameters[:, 0] * np.log(family.reference))
    columns = dict(zip(family.parameters, parameters.T, strict=True))
    return {"offset": fits.offset, "amplitude": amplitude, **columns}
