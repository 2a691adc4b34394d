r"""
Binary perceptron
=================

Labels :math:`y=\mathrm{sign}(x\cdot w)` of a teacher with weights :math:`\pm1`. Message passing finds the
weights above 1.493 labels per weight. From 1.245 on the labels determine them, but no fast algorithm is
known (Györgyi 1990; arXiv:1708.03395).
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.inference import Output, Rademacher, message_passing, state_evolution, thresholds
from solvable.plots.palette import COLOURS

prior, output = Rademacher(0.5), Output("sign")
found = thresholds(prior, output)
print(f"information {found.information:.4f}, message passing {found.algorithmic:.4f}")

# %%
# Error of message passing and of the best estimate
# -------------------------------------------------
#
# Points: message passing on four data sets at d = 1,000, mean and standard error.

D = 1_000
ratios = np.linspace(0.05, 2.0, 120)
measured = np.array([0.4, 0.8, 1.1, 1.8])


def error_of_run(ratio, seed):
    """Measure the error of message passing on one data set."""
    rng = np.random.default_rng(seed)
    w = prior.draw(D, rng)
    X = rng.standard_normal((int(ratio * D), D)) / np.sqrt(D)
    return message_passing(X, output.draw(X @ w, rng), prior, output).error_against(w)


runs = np.array([[error_of_run(ratio, seed) for seed in range(4)] for ratio in measured])
means, errors = runs.mean(axis=1), runs.std(axis=1, ddof=1) / 2

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for start, label in (("best", "best estimate"), ("prior", "message passing")):
    law = state_evolution(prior, output, ratios, start=start)
    axes.plot(ratios, law.error, color=COLOURS[start == "prior"], label=label)
axes.errorbar(measured, means, errors, fmt="o", color=COLOURS[1], label=f"runs at d = {D}")
axes.set(xlabel="labels per weight", ylabel="mean squared error of a weight")
axes.legend(frameon=False)
plt.show()
