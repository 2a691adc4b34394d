r"""
Phases of a quadratic network
=============================

An over-parametrised quadratic network learns :math:`(S^\star+\delta Z-b)_+`: the target plus a
semicircle of noise, cut at a threshold b. The order of b, the edge :math:`2\delta` of the noise and the
strengths of the features decides the shape of the learned spectrum and the decay of the error.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from solvable.learners import QuadraticNetRegressor
from solvable.models.quadratic.network.phase_laws import DESCRIPTIONS
from solvable.plots.palette import COLOURS
from solvable.spectra import power_law, truncated_moments
from solvable.theory import PowerLawPhases, solve_quadratic, spectral_phase

# %%
# Six spectra
# -----------
#
# Networks are trained to their global minimum on a target with strengths :math:`s_i\propto1/i` in
# d = 100 dimensions. Bars: eigenvalues of the trained network; blue: above the threshold; grey: below the
# threshold, computed from the residuals. Ticks: eigenvalues above the threshold and beyond the bulk. For
# spectra with a tail the figure shows the fraction of eigenvalues above a value. Line: theory.

D = 100
target = power_law(dimension=D, exponent=1.0)
strengths = target.nodes[::-1]

settings = {  # samples, label noise, regularisation
    "random-like": (4_000, 400.0, 6.0),
    "bleeding-out": (4_000, 60.0, 3.0),
    "bulk+spikes": (4_000, 3.0, 1.0),
    "bulk-decay": (15_000, 0.5, 0.3),
    "heavy-tailed": (15_000, 0.5, 4.5),
    "rank-collapse": (4_000, 0.5, 8.0),
}


def trained(n, noise, penalty, seed=0):
    """Compute the spectrum of a network of full width, trained on n samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    y = (X**2 @ strengths - strengths.sum()) / np.sqrt(D) + np.sqrt(noise) * rng.standard_normal(n)
    model = QuadraticNetRegressor(penalty, fit_intercept=False, tolerance=1e-4).fit(X, y)
    return model.spectrum_


def draw_density(place, state, seen, edge):
    """Draw the histogram of one network and the law; the cut is at 0."""
    delta, b = state.effective_noise, state.threshold
    low, high = -2.2 * delta - b, max(edge, 0.0) + 1.2 * delta
    step = (high - low) / 30
    bins = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)  # make 0 a bin edge
    for part, colour in ((seen[seen <= 0], "0.6"), (seen[seen > 0], COLOURS[0])):
        weights = np.full(part.size, 1 / (D * (bins[1] - bins[0])))
        place.hist(part, bins, weights=weights, color=colour, alpha=0.5)
    x = np.linspace(low, high, 600)
    place.plot(x, state.law.density(x + b), color=COLOURS[1], linewidth=1.5)
    place.axvline(0, color="0.3", linewidth=0.8)
    top = place.get_ylim()[1]
    beyond = seen[(seen > 0) & (seen > edge)]
    place.plot(beyond, np.full(beyond.size, -0.07 * top), "|", color=COLOURS[0], markersize=8)
    place.set(ylim=(-0.14 * top, top), xlim=(low, max(high, 1.06 * seen.max())))
    place.set_ylabel("density")


