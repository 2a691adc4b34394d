"""
A head that predicts its own test error
=======================================

A quadratic head is fitted to twenty principal components of digits, odd against even. Its spectral
cross-validation predicts the error on fresh images from the training images, and chooses the
regularisation without held-back images.

Left: predicted and real error against the number of images. Right: error against the regularisation at
500 images, with the regularisation that the prediction chooses and the best one for the test images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from solvable.learners import QuadraticNetRegressor

SIZES = (300, 500, 800, 1300)
STRENGTHS = np.geomspace(0.02, 5, 8)


def errors(n, seed, strengths):
    """Predicted and real squared error at each regularisation, and at the chosen one."""
    X, y = load_digits(return_X_y=True)
    y = 2.0 * (y % 2) - 1
    rows = np.random.default_rng(seed).permutation(len(X))
    train, test = rows[:n], rows[n:]
    features = PCA(20, random_state=0).fit(X[train]).transform(X)

    def fitted(strength):
        model = QuadraticNetRegressor(strength, whiten=True, tolerance=1e-4)
        model.fit(features[train], y[train])
        real = np.mean((model.predict(features[test]) - y[test]) ** 2)
        return model.gcv_score_, real, model.regularisation_

    return np.array([fitted(strength)[:2] for strength in strengths]), fitted("gcv")


def mean_and_error(values):
    """Mean and standard error over splits; a lower bound of the error, as training sets overlap."""
    return np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def over_sizes(axis, splits):
    """Draw predicted and real error of the chosen head; return their ratio by size."""
    found = np.array(
        [[errors(n, seed, [])[1][:2] for n in SIZES] for seed in range(splits)]
    )  # split, size, (predicted, real)
    for column, name in enumerate(("predicted from training images", "real, on the others")):
        mean, spread = mean_and_error(found[:, :, column])
        axis.errorbar(SIZES, mean, spread, marker="o", capsize=3, label=name)
    axis.set(xlabel="training images", ylabel="squared error")
    axis.set_title("regularisation chosen by the prediction")
    axis.set_ylim(0)
    axis.legend()
    return mean_and_error(found[:, :, 0] / found[:, :, 1])


def over_regularisation(axis, splits, n=500):
    """Draw the errors against regularisation; return the chosen error over the lowest one."""
    runs = [errors(n, seed, STRENGTHS) for seed in range(splits)]
    curves = np.array([curve for curve, _ in runs])
    for column, name in enumerate(("predicted", "real")):
        mean, spread = mean_and_error(curves[:, :, column])
        axis.errorbar(STRENGTHS, mean, spread, marker="o", capsize=3, label=name)
    chosen = np.exp(np.mean(np.log([choice[2] for _, choice in runs])))
    best = STRENGTHS[np.argmin(np.mean(curves[:, :, 1], axis=0))]
    axis.axvline(chosen, color="C0", linestyle="--", label="chosen, no image held back")
    axis.axvline(best, color="C1", linestyle=":", label="best for the test images")
    axis.set(xscale="log", xlabel="regularisation", ylabel="squared error", title=f"{n} images")
    axis.legend()
    excess = [choice[1] / np.min(curve[:, 1]) for curve, choice in runs]
    return mean_and_error(np.array(excess))


def main(splits=5):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    ratios, spreads = over_sizes(left, splits)
    excess = over_regularisation(right, splits)
    figure.tight_layout()
    for n, ratio, spread in zip(SIZES, ratios, spreads, strict=True):
        print(f"{n:5d} images: predicted over real error {ratio:.3f} +- {spread:.3f}")
    print("chosen over best possible error at 500: {:.3f} +- {:.3f}".format(*excess))
    return (ratios, spreads), excess


if __name__ == "__main__":
    main()
    plt.show()
