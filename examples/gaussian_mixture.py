r"""
Two Gaussian classes and their Bayes error
==========================================

Inputs are :math:`x=yv/d+\sqrt{\Delta/d}\,\xi` for a label :math:`y=\pm1` and a centre v of length
:math:`\sqrt d`. No classifier that has to learn the centre errs less than
:math:`\Phi(-\sqrt{q/\Delta})`, :math:`q=\alpha/(\alpha+\Delta)`.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

from solvable.inference import GaussianMixture, Loss, Penalty, empirical_risk
from solvable.plots.palette import COLOURS

RATIO, d, RUNS = 2.0, 200, 12
CLASSES = GaussianMixture(0.5)
BAYES = CLASSES.bayes_error(RATIO)


def predicted(loss, strength):
    return empirical_risk(Loss(loss), Penalty("l2", strength), CLASSES, sample_ratio=RATIO).error


def measured(strength):
    """Mean error of logistic regression over data sets, and its standard error."""
    errors = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        v, y = rng.standard_normal(d), rng.choice([-1.0, 1.0], round(RATIO * d))
        v *= np.sqrt(d / (v @ v))
        noise = rng.standard_normal((y.size, d))
        X = y[:, None] * v / d + np.sqrt(CLASSES.variance / d) * noise
        model = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-8, max_iter=1_000)
        w = model.fit(X, y).coef_[0]
        errors.append(ndtr(-(w @ v) / np.sqrt(d * CLASSES.variance * (w @ w))))
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(RUNS)


# %%
# Under a strong penalty the weights of every loss point to the mean of the inputs times their labels,
# which is the best estimate: all curves end at the Bayes error.

strengths, shown = np.geomspace(1e-2, 1e3, 12), (0.05, 1.0, 20.0)
curves = {
    loss: np.array([predicted(loss, strength) for strength in strengths])
    for loss in ("square", "logistic", "hinge")
}
points = [measured(strength) for strength in shown]
for colour, (loss, errors) in zip(COLOURS, curves.items(), strict=False):
    plt.semilogx(strengths, errors, color=colour, label=loss)
plt.errorbar(
    shown, *np.transpose(points), fmt="o", color=COLOURS[1], label=f"scikit-learn, d = {d}"
)
plt.axhline(BAYES, ls=":", color="grey", label=f"Bayes error {BAYES:.4f}")
plt.gca().set(xlabel=r"penalty $\lambda$", ylabel="share of wrong labels")
plt.legend(frameon=False)
plt.show()
