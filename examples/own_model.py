"""
A model of your own, judged
===========================

Sparse entries of size 1 and 2 are observed through the sign of their projections, of which 5 % are
flipped. The prior and the output are parts of ``solvable.inference``; the same two objects give the
curve, its thresholds and message passing, and a system compares them over replicates.
"""

# %%
import numpy as np

import solvable
from solvable.inference import Discrete, Output, message_passing, state_evolution, thresholds
from solvable.systems.base import Agreement, Axis, Panel, Parameters, Preset, System, Trace

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
    signal = prior.draw(d, rng)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    fit = message_passing(X, output.draw(X @ signal, rng), prior, output)
    return {"error": fit.error_against(signal)}


def predict(parameters):
    """Bayes-optimal error in the limit of large dimensions."""
    return {"error": float(state_evolution(prior, output, parameters.sample_ratio).error)}


system = System(
    name="sparse-levels",
    title="Sparse entries of two sizes, seen through noisy signs",
    version="1",
    parameters=Sizes,
    measure=measure,
    predict=predict,
    axis=Axis("sample_ratio", "sample ratio n/d", resolution=20),
    claims=[
        Agreement(
            "error",
            "The error is the Bayes-optimal one.",
            metric="error",
            source="derived here",
            within=0.02,
            because="Terms of order 1 / d.",
            power=0.15,
        )
    ],
    panels=[Panel("error", "Error of message passing", "mean squared error", [Trace("error", "")])],
    presets={"quick": Preset("Four ratios.", {"sample_ratio": (0.5, 1.0, 2.0, 3.0)}, 8)},
)
found = solvable.run(system, workers=1)
print(found.verdicts)
found.figure("error")
