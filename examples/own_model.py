"""
A model of your own, judged
===========================

Sparse entries of two sizes are seen through the signs of their projections, of which 5 % are flipped.
Prior and output give the predicted error and the algorithm; a system compares both over replicates.
"""

# %%
import numpy as np

import solvable
from solvable.inference import Discrete, Output, message_passing, state_evolution, thresholds
from solvable.systems.base import Agreement, Axis, Panel, Parameters, System, Trace

prior = Discrete([0.0, 1.0, -1.0, 2.0, -2.0], [0.6, 0.15, 0.15, 0.05, 0.05])
output = Output("sign", flips=0.05)
print(thresholds(prior, output))


# %%
class Sizes(Parameters):
    """Sizes of the problem."""

    dimension: int = 2000
    sample_ratio: float = 2.0


def measure(parameters, rng):
    """Fit one data set by message passing; the error depends on nothing else."""
    d, n = parameters.dimension, round(parameters.sample_ratio * parameters.dimension)
    signal, X = prior.draw(d, rng), rng.standard_normal((n, d)) / np.sqrt(d)
    fit = message_passing(X, output.draw(X @ signal, rng), prior, output)
    return {"error": fit.error_against(signal)}


def predict(parameters):
    """Bayes-optimal error in the limit of large dimensions."""
    return {"error": float(state_evolution(prior, output, parameters.sample_ratio).error)}


claim = Agreement(
    "error", "The error is the Bayes-optimal one.", metric="error", source="derived here",
    within=0.02, because="Terms of order 1 / d.", power=0.15,
)  # fmt: skip
system = System(
    name="sparse-levels",
    title="Sparse entries of two sizes, seen through noisy signs",
    version="1",
    parameters=Sizes,
    measure=measure,
    predict=predict,
    axis=Axis("sample_ratio", "sample ratio n/d", resolution=20),
    claims=[claim],
    panels=[Panel("error", "Error of message passing", "mean squared error", [Trace("error", "")])],
)
found = solvable.run(system, preset=None, sample_ratio=[0.5, 1.0, 2.0, 3.0], seeds=8, workers=1)
print(found.verdicts)
found.figure("error")
