r"""
When an activation is noise-sensitive
=====================================

Labels :math:`y=\sigma(\langle w,x\rangle)+\sqrt\Delta\,\xi` of an even activation show the direction w
through :math:`G(y)=E[z^2-1\mid y]` alone, :math:`z=\langle w,x\rangle`. In much noise G is a Hermite
polynomial of the label, of the degree :math:`\beta_*` that is the noise sensitivity exponent:

.. math:: G(y)\simeq\frac{c_{\beta_*}}{\beta_*!}\Delta^{-\beta_*/2}He_{\beta_*}(y/s),\qquad
    c_\beta=E[\sigma(z)^\beta(z^2-1)].
"""

import matplotlib.pyplot as plt
import numpy as np

import solvable
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.plots.palette import COLOURS

# %%
# What a label tells
# ------------------
#
# Of he2 a large label means a large :math:`z^2`, and a small one a small :math:`z^2`: noise blurs that in
# proportion. cosmix, :math:`\cos z-\frac{e^{3/2}}4\cos2z`, is made so that these cancel: labels of both
# ends mean the same, and what is left is of second order. Dashed: the Hermite polynomial.

NOISE = 100.0

figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for panel, name in zip(panels, ("he2", "cosmix"), strict=True):
    link = make_link(name)
    (row,) = solvable.activations_of(name).rows
    beta, c = int(row.noise_sensitivity_exponent), row.coefficient
    moments = AdditiveChannel((link,), (1.0,), NOISE).moments
    u = moments.labels / np.sqrt(NOISE + 1)
    shown = np.abs(u) < 3
    polynomial = u if beta == 1 else u**2 - 1
    law = c / (1, 1, 2)[beta] * (NOISE + 1) ** (-beta / 2) * polynomial
    panel.plot(u[shown], moments.second[shown, 0], color=COLOURS[0], label="$E[z^2-1\\,|\\,y]$")
    panel.plot(u[shown], law[shown], "--", color=COLOURS[1], label=f"Hermite, degree {beta}")
    panel.set_title(f"{name}: exponent {beta}, c = {c:.3g}")
    panel.set_xlabel("label / its deviation")
    panel.legend(frameon=False)
panels[0].set_ylabel(f"what the label tells (noise {NOISE:g})")
plt.show()

# %%
# What it costs
# -------------
#
# Samples per dimension of the best first-order method (lines) and of any method (dashed) against the
# variance of the noise. The distance between the two grows like the noise for an exponent of two.

found = solvable.activations_of("he2", "abs", "cosmix", "he4")
found.figure("samples")
plt.show()
