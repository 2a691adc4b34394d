"""
Six phases of a weight matrix
=============================

``solvable diagnose`` distinguishes these matrices of known content: noise, noise with signals at and
above the threshold of detection, signals of all strengths with and without a power law, and a product
of thin factors. Each figure shows a spectrum and the law fitted to it.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.diagnose import diagnose_matrix
from solvable.diagnose.figures import spectrum_figure

rng = np.random.default_rng(7)
SHAPE = (200, 300)


def planted(strengths, noise=1.0):
    """Make a matrix of noise with standard deviation noise / sqrt(columns) and of given signals."""
    left = np.linalg.qr(rng.standard_normal((SHAPE[0], len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((SHAPE[1], len(strengths))))[0]
    entries = noise * rng.standard_normal(SHAPE) / SHAPE[1] ** 0.5
    return entries + (left * strengths) @ right.T


# %%
# A signal leaves the bulk when its strength exceeds :math:`\delta c^{1/4}`, with :math:`\delta` the
# noise and c the ratio of the sides: here 0.90. At 1.25 times this threshold the signal is detected in
# about half of the draws, as one that may be noise. This seed is one of these draws.

threshold = (SHAPE[0] / SHAPE[1]) ** 0.25
ranks = np.arange(1, SHAPE[0] + 1)
matrices = {
    "noise": planted([0.0]),
    "a signal at the threshold": planted([1.25 * threshold]),
    "three signals": planted([4.0, 3.0, 2.0]),
    "forty signals, some within the noise": planted(3.0 * ranks[:40] ** -0.4),
    "a power law": planted(3.0 * ranks**-0.8, noise=0.0),
    "product of thin factors": rng.standard_normal((SHAPE[0], 9))
    @ rng.standard_normal((9, SHAPE[1])),
}
found = {name: diagnose_matrix(matrix, name=name) for name, matrix in matrices.items()}
for name, row in found.items():
    print(f"{name}: {row.phase}. {row.reason}")

# %%
# Bars: singular values. Line: fitted law. Points: learned features. For spectra without a bulk the axes
# are logarithmic, where a power law is a straight line.

figure, axes = plt.subplots(3, 2, figsize=(6.2, 7.2), constrained_layout=True)
for place, (name, row) in zip(axes.flat, found.items(), strict=True):
    drawn = spectrum_figure(row)
    for one in drawn.series:
        if one.kind == "histogram":
            place.stairs(one.y, one.x, fill=True, alpha=0.35)
        else:
            style = {"line": "-", "points": "o"}[one.kind]
            place.plot(one.x, one.y, style, markersize=4, color=f"C{one.colour}")
    for marker in drawn.markers:
        place.axvline(marker.x, color="0.5", linestyle=":", linewidth=1)
    place.set(xscale=drawn.x_scale, yscale=drawn.y_scale)
    place.set_title(f"{name}:\n{row.phase}", fontsize=9)
plt.show()
