r"""
Sparse regression and its threshold line
========================================

Noiseless linear labels of a signal of which a fraction :math:`\rho` of entries is not 0. Message passing
with the right prior recovers it above the solid line, the smallest absolute sum (:math:`l_1`) above the
dashed line (Donoho and Tanner), and any method needs more than :math:`\rho`, the number of unknowns.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from solvable.inference import GaussBernoulli, Output, message_passing, thresholds
from solvable.plots.palette import COLOURS

output = Output("identity")
densities = np.linspace(0.02, 0.98, 25)
line = np.array([thresholds(GaussBernoulli(rho), output).algorithmic for rho in densities])


def weak_line(rho):
    """Smallest sample ratio at which the l1 norm recovers a signal of density rho."""

    def ratio(t):
        tail = (1 + t**2) * norm.cdf(-t) - t * norm.pdf(t)
        return rho * (1 + t**2) + 2 * (1 - rho) * tail

    return minimize_scalar(ratio, bounds=(0, 6), method="bounded").fun


# %%
# Runs on both sides of the line
# ------------------------------
#
# Circles: recovered, crosses: not, at d = 1,000.

D = 1_000


def error_of_run(rho, ratio, seed=0):
    """Measure the relative error of message passing on one data set."""
    rng, prior = np.random.default_rng(seed), GaussBernoulli(rho)
    w = prior.draw(D, rng)
    X = rng.standard_normal((int(ratio * D), D)) / np.sqrt(D)
    return message_passing(X, X @ w, prior, output).error_against(w) / rho


figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
axes.plot(densities, line, color=COLOURS[0], label="message passing")
axes.plot(densities, [weak_line(r) for r in densities], "--", color=COLOURS[1], label="$l_1$")
axes.plot(densities, densities, ":", color="0.5", label="number of unknowns")
for rho in (0.2, 0.4, 0.6):
    for ratio in np.array([0.7, 1.2]) * np.interp(rho, densities, line):
        mark = "o" if error_of_run(rho, ratio) < 1e-3 else "x"
        axes.plot(rho, ratio, mark, color=COLOURS[2])
axes.set(xlabel="fraction of entries that are not 0", ylabel="samples per dimension")
axes.legend(frameon=False)
plt.show()
