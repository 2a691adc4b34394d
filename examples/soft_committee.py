r"""
Plateau and escape of a soft committee
======================================

Two units :math:`\mathrm{erf}(w_k\cdot x/\sqrt{2d})` learn two others, one sample at a time (Saad and
Solla 1995). The equations are exact in high dimension; the run has d = 500 and the same start.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import erf

from solvable.inference import Committee, online_sgd, symmetric_plateau
from solvable.plots.palette import COLOURS

RATE, d, TIMES = 1.0, 500, np.arange(0, 121, 3)

rng = np.random.default_rng(3)
teacher = Committee("erf", np.linalg.qr(rng.standard_normal((d, 2)))[0].T * np.sqrt(d))
student = Committee("erf", 0.3 * rng.standard_normal((2, d)))
law = online_sgd(teacher, student, RATE, round(TIMES[-1] * d))
plateau = symmetric_plateau("erf", 2, RATE)

# %%
# One run of stochastic gradient descent

w, errors, root = student.weights.copy(), [], np.sqrt(2 * d)
for _ in TIMES:
    errors.append(online_sgd(teacher, Committee("erf", w), RATE, [0]).error[0])
    for x in rng.standard_normal((3 * d, d)):
        fields, shown = w @ x / root, teacher.weights @ x / root
        step = np.exp(-(fields**2)) * (np.sum(erf(fields)) - np.sum(erf(shown)))
        w -= RATE * np.sqrt(2 / np.pi / d) * step[:, None] * x
errors = np.array(errors)

# %%
# On the plateau both students have equal overlaps with both teachers (right). Each chooses a teacher at
# the rate of the plateau, from an asymmetry proportional to :math:`d^{-1/2}`: the time of the escape
# grows like the logarithm of d.

figure, (left, right) = plt.subplots(1, 2, figsize=(6.2, 3), layout="constrained")
left.semilogy(law.time, law.error, color=COLOURS[0], label="equations")
left.semilogy(TIMES, errors, "o", ms=3, color=COLOURS[1], label="one run, d = 500")
left.axhline(plateau.error, ls=":", color="grey", label=f"plateau {plateau.error:.5f}")
left.axvline(law.escape, color="grey", lw=0.8, label=f"escape at {law.escape:.0f}")
left.set(xlabel="samples per dimension", ylabel="error")
for k, m in np.ndindex(2, 2):
    label = f"student {k + 1}, teacher {m + 1}"
    right.plot(law.time, law.R[:, k, m], color=COLOURS[2 * k + m], label=label)
right.set(xlabel="samples per dimension", ylabel="overlap")
left.legend(frameon=False)
right.legend(frameon=False)
plt.show()
