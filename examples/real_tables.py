"""
Two real tables
===============

The layer-wise spectral regressor in a scikit-learn pipeline, on tables that ship with scikit-learn,
beside ridge and RBF kernel ridge regression with the same folds and the same kind of tuning.

These tables are small and close to linear: a few hundred rows teach no quadratic feature, and the
regressor says so. It is given what a linear model leaves over, so that it can only add to it.
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from solvable.learners import LayerwiseSpectralRegressor

RIDGES = np.logspace(-3, 3, 13)


class RidgePlusLayers(RegressorMixin, BaseEstimator):
    """Ridge regression, and layer-wise spectral features of what it leaves over."""

    def __init__(self, n_directions="auto"):
        self.n_directions = n_directions

    def fit(self, X, y):
        self.linear_ = make_pipeline(StandardScaler(), RidgeCV(RIDGES)).fit(X, y)
        quantiles = min(100, len(X))
        self.layers_ = make_pipeline(
            # The theory supposes roughly Gaussian, uncorrelated inputs.
            QuantileTransformer(n_quantiles=quantiles, output_distribution="normal"),
            PCA(n_components=min(8, X.shape[1]), whiten=True),
            LayerwiseSpectralRegressor(1, n_directions=self.n_directions, random_state=0),
        ).fit(X, y - self.linear_.predict(X))
        return self

    def predict(self, X):
        return self.linear_.predict(X) + self.layers_.predict(X)


def models():
    kernel = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    grid = {
        "kernelridge__alpha": np.logspace(-3, 1, 5),
        "kernelridge__gamma": np.logspace(-4, -1, 4),
    }
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(RIDGES)),
        "RBF kernel ridge": GridSearchCV(kernel, grid, cv=5),
        "ridge + layers": RidgePlusLayers(),
    }


def errors_by_fold(X, y, repeats):
    """Squared error over the variance of the labels, for each model on the same folds."""
    import warnings

    from solvable.errors import NoFeatureFound

    found = {name: [] for name in models()}
    for train, test in RepeatedKFold(n_splits=5, n_repeats=repeats, random_state=0).split(X):
        for name, model in models().items():
            with warnings.catch_warnings():
                # Said below, once, instead of in every fold.
                warnings.simplefilter("ignore", NoFeatureFound)
                fitted = model.fit(X[train], y[train])
            residual = fitted.predict(X[test]) - y[test]
            found[name].append(np.mean(residual**2) / y.var())
    return {name: np.array(values) for name, values in found.items()}


def main(repeats=2):
    results = {}
    for name, load in (("diabetes", load_diabetes), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        errors = errors_by_fold(X, y.astype(float), repeats)
        results[name] = errors
        print(f"{name}: {X.shape[0]} rows, {X.shape[1]} columns")
        for model, values in errors.items():
            # Folds share training rows: the error is a guide, not an interval.
            spread = values.std(ddof=1) / np.sqrt(values.size)
            print(f"  {model:18s} {values.mean():.3f} +- {spread:.3f}")
        gain = errors["ridge"] - errors["ridge + layers"]
        spread = gain.std(ddof=1) / np.sqrt(gain.size)
        if abs(gain.mean()) <= 2 * spread:
            verdict = "the layers neither help nor harm within two standard errors"
        else:
            verdict = "the layers help" if gain.mean() > 0 else "the layers harm"
        best = min(errors, key=lambda model: errors[model].mean())
        print(f"  gain of the layers {gain.mean():+.3f} +- {spread:.3f}: {verdict}; best: {best}")
    return results


if __name__ == "__main__":
    main()
