r"""
Double descent of random features
=================================

Ridge regression on p features :math:`\sigma(F_a\cdot x)` of d inputs with random weights F, for labels
:math:`y=x\cdot w+\sqrt\Delta\,\xi` and n = 3 d samples. The error has its peak where parameters equal
samples.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.inference import Loss, Output, Penalty, RandomFeatures, empirical_risk
from solvable.plots.palette import COLOURS

RATIO, NOISE, d, RUNS, TESTS = 3.0, 0.1, 100, 6, 1_000
OUTPUT = Output("linear", noise=NOISE)


def predicted(features, strength):
    """Errors against new labels, for numbers of features per dimension."""
    risks = [
        empirical_risk(
            Loss("square"), Penalty("l2", strength), OUTPUT, sample_ratio=RATIO,
            inputs=RandomFeatures("relu", ratio),
        )
        for ratio in features
    ]  # fmt: skip
    return np.array([risk.label_error for risk in risks])


def measured(ratio, strength):
    """Mean error over data sets, and its standard error."""
    n, p, errors = round(RATIO * d), round(ratio * d), []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        w, F = rng.standard_normal(d), rng.standard_normal((p, d))
        w *= np.sqrt(d / (w @ w))
        F *= np.sqrt(d) / np.linalg.norm(F, axis=1, keepdims=True)
        x = rng.standard_normal((n + TESTS, d)) / np.sqrt(d)
        features = np.maximum(x @ F.T, 0)
        features = (features - 1 / np.sqrt(2 * np.pi)) / np.sqrt(p)  # minus the mean E relu
        y, train = OUTPUT.draw(x @ w, rng), features[:n]
        a = np.linalg.solve(train.T @ train + strength * np.eye(p), train.T @ y[:n])
        errors.append(np.mean((features[n:] @ a - y[n:]) ** 2))
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(RUNS)


features, shown = np.sort([*np.geomspace(0.2, 12, 30), RATIO]), (0.5, 1.5, 3.0, 6.0)
curves = {strength: predicted(features, strength) for strength in (1e-3, 0.1)}
points = {strength: [measured(ratio, strength) for ratio in shown] for strength in curves}
for colour, (strength, curve) in zip(COLOURS, curves.items(), strict=False):
    plt.loglog(features, curve, color=colour, label=rf"$\lambda$ = {strength:g}")
    plt.errorbar(shown, *np.transpose(points[strength]), fmt="o", color=colour)
plt.axvline(RATIO, color="grey", lw=0.8, label="parameters = samples")
plt.axhline(NOISE, ls=":", color="grey", label="noise of the labels")
plt.xlabel("features per dimension (points: d = 100)")
plt.ylabel("error of a new label")
plt.legend(frameon=False)
plt.show()
