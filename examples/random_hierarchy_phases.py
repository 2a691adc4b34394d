r"""
Phases of a random hierarchy
============================

How many strings does a learner need to see the levels of a grammar, and how much noise on the leaves
can a grammar stand? Both have thresholds, which depend on the number m of rules of each symbol.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.plots.palette import COLOURS
from solvable.systems.registry import load

# %%
# Samples
# -------
# The synonymic sensitivity of a level is 1 where synonyms look as different as any two tuples, and 0
# where they look equal. One half is the threshold of the level. The leaves come last, near
# :math:`P^*=n_cm^L` (dashed). A learner that does not group synonyms, such as a kernel, needs a share
# of all :math:`n_cm^{(s^L-1)/(s-1)}` strings (dotted line: one tenth).

system = load("random-hierarchy")


def predicted(**parameters):
    """Return the predictions for pairs of symbols, by name."""
    return system.predict(system.parameters(branching=2, **parameters))


V, L = 32, 3
rules = np.arange(2, 17)
samples = np.geomspace(V, 1e7, 25)  # at least one string for each label
sensitivity = np.array(
    [
        [
            predicted(vocabulary=V, rules=int(m), depth=L, samples=int(n))["synonymic_sensitivity"]
            for m in rules
        ]
        for n in samples
    ]
)

figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
shade = panel.pcolormesh(rules, samples, sensitivity[:, :, -1], cmap="Blues_r", shading="nearest")
figure.colorbar(shade, label="synonymic sensitivity of the leaves")
for level in range(L):
    panel.contour(
        rules,
        samples,
        sensitivity[:, :, level],
        levels=[0.5],
        colors=COLOURS[level + 1],
        linewidths=2,
    )
    panel.plot([], [], color=COLOURS[level + 1], label=f"threshold of level {level + 1}")
panel.plot(rules, V * rules.astype(float) ** L, "k--", label="P*")
panel.plot(rules, V * rules.astype(float) ** (2**L - 1) / 10, "k:", label="a tenth of all strings")
panel.set(yscale="log", ylim=(V, 1e7), xlabel="rules of a symbol, m", ylabel="strings, N")
panel.set_title("Levels are learned one after another (V = 32, s = 2, L = 3)")
panel.legend(loc="lower right", fontsize=8)

# %%
# Noise
# -----
# Below the critical noise, exact inference finds the label of an arbitrarily deep string. With many
# rules (m above V / 2 for pairs) any noise destroys the label. With about s = 2 rules or fewer the label
# survives any noise below 1. In between there is a transition.

vocabularies = np.arange(8, 65, 8)
figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
shares = np.linspace(0.03, 1, 33)
critical = np.full((shares.size, vocabularies.size), np.nan)
for column, vocabulary in enumerate(vocabularies):
    for row, share in enumerate(shares):
        m = round(share * vocabulary)
        if m >= 2:
            grammar = predicted(vocabulary=int(vocabulary), rules=m, depth=1, task="denoising")
            critical[row, column] = grammar["critical_noise"]
shade = panel.pcolormesh(vocabularies, shares, critical, cmap="viridis", shading="nearest")
figure.colorbar(shade, label="critical noise")
panel.set(xlabel="vocabulary, V", ylabel="share of tuples that are rules, m / V")
panel.set_title("Noise up to which the label can be recovered (s = 2)")
