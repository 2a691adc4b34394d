"""
Does the diagnosis track the test error?
========================================

Networks of scikit-learn are trained on the digits at several sample sizes and weight decays. Their
weights are saved and diagnosed without data, and the results are compared with the test errors. The
diagnosis tracks the test error as the sample size changes, but not as the weight decay changes.
"""

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm, rankdata
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from solvable.diagnose import diagnose_file

SIZES = (100, 200, 400, 800)
DECAYS = (0.001, 0.1, 0.3, 1.0)
SEEDS = (0, 1)
STEPS = 200
WIDTH = 96

# %%
# Train
# -----
# Constant columns are removed, as their weights would keep their initial values.

X, y = load_digits(return_X_y=True)
X = X[:, X.std(axis=0) > 0.5] / 16
X = X - X.mean(axis=0)


def train(samples, decay, seed):
    """Train a network of two hidden layers for a number of steps; return it and its test error."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:samples], order[800:]
    model = MLPClassifier(
        (WIDTH, WIDTH),
        solver="sgd",
        alpha=decay,
        learning_rate_init=0.1,
        batch_size=100,
        max_iter=STEPS * 100 // samples,
        n_iter_no_change=STEPS,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[train], y[train])
    return model.coefs_, 1 - model.score(X[test], y[test])


networks = [(n, decay, seed) for n in SIZES for decay in DECAYS for seed in SEEDS]
arrays, errors = {}, []
for number, settings in enumerate(networks):
    weights, error = train(*settings)
    # One row per unit and single precision, as in the files of other libraries.
    arrays[f"{number}"] = weights[1].T.astype(np.float32)
    errors.append(error)
errors = np.array(errors)

# %%
# Diagnose
# --------
# The matrix between the two hidden layers of every network is diagnosed from a file, as by the command
# ``solvable diagnose networks.npz``.

with tempfile.TemporaryDirectory() as directory:
    np.savez(Path(directory) / "networks.npz", **arrays)
    rows = list(diagnose_file(Path(directory) / "networks.npz"))

print("size  decay  test error  phase        outliers  noise  p of the bulk")
for (n, decay, seed), error, row in zip(networks, errors, rows, strict=True):
    if seed == 0:
        bulk = row.bulk
        fitted = f"{bulk.n_outliers:8}  {bulk.noise:5.2f}  {bulk.p_value:13.2f}" if bulk else ""
        print(f"{n:4}  {decay:5}  {error:10.3f}  {row.phase:11}  {fitted}")

# %%
# Compare
# -------
# The results of the diagnosis are compared with the exponent of a power law that is fitted to every
# spectrum, whether or not it is a power law, as is often done.


def exponent(row):
    """Exponent of the tail of the squared singular values, fitted where the distance is smallest."""
    logs = np.log(np.sort(row.values[row.values > 0] ** 2))
    best = (np.inf, np.nan)
    for start in range(len(logs) - 20):
        above = logs[start:] - logs[start]
        rate = len(above) / above.sum()
        steps = np.arange(len(above)) / len(above)
        best = min(best, (np.abs(1 - np.exp(-rate * above) - steps).max(), 1 + rate))
    return best[1]


def overlap(row):
    """Mean squared overlap of ten directions with those of the signal; 0 for missing directions."""
    return row.bulk.spikes.short_overlap[:10].sum() / 10 if row.bulk else np.nan


MEASURES = {
    "number of outliers": lambda row: float(row.bulk.n_outliers) if row.bulk else np.nan,
    "overlap of ten features": overlap,
    "noise": lambda row: row.bulk.noise if row.bulk else np.nan,
    "stable rank": lambda row: float((row.values**2).sum() / row.values.max() ** 2),
    "exponent of the tail": exponent,
}
found = {name: np.array([measure(row) for row in rows]) for name, measure in MEASURES.items()}


def rank_correlation(values, groups):
    """Rank correlation with the test error within groups, and its 95 % interval."""
    known = np.isfinite(values)
    centred = []
    for series in (values, errors):
        ranks = np.zeros(len(series))
        for group in np.unique(groups[known]):
            inside = known & (groups == group)
            ranks[inside] = rankdata(series[inside]) - (inside.sum() + 1) / 2
        centred.append(ranks[known])
    size = np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    if size == 0:
        return np.nan, np.nan, np.nan
    rho = (centred[0] * centred[1]).sum() / size
    # Fisher's transform; each group removes one degree of freedom, and ranks widen the interval by 6 %.
    free = known.sum() - len(np.unique(groups[known])) - 2
    width = 1.03 * norm.ppf(0.975) / np.sqrt(free)
    centre = np.arctanh(np.clip(rho, -0.999, 0.999))
    return rho, np.tanh(centre - width), np.tanh(centre + width)


sizes, decays, seeds = (np.array(column) for column in zip(*networks, strict=True))
axes_of_change = {
    "more data, same decay": decays + 10 * seeds,
    "more decay, same data": sizes + 10_000 * seeds,
    "everything": np.zeros(len(networks)),
}
print("rank correlation with the test error")
print(f"{'':24}", *(f"{axis:24}" for axis in axes_of_change))
for name, values in found.items():
    cells = []
    for groups in axes_of_change.values():
        rho, low, high = rank_correlation(values, groups)
        cells.append(f"{rho:+.2f} ({low:+.2f} to {high:+.2f})")
    print(f"{name:24}", *(f"{cell:24}" for cell in cells))

# %%
# From 200 samples on there are ten outliers for ten classes, so their number carries little
# information. With more data at the same weight decay, the overlap of the ten features follows the test
# error, and so does the customary exponent. (With 150 and 300 steps instead of 200 the overlap has a
# rank correlation of -0.78 and -0.90, the exponent of 0.72 and 0.62.) With different weight decay at
# the same data, no measure follows the test error: the noise in these matrices comes from their initial
# weights, which the penalty shrinks whether or not the network improves, and every measure changes with
# the noise. So a spectrum shows how much was learned from the data. It does not show which of two
# networks with different penalties has the lower error; this requires held-out data.
#
# The intervals assume independent networks. Networks of one seed share their test rows and a part of
# their training rows, so the intervals are slightly too narrow.

figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), constrained_layout=True, sharey=True)
shown = ("number of outliers", "overlap of ten features", "exponent of the tail")
for panel, name in zip(panels, shown, strict=True):
    for number, decay in enumerate(DECAYS):
        chosen = decays == decay
        panel.scatter(found[name][chosen], errors[chosen], s=18, color=f"C{number}")
        means = [
            [series[chosen & (sizes == n)].mean() for series in (found[name], errors)]
            for n in SIZES
        ]
        panel.plot(*np.transpose(means), color=f"C{number}", label=f"weight decay {decay:g}")
    panel.set(xlabel=name, yscale="log")
panels[0].set_ylabel("test error")
panels[-1].legend(frameon=False, fontsize=8)
plt.show()
