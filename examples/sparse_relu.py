r"""
Sparse ReLU regression
======================

Labels :math:`y=\max(x\cdot w,0)` show half of the indices, and the sign of the others. A Gaussian signal
is recovered at two labels per dimension, without a jump. A sparse one is recovered at a jump, above
:math:`2\rho` labels, from which on the best estimate is exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.errors import NotConverged
from solvable.inference import GaussBernoulli, Output, message_passing, state_evolution, thresholds
from solvable.plots.palette import COLOURS

output = Output("relu")
ratios = np.linspace(0.02, 2.2, 150)

# %%
# Error of message passing
# ------------------------
#
# Points: four data sets at d = 800, whose signals have the second moment of the prior. A run that ends
# at an estimate that contradicts its labels is refused; such runs are counted and have no point.

D = 800


def error_of_run(rho, ratio, seed):
    """Measure the error of message passing on one data set."""
    rng, prior = np.random.default_rng(seed), GaussBernoulli(rho)
    w = prior.draw(D, rng)
    w *= np.sqrt(rho / np.mean(w**2))
    X = rng.standard_normal((int(ratio * D), D)) / np.sqrt(D)
    try:
        return message_passing(X, output.draw(X @ w, rng), prior, output).error_against(w)
    except NotConverged:
        return np.nan


figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for colour, rho in zip(COLOURS, (0.3, 0.5, 1.0), strict=False):
    prior = GaussBernoulli(rho)
    found = thresholds(prior, output)
    print(f"density {rho}: best {found.information:.3f}, message passing {found.algorithmic:.3f}")
    axes.plot(ratios, state_evolution(prior, output, ratios).error, color=colour)
    measured = found.algorithmic * np.array([0.3, 0.6, 1.3])
    runs = np.array([[error_of_run(rho, ratio, seed) for seed in range(4)] for ratio in measured])
    kept = np.isfinite(runs).sum(axis=1)
    print(f"refused: {runs.size - kept.sum()} of {runs.size} runs")
    spread = np.nanstd(runs, axis=1, ddof=1) / np.sqrt(kept)
    axes.errorbar(
        measured, np.nanmean(runs, axis=1), spread, fmt="o", color=colour, label=f"density {rho}"
    )
axes.set(xlabel="labels per dimension", ylabel="mean squared error of an entry")
axes.legend(frameon=False)
plt.show()
