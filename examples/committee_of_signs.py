r"""
Specialisation of two sign units
================================

A committee of two sign units, :math:`y=\mathrm{sign}(z_1)+\mathrm{sign}(z_2)`, with Gaussian weights. At
few labels the best estimate of both weight vectors is the same vector, their mean. Above 2.05 labels per
weight of a unit the symmetry breaks and message passing finds each unit (arXiv:1806.05451: 2.04).
"""

import matplotlib.pyplot as plt
import numpy as np

from solvable.inference import SignCommittee
from solvable.plots.palette import COLOURS

committee = SignCommittee()
print(f"specialisation at {committee.specialisation:.4f} labels per weight of a unit")

# %%
# Overlaps with the own and with the other unit
# ---------------------------------------------
#
# The branches are solved for the ratio at given overlaps. Dashed: the symmetric branch, which is
# unstable above the threshold (dotted).

sums = np.linspace(0.01, 0.9, 90)
symmetric = np.array([committee.unspecialised(q) for q in sums])
differences = np.linspace(1e-4, 0.9, 60)
branch = np.array([committee.specialised(p) for p in differences])
ratio, q = branch.T

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
stable = symmetric < committee.specialisation
axes.plot(symmetric[stable], sums[stable] / 2, color="0.3", label="both, not specialised")
axes.plot(symmetric[~stable], sums[~stable] / 2, "--", color="0.6")
axes.plot(ratio, (q + differences) / 2, color=COLOURS[0], label="own unit")
axes.plot(ratio, (q - differences) / 2, color=COLOURS[1], label="other unit")
axes.axvline(committee.specialisation, color="0.5", linestyle=":")
axes.set(xlabel="labels per weight of a unit", ylabel="overlap", xlim=(0, 5), ylim=(0, 1))
axes.legend(frameon=False)
plt.show()
