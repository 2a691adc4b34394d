r"""
LASSO: theory and scikit-learn
==============================

A signal with a share :math:`\rho=0.2` of entries that are not 0, labels
:math:`y=x\cdot w+\sqrt\Delta\,\xi`, and the minimiser of
:math:`\frac12\sum_i(y_i-x_i\cdot w)^2+\lambda|w|_1`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Lasso

from solvable import inference
from solvable.inference import GaussBernoulli, Loss, Output, Penalty, empirical_risk
from solvable.plots.palette import COLOURS

DENSITY, d, RUNS = 0.2, 300, 8
PRIOR, OUTPUT = GaussBernoulli(DENSITY), Output("linear", noise=0.05)


def predicted(strength, ratio):
    return empirical_risk(Loss("square"), Penalty("l1", strength), OUTPUT, PRIOR, ratio).error


def measured(strength):
    """Mean error over data sets and its standard error; signals have fixed norm and support size."""
    errors = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(d) * (np.arange(d) < DENSITY * d)
        w *= np.sqrt(DENSITY * d / (w @ w))
        X = rng.standard_normal((d, d)) / np.sqrt(d)
        model = Lasso(strength / d, fit_intercept=False, tol=1e-8, max_iter=100_000)
        errors.append(np.mean((model.fit(X, OUTPUT.draw(X @ w, rng)).coef_ - w) ** 2))
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(RUNS)


# %%
# The best penalty comes near the best estimate of all (dotted), which knows the law of the signal.
# Weak penalties have a second peak at one sample per dimension, where they fit all labels.

strengths, shown, ratios = np.geomspace(0.02, 1, 16), (0.05, 0.19, 0.6), np.arange(1, 17) / 10
curve = np.array([predicted(strength, 1.0) for strength in strengths])
points = [measured(strength) for strength in shown]
bayes = inference.state_evolution(PRIOR, OUTPUT, sample_ratio=ratios).error
figure, (left, right) = plt.subplots(1, 2, figsize=(6.2, 3), layout="constrained")
left.semilogx(strengths, curve, color=COLOURS[0])
left.errorbar(shown, *np.transpose(points), fmt="o", color=COLOURS[1], label=f"Lasso, d = {d}")
left.axhline(bayes[9], ls=":", color=COLOURS[2])
left.set(xlabel=r"penalty $\lambda$", ylabel="error of an entry", title="1 sample per dimension")
for colour, strength in zip(COLOURS, (0.02, 0.2), strict=False):
    right.plot(ratios, predicted(strength, ratios), color=colour, label=f"λ = {strength}")
right.plot(ratios, bayes, ls=":", color=COLOURS[2], label="best estimate")
threshold = inference.l1_recovery_threshold(DENSITY)
right.set(xlabel="samples per dimension", title=f"{threshold:.3f} suffice without noise")
left.legend(frameon=False)
right.legend(frameon=False)
plt.show()
