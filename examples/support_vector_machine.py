r"""
Support vector machine
======================

Labels are the sign of :math:`x\cdot w`, one in ten flipped. The machine minimises
:math:`\sum_i\max(0,1-y_ix_i\cdot w)+\frac\lambda2|w|^2`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from solvable import inference
from solvable.inference import Gaussian, Loss, Output, Penalty, empirical_risk
from solvable.plots.palette import COLOURS

d, RUNS = 200, 6
PRIOR, OUTPUT = Gaussian(), Output("sign", flips=0.1)


def predicted(strength, ratio):
    return empirical_risk(Loss("hinge"), Penalty("l2", strength), OUTPUT, PRIOR, ratio)


def measured(strength, ratio):
    """Means over data sets of wrong signs and training loss, and their standard errors."""
    rows = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(d)
        X = rng.standard_normal((round(ratio * d), d)) / np.sqrt(d)
        y = OUTPUT.draw(X @ w * np.sqrt(d / (w @ w)), rng)
        model = LinearSVC(C=1 / strength, loss="hinge", fit_intercept=False, random_state=0)
        v = model.set_params(tol=1e-5, max_iter=100_000).fit(X, y).coef_[0]
        wrong = np.arccos(v @ w / np.sqrt((v @ v) * (w @ w))) / np.pi
        rows.append([wrong, np.maximum(1 - y * (X @ v), 0).mean()])
    return np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(RUNS)


# %%
# A weak penalty fits the labels of few samples without loss, also the flipped ones, and errs more often.

ratios, shown, points = np.linspace(0.5, 6, 8), (1.5, 4.0), {}
figure, panels = plt.subplots(1, 2, figsize=(6.2, 3), layout="constrained")
for colour, strength in zip(COLOURS, (0.2, 2.0), strict=False):
    risk = predicted(strength, ratios)
    points[strength] = [measured(strength, ratio) for ratio in shown]
    means, errors = np.transpose(points[strength], (1, 2, 0))
    for k, curve in enumerate((risk.error, risk.training_loss)):
        panels[k].plot(ratios, curve, color=colour, label=f"λ = {strength}")
        panels[k].errorbar(shown, means[k], errors[k], fmt="o", color=colour)
law = inference.state_evolution(PRIOR, OUTPUT, sample_ratio=ratios)
best = np.arccos(np.sqrt(law.overlap)) / np.pi
panels[0].plot(ratios, best, ls=":", color=COLOURS[2], label="best estimate")
for panel, name in zip(panels, ("wrong signs", "training loss"), strict=True):
    panel.set(xlabel="samples per dimension", ylabel=name)
    panel.legend(frameon=False)
plt.show()
