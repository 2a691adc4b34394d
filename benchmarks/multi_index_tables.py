"""Run the two-stage learner on tables of scikit-learn; print Markdown for docs/python.md.

Run:  python benchmarks/multi_index_tables.py   (a minute; the image needs Pillow)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn import datasets
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from solvable.learners import MultiIndexRegressor

Table = tuple[np.ndarray, np.ndarray]


def contrast() -> Table:
    """Return patches of 9 x 9 pixels without the centre, and its distance from the mean of the others."""
    image = datasets.load_sample_image("china.jpg").mean(axis=2) / 255
    rng = np.random.default_rng(0)
    corners = rng.integers(0, np.array(image.shape)[:, None] - 9, (2, 4_000)).T
    patches = np.stack([image[i : i + 9, j : j + 9].ravel() for i, j in corners])
    others = np.delete(patches, 40, axis=1)
    return others, np.abs(patches[:, 40] - others.mean(axis=1))


def correlated() -> Table:
    """Return correlated columns with a mean far from zero, and a target of one direction of them."""
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((15, 15)) * np.logspace(0, -2, 15)
    latent = rng.standard_normal((4_000, 15))
    return latent @ mixing.T + 100, np.abs(latent[:, 3]) + 0.3 * rng.standard_normal(4_000)


def classes(load: Callable[..., Table]) -> Table:
    X, y = load(return_X_y=True)
    return X, y.astype(float)


TABLES: dict[str, Callable[[], Table]] = {
    "diabetes": partial(datasets.load_diabetes, return_X_y=True),
    "digits, the value": partial(classes, datasets.load_digits),
    "breast cancer, 0 or 1": partial(classes, datasets.load_breast_cancer),
    "wine, 0 to 2": partial(classes, datasets.load_wine),
    "friedman1": partial(datasets.make_friedman1, 3_000, 20, noise=1.0, random_state=0),
    "friedman2": partial(datasets.make_friedman2, 1_500, noise=50.0, random_state=1),
    "friedman3": partial(datasets.make_friedman3, 1_500, noise=0.1, random_state=1),
    "contrast of image patches": contrast,
    "one direction of fifteen correlated columns": correlated,
}

METHODS = {
    "default": MultiIndexRegressor(random_state=0),
    "deflation=1": MultiIndexRegressor(deflation=1, random_state=0),
    'whiten="scale"': MultiIndexRegressor(whiten="scale", random_state=0),
    "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))),
    "forest": RandomForestRegressor(50, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(10)),
    "on directions": make_pipeline(
        MultiIndexRegressor(readout="none", random_state=0),
        StandardScaler(),
        KNeighborsRegressor(10),
    ),
}


def main() -> None:
    warnings.simplefilter("ignore")
    print("| table | rows x columns |", " | ".join(METHODS), "|")
    print("|---|---|" + "---|" * len(METHODS))
    folds = KFold(5, shuffle=True, random_state=1)
    for name, draw in TABLES.items():
        X, y = draw()
        scores = [cross_val_score(method, X, y, cv=folds).mean() for method in METHODS.values()]
        cells = " | ".join(f"{score:.2f}".replace("0.", ".") for score in scores)
        print(f"| {name} | {X.shape[0]} x {X.shape[1]} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
