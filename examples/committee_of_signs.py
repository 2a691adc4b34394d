r"""
Specialisation of two sign units
================================

A committee of two sign units, :math:`y=\mathrm{sign}(z_1)+\mathrm{sign}(z_2)`, with Gaussian weights. At
few labels the best estimate of both weight vectors is the same vector, their mean. Above 2.05 labels per
weight of a unit the symmetry breaks and message passing finds each unit (arXiv:1806.05451: 2.04).
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.inference import (
    Gaussian,
    MultiIndexOutput,
    message_passing,
    state_evolution,
    thresholds,
)
from solvable.plots.palette import COLOURS

prior, output = Gaussian(), MultiIndexOutput(lambda z: np.sign(z).sum(axis=-1), directions=2)
specialisation = thresholds(prior, output).specialisation
print(f"specialisation at {specialisation:.4f} labels per weight of a unit")

# %%
# Overlaps with the own and with the other unit
# ---------------------------------------------
#
# Lines: state evolution. Points: message passing on one draw of 400 weights per unit; the dotted line is
# the threshold.

ratios = np.linspace(0.2, 5, 25)
overlap = state_evolution(prior, output, ratios).overlap

rng, d = np.random.default_rng(0), 400
seen = []
for ratio in (1.0, 3.0, 4.5):
    W = prior.draw((d, 2), rng)
    X = rng.standard_normal((int(ratio * d), d)) / np.sqrt(d)
    fit = message_passing(X, output.draw(X @ W, rng), prior, output)
    found = np.sort(np.abs(fit.estimate.T @ W / d), axis=1)
    seen.append((ratio, found[:, 1].mean(), found[:, 0].mean()))

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for k, label in enumerate(("own unit", "other unit")):
    axes.plot(ratios, overlap[:, 0, k], color=COLOURS[k], label=label)
    axes.plot(*np.array(seen)[:, [0, 1 + k]].T, "o", color=COLOURS[k])
axes.axvline(specialisation, color="0.5", linestyle=":")
axes.set(xlabel="labels per weight of a unit", ylabel="overlap", xlim=(0, 5), ylim=(0, 1))
axes.legend(frameon=False)
plt.show()
