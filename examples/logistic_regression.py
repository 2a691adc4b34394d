r"""
Logistic regression, and where it ceases to exist
=================================================

Labels are 1 with probability :math:`1/(1+e^{-x\cdot w})`. Ridge logistic regression minimises
:math:`\sum_i\log(1+e^{-y_ix_i\cdot w})+\frac\lambda2|w|^2`. Without penalty it has a minimiser only if no
weights separate the labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from solvable import inference
from solvable.inference import Gaussian, Loss, Output, Penalty, empirical_risk
from solvable.plots.palette import COLOURS

SIGNAL, d, RUNS = 4.0, 200, 5
PRIOR, OUTPUT = Gaussian(SIGNAL), Output("logistic")


def predicted(strength, ratio):
    return empirical_risk(Loss("logistic"), Penalty("l2", strength), OUTPUT, PRIOR, ratio)


def measured(strength, ratio):
    """Mean share of wrong signs over data sets, and its standard error."""
    errors = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(d)
        w *= np.sqrt(SIGNAL * d / (w @ w))
        X = rng.standard_normal((round(ratio * d), d)) / np.sqrt(d)
        model = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-8, max_iter=1_000)
        v = model.fit(X, OUTPUT.draw(X @ w, rng)).coef_[0]
        errors.append(np.arccos(v @ w / np.sqrt((v @ v) * (w @ w))) / np.pi)
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(RUNS)


# %%
# Right: the norm of the estimate without penalty grows without bound as the number of samples falls to
# the threshold of separability. The norm of the signal is dotted.

threshold = inference.separability_threshold(OUTPUT, PRIOR)
ratios, shown = np.linspace(0.5, 6, 8), (1.0, 4.0)
points = {strength: [measured(strength, ratio) for ratio in shown] for strength in (0.05, 10.0)}
figure, (left, right) = plt.subplots(1, 2, figsize=(6.2, 3), layout="constrained")
for colour, (strength, found) in zip(COLOURS, points.items(), strict=False):
    left.plot(ratios, predicted(strength, ratios).error, color=colour, label=f"λ = {strength}")
    left.errorbar(shown, *np.transpose(found), fmt="o", color=colour)
left.set(xlabel="samples per dimension", ylabel="wrong signs", title=f"points: d = {d}")
above = threshold * (1 + np.geomspace(1e-2, 2, 9))
right.semilogy(above, predicted(0.0, above).norm, color=COLOURS[0])
right.axvline(threshold, color="grey", lw=0.8, label=f"exists from {threshold:.4f}")
right.axhline(SIGNAL, ls=":", color="grey")
right.set(xlabel="samples per dimension", ylabel="squared weight")
left.legend(frameon=False)
right.legend(frameon=False)
plt.show()
