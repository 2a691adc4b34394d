r"""
Sparse phase retrieval
======================

Labels :math:`y=|x\cdot w|` do not show the sign. Message passing finds nothing below half a label per
dimension, for any prior of mean 0, and recovers the signal at a jump further up; for a Gaussian signal at
1.128 (arXiv:1708.03395). A fraction :math:`\rho` of samples would determine the signal.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.inference import GaussBernoulli, Output, message_passing, state_evolution, thresholds
from solvable.plots.palette import COLOURS

output = Output("abs")
ratios = np.linspace(0.4, 1.2, 81)

# %%
# Overlap of message passing
# --------------------------
#
# Dotted: weak recovery. Crosses: one run each, at d = 1,000.

D = 1_000


def run(rho, ratio, seed=0):
    """Overlap of message passing with the signal, on one data set."""
    rng, prior = np.random.default_rng(seed), GaussBernoulli(rho)
    w = prior.draw(D, rng)
    X = rng.standard_normal((int(ratio * D), D)) / np.sqrt(D)
    fit = message_passing(X, np.abs(X @ w), prior, output)
    return (fit.estimate @ w) ** 2 / (fit.estimate @ fit.estimate) / (w @ w)


figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for colour, rho in zip(COLOURS, (0.3, 0.6, 1.0), strict=False):
    prior = GaussBernoulli(rho)
    found = thresholds(prior, output)
    print(f"density {rho}: weak {found.weak_recovery:.3f}, perfect {found.perfect_recovery:.3f}")
    law = state_evolution(prior, output, ratios)
    axes.plot(ratios, law.overlap, color=colour, label=f"density {rho}")
    ratio = 1.3 * found.perfect_recovery
    axes.plot(ratio, run(rho, ratio), "x", color=colour)
axes.axvline(0.5, color="0.5", linestyle=":")
axes.set(xlabel="labels per dimension", ylabel="squared overlap with the signal")
axes.legend(frameon=False)
plt.show()
