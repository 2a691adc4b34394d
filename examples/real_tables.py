"""
Two real tables
===============

This page compares the layer-wise spectral regressor with ridge and RBF kernel ridge regression on
tables of scikit-learn. All models use the same outer folds, and a grid search on the same inner folds.

These tables are small and close to linear. The regressor looks for quadratic features above the noise,
and a few hundred rows allow few of them. Therefore it is fitted twice: to the labels, and to the
residual of ridge regression.
"""

import warnings
from collections import Counter

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from solvable.errors import NoFeatureFound
from solvable.learners import LayerwiseSpectralRegressor

TABLES = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer}
RIDGES = np.logspace(-2, 4, 13)


def spectral_pipeline(n_components=8, **settings):
    """Pipeline of Gaussian, uncorrelated columns, as the theory assumes, and the regressor."""
    return make_pipeline(
        QuantileTransformer(n_quantiles=100, output_distribution="normal"),
        PCA(n_components=n_components, whiten=True),
        LayerwiseSpectralRegressor(linear_terms=True, random_state=0, **settings),
    )


class RidgePlusLayers(RegressorMixin, BaseEstimator):
    """Ridge regression plus the layer-wise regressor on its residual."""

    def __init__(self, degree=2, n_components=8):
        self.degree = degree
        self.n_components = n_components

    def fit(self, X, y):
        self.linear_ = make_pipeline(StandardScaler(), RidgeCV(RIDGES)).fit(X, y)
        self.layers_ = spectral_pipeline(self.n_components, degree=self.degree)
        self.layers_.fit(X, y - self.linear_.predict(X))
        return self

    def predict(self, X):
        return self.linear_.predict(X) + self.layers_.predict(X)


def models(inner):
    """Models with their grids, tuned on the same inner folds."""
    components, degrees = [4, 8], [1, 2]
    spectral = {
        "pca__n_components": components,
        "layerwisespectralregressor__degree": degrees,
    }
    forced = {
        "layerwisespectralregressor__selection": ["forced"],
        "layerwisespectralregressor__n_directions": [4],
    }
    folds = KFold(inner, shuffle=True, random_state=1)
    candidates = {
        "ridge": (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": RIDGES}),
        "RBF kernel ridge": (
            make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")),
            {
                "kernelridge__alpha": np.logspace(-3, 1, 5),
                "kernelridge__gamma": np.logspace(-4, -1, 4),
            },
        ),
        "layers": (spectral_pipeline(), [spectral, spectral | forced]),
        "ridge + layers": (RidgePlusLayers(), {"degree": degrees, "n_components": components}),
    }
    return {
        # The squared error is used for tuning and for the comparison.
        name: GridSearchCV(model, grid, cv=folds, scoring="neg_mean_squared_error")
        for name, (model, grid) in candidates.items()
    }


def errors_by_fold(X, y, *, splits, repeats, inner):
    """Squared error over the variance of y by model and fold, and counts of the chosen settings."""
    found = {name: [] for name in models(inner)}
    chosen = Counter()
    for train, test in RepeatedKFold(n_splits=splits, n_repeats=repeats, random_state=0).split(X):
        for name, model in models(inner).items():
            residual = model.fit(X[train], y[train]).predict(X[test]) - y[test]
            found[name].append(np.mean(residual**2) / y.var())
            if name == "layers":
                chosen[describe(model.best_estimator_)] += 1
    return {name: np.array(values) for name, values in found.items()}, chosen


def describe(pipeline):
    """Describe the selection of coordinates by the spectral step."""
    learner = pipeline[-1]
    kept, coordinates = learner.eigenvalues_.size, learner.directions_.shape[0]
    if kept == coordinates:
        return f"all {kept} coordinates, so no selection: a quadratic regression"
    rule = "forced" if learner.selection == "forced" else "outliers"
    return f"{kept} of {coordinates} directions ({rule})"


def mean_and_error(values, splits):
    """Mean and standard error over folds, which share training rows.

    Nadeau and Bengio (2003): the variance factor is one over the folds plus test over training rows.
    """
    return values.mean(), values.std(ddof=1) * np.sqrt(1 / values.size + 1 / (splits - 1))


def conclusion(errors, splits):
    """State the model with the lowest error, and significant gains."""
    best = min(errors, key=lambda name: errors[name].mean())
    lines = [f"lowest error: {best}"]
    for name in ("layers", "ridge + layers"):
        for other in ("ridge", "RBF kernel ridge"):
            gain, error = mean_and_error(errors[other] - errors[name], splits)
            if abs(gain) <= 2 * error:
                verdict = "no significant difference on these folds"
            else:
                verdict = f"{name if gain > 0 else other} wins"
            lines.append(f"{name} against {other}: gain {gain:+.3f} +- {error:.3f}, {verdict}")
    return lines


def features_of(X, y):
    """State the number of significant features on all rows, and the reason against the next one."""
    learner = spectral_pipeline(degree=1).fit(X, y)[-1]
    reason = learner.rejected_[0].message.split(". ")[0] if learner.rejected_ else "none"
    return f"outliers on all rows, 8 components: {learner.eigenvalues_.size}; next: {reason}"


def main(splits=5, repeats=1, inner=3):
    results = {}
    with warnings.catch_warnings():
        # NoFeatureFound is a result here and is counted below.
        warnings.simplefilter("ignore", NoFeatureFound)
        for table, load in TABLES.items():
            X, y = load(return_X_y=True)
            y = y.astype(float)
            errors, chosen = errors_by_fold(X, y, splits=splits, repeats=repeats, inner=inner)
            print(f"{table}: {X.shape[0]} rows, {X.shape[1]} columns; error / variance of y")
            for name, values in errors.items():
                print("  {:17s} {:.3f} +- {:.3f}".format(name, *mean_and_error(values, splits)))
            lines = [*conclusion(errors, splits), features_of(X, y)]
            lines += [f"layers kept {what} in {n} folds" for what, n in chosen.most_common(2)]
            print("\n".join(f"  {line}" for line in lines), end="\n\n")
            results[table] = errors
    return results


if __name__ == "__main__":
    main()
