r"""
When an activation is noise-sensitive
=====================================

Labels :math:`y=\sigma(\langle w,x\rangle)+\sqrt\Delta\,\xi` of an even activation depend on the direction
w only through :math:`G(y)=E[z^2-1\mid y]`, :math:`z=\langle w,x\rangle`. At large noise G is a Hermite
polynomial of the label. Its degree :math:`\beta_*` is the noise sensitivity exponent:

.. math::
    G(y)\simeq\frac{c_{\beta_*}}{\beta_*!}\Delta^{-\beta_*/2}He_{\beta_*}(y/s),\qquad
    c_\beta=E[\sigma(z)^\beta(z^2-1)].
"""

import matplotlib.pyplot as plt
import numpy as np

import solvable
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.plots.palette import COLOURS

# %%
# Information in a label
# ----------------------
#
# For he2 a large label means a large square of z and a small label a small square, which noise blurs in
# proportion. cosmix, :math:`\cos z-\frac{e^{3/2}}4\cos2z`, is constructed so that these effects cancel:
# labels of both ends have the same G, and the remaining effect is of second order. Dashed: the Hermite
# polynomial.

NOISE = 100.0

figure, panels = plt.subplots(1, 2, figsize=(6.2, 3), layout="constrained")
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
    panel.set_title(f"{name}: exponent {beta}, c = {c:.3g}", fontsize=10)
    panel.set_xlabel("label / its deviation")
    panel.legend(frameon=False)
panels[0].set_ylabel(f"information G (noise {NOISE:g})")
plt.show()

# %%
# Thresholds
# ----------
#
# Samples per dimension that the best first-order method needs (lines), and that any method needs
# (dashed), against the variance of the noise. For an exponent of 2 their ratio grows like the noise.

found = solvable.activations_of("he2", "abs", "cosmix", "he4")
found.figure("samples")
plt.show()
