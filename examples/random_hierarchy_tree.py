r"""
The derivation tree of a random hierarchy
=========================================

A label becomes a string in steps: level by level, each symbol is replaced by one of m tuples of s
symbols. No tuple has two parents. So a string can be parsed from its leaves up, and has one label.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.plots.palette import COLOURS, NEUTRAL
from solvable.targets import RandomHierarchy

# %%
# Draw and parse a string
# -----------------------
# The strings have eight symbols of the alphabet a, b, c, d, in three levels of pairs. ``parse`` returns
# the symbols of all levels, the label first.

target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=3, seed=1)
X, y = target.sample(1, rng=1)
levels = target.parse(X)
print(f"{target.n_strings} strings, {target.n_classes} labels")
for symbols in levels[1:]:
    print("".join("abcd"[symbol] for symbol in symbols[0]))

# %%
# Swap synonyms
# -------------
# Tuples with the same parent are synonyms. A swap replaces tuples by random synonyms, and draws what is
# below them again. All symbols above stay the same, and with them the label. On the right, the second
# tuple of level 2 was replaced; changed symbols are orange.

swapped = target.parse(target.swap_synonyms(X, level=2, rng=0, position=1))


def draw_tree(panel, levels, colour, note=None):
    """Draw the tree of one string; two functions of level and place give colours and notes of nodes."""
    for level, symbols in enumerate(levels):
        width = target.n_leaves / 2**level
        for place, symbol in enumerate(symbols[0]):
            x = (place + 0.5) * width
            if level:
                panel.plot(
                    [(place // 2 + 0.5) * 2 * width, x],
                    [1 - level, -level],
                    NEUTRAL,
                    lw=1,
                    zorder=1,
                )
            panel.scatter(x, -level, 360, color=colour(level, place), edgecolors=NEUTRAL, zorder=2)
            name = "abcd"[symbol] if level else str(symbol + 1)
            panel.text(x, -level, name, ha="center", va="center_baseline", fontsize=11, zorder=3)
            if note:
                panel.text(
                    x + 0.26, -level, note(level, place), va="center", fontsize=8, color=NEUTRAL
                )
    panel.set(yticks=range(0, -4, -1), yticklabels=["label", "level 1", "level 2", "leaves"])
    panel.set(xticks=[], xlim=(0, 8), ylim=(-3.5, 0.4))
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)


figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
draw_tree(panels[0], levels, lambda level, place: "white")
draw_tree(
    panels[1],
    swapped,
    lambda level, place: (
        COLOURS[4] if swapped[level][0, place] != levels[level][0, place] else "white"
    ),
)
panels[0].set_title("a string and its derivation")
panels[1].set_title("after a swap of synonyms")
plt.show()

# %%
# Mask leaves
# -----------
# ``posterior`` returns the exact law of every symbol when some leaves, set to -1, are hidden. On the
# left, four leaves of the string are hidden (white); numbers and shades are the probabilities of the true
# symbols. On the right, leaves are hidden from the last one to the first.

hidden = X.copy()
hidden[0, [1, 4, 6, 7]] = -1
laws = target.posterior(hidden)


def belief(level, place):
    """Probability of the true symbol of a node."""
    return float(laws[level][0, place, levels[level][0, place]])


figure, panels = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained", width_ratios=(2, 1))
shades = plt.get_cmap("Blues")
draw_tree(
    panels[0],
    levels,
    lambda level, place: (
        "white" if level == 3 and hidden[0, place] < 0 else shades(0.6 * belief(level, place))
    ),
    lambda level, place: f"{belief(level, place):.2f}",
)
panels[0].set_title("probability of the true symbols, four leaves hidden")

numbers = np.arange(9)
prefixes = np.where(np.arange(8) < 8 - numbers[:, None], X, -1)
probabilities = target.label_probabilities(prefixes)
bottom = np.zeros(9)
for label in range(4):
    name = f"label {label + 1}" + (" (true)" if label == y[0] else "")
    panels[1].bar(numbers, probabilities[:, label], bottom=bottom, color=COLOURS[label], label=name)
    bottom += probabilities[:, label]
panels[1].set(xlabel="number of hidden leaves", ylabel="probability", title="law of the label")
panels[1].legend(frameon=False, bbox_to_anchor=(1, 1), fontsize=9)
panels[1].spines[["top", "right"]].set_visible(False)
plt.show()
