r"""
One-bit compressed sensing
==========================

Signs of a sparse signal never recover it exactly: the error falls like the inverse square of the number
of labels, also if a tenth of the signs is inverted, because the threshold at 0 stays sharp. Logistic
labels have no sharp threshold, and the error falls like the inverse of their number.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.inference import GaussBernoulli, Output, message_passing, state_evolution
from solvable.plots.palette import COLOURS

RHO, D = 0.1, 1_000
prior = GaussBernoulli(RHO)
outputs = {
    "signs": Output("sign"),
    "a tenth inverted": Output("sign", flips=0.1),
    "logistic": Output("logistic", slope=2 / RHO**0.5),
}
ratios = np.geomspace(0.1, 100, 60)

# %%
# Error against the number of labels
# ----------------------------------
#
# Points: message passing on four data sets, whose signals have the second moment of the prior.


def error_of_run(output, ratio, seed):
    """Measure the error of message passing on one data set."""
    rng = np.random.default_rng(seed)
    w = prior.draw(D, rng)
    w *= np.sqrt(RHO / np.mean(w**2))
    X = rng.standard_normal((int(ratio * D), D)) / np.sqrt(D)
    return message_passing(X, output.draw(X @ w, rng), prior, output).error_against(w)


figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
measured = {}
for colour, (name, output) in zip(COLOURS, outputs.items(), strict=False):
    axes.loglog(ratios, state_evolution(prior, output, ratios).error, color=colour)
    for ratio in (0.5, 1.5):
        runs = [error_of_run(output, ratio, seed) for seed in range(4)]
        measured[name, ratio] = np.mean(runs), np.std(runs, ddof=1) / 2
        axes.errorbar(ratio, *measured[name, ratio], fmt="o", color=colour)
    axes.plot([], [], "o-", color=colour, label=name)
axes.set(xlabel="labels per dimension", ylabel="mean squared error of an entry")
axes.legend(frameon=False)
plt.show()