def draw_tail(place, state, seen):
    """Draw the fraction of eigenvalues above x, on logarithmic axes."""
    kept = np.sort(seen[seen > 0])[::-1]
    x = np.geomspace(0.5 * kept[kept.size // 2], 1.15 * kept[0], 300)
    mass = truncated_moments(state.law, x + state.threshold).mass
    # In the law each feature is a bump of mass 1 / d, half of it above its middle.
    place.loglog(kept, (np.arange(kept.size) + 0.5) / D, "o", color=COLOURS[0], markersize=3.5)
    place.loglog(x, mass, color=COLOURS[1], linewidth=1.5)
    place.set(xlim=(x[0], x[-1]), ylim=(0.3 / D, 1))
    ticks = [value for value in (0.2, 0.5, 1, 2, 5, 10) if x[0] < value < x[-1]]
    place.set_xticks(ticks, [f"{value:g}" for value in ticks])
    place.minorticks_off()
    place.set_ylabel("fraction above")


def draw_spectrum(place, n, noise, penalty):
    """Draw the law, the cut, and one trained network."""
    state = solve_quadratic(
        target, sample_ratio=n / D**2, label_noise=noise, regularisation=penalty
    )
    b, delta = state.threshold, state.effective_noise
    found = spectral_phase(effective_noise=delta, threshold=b, strengths=strengths)
    fit = trained(n, noise, penalty)
    seen = fit.eigenvalues - fit.shrinkage
    if found.phase in ("bulk-decay", "heavy-tailed"):
        draw_tail(place, state, seen)
    else:
        draw_density(place, state, seen, 2 * delta - b)
    place.set_title(
        f"{found.phase.value}: $b/2\\delta$ = {found.cut:.2f}\n{found.above_noise} above the noise, "
        f"{(seen > 0).sum()} kept (theory {state.rank_fraction * D:.0f})",
        fontsize=9.5,
    )
    return found.phase.value


figure, axes = plt.subplots(2, 3, figsize=(10.5, 5.6), constrained_layout=True)
for place, (name, setting) in zip(axes.flat, settings.items(), strict=True):
    assert draw_spectrum(place, *setting) == name
for place in axes[1]:
    place.set_xlabel("eigenvalue")
plt.show()

# %%
# Phase diagram
# -------------
#
# Nine phases in samples and regularisation at d = 10,000. At a boundary a feature crosses the noise or
# the threshold, the bulk disappears, or two laws are equal. Dashed: best regularisation.

phases = PowerLawPhases(dimension=10_000, exponent=1.0, label_noise=0.5)
samples, penalties = np.geomspace(0.3, 3e8, 60), np.geomspace(1e-4, 1e4, 56)
quarter = phases.interpolation_samples
samples = np.sort(np.append(samples, quarter * np.geomspace(0.5, 2, 13)))
names = [phase.value for phase in DESCRIPTIONS]
area = np.array([[names.index(phases.phase(n, penalty)) for n in samples] for penalty in penalties])

figure, place = plt.subplots(figsize=(8, 5), constrained_layout=True)
colours = plt.get_cmap("Pastel1")(np.arange(9))
place.pcolormesh(samples, penalties, area, cmap=ListedColormap(colours), vmin=-0.5, vmax=8.5)
few = samples[(samples > phases.plateau_samples) & (samples < phases.full_rank_samples)]
many = samples[samples > phases.full_rank_samples]
line = {"color": "0.25", "linewidth": 1.0}
place.plot(few, [phases.cut_regularisation(n) for n in few], **line)
place.plot(samples, [phases.collapse_regularisation(n) for n in samples], **line)
place.plot(many, [phases.all_kept_regularisation(n) for n in many], **line)
place.plot(many, [phases.shift_regularisation(n) for n in many], **line)
best = few[(few > 5 * phases.plateau_samples) & (few < 3e5)]
place.plot(best, [phases.optimal_regularisation(n) for n in best], "--", color=COLOURS[1])
for number, name in enumerate(names):
    rows, columns = np.nonzero(area == number)
    if rows.size:
        x, y = np.exp(np.log(samples[columns]).mean()), np.exp(np.median(np.log(penalties[rows])))
        place.text(x, y, name, ha="center", va="center", fontsize=12)
place.set(
    xscale="log",
    yscale="log",
    xlim=(samples[0], samples[-1]),
    ylim=(penalties[0], penalties[-1]),
    xlabel="effective samples n / d",
    ylabel="regularisation",
)
plt.show()

# %%
# Error along the phases
# ----------------------
#
# Points: exact solution at d = 1,000. Lines: leading law of the phase of each point, including its
# constant; the line jumps at boundaries between laws. Near the right end of VIa the error
# doubles, as every direction is learned together with its noise.

phases = PowerLawPhases(dimension=1_000, exponent=1.0, label_noise=0.5)
spectrum = power_law(dimension=1_000, exponent=1.0, heads=40, ratio=1.25)
figure, place = plt.subplots(figsize=(7, 4.6), constrained_layout=True)
for colour, penalty in zip(COLOURS, (1e-3, 0.5, 30.0), strict=False):
    coarse, fine = np.geomspace(0.5, 3e6, 13), np.geomspace(0.3, 1e7, 100)
    exact = [
        solve_quadratic(
            spectrum, sample_ratio=n / 1_000, label_noise=0.5, regularisation=penalty
        ).matrix_error
        for n in coarse
    ]
    laws = [phases.locate(n, penalty) for n in fine]
    place.loglog(coarse, exact, "o", color=colour, markersize=5)
    for name in {law.phase for law in laws}:
        here = [law.matrix_error if law.phase is name else np.nan for law in laws]
        place.loglog(fine, here, color=colour, linewidth=1.2)
    label = f"regularisation {penalty:g}"
    place.plot([], [], "o-", color=colour, markersize=5, label=label)
place.set(xlabel="effective samples n / d", ylabel="matrix error R", ylim=(1e-6, 10))
place.legend(frameon=False)
plt.show()
