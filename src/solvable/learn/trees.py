"""Gradient-boosted trees, tuned on the training rows at a bounded cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.learn.folds import deal_folds
from solvable.learn.tree_arrays import TreeArrays


class Setting(NamedTuple):
    """Settings of the trees."""

    leaves: int  # number of leaves per tree
    least: int  # smallest number of rows in a leaf
    share: float = 1.0  # share of the columns that each split compares, drawn at random


class Effort(NamedTuple):
    """Settings of the tuning; a costly tuning is reduced."""

    rows: int  # largest number of rows that are fitted
    settings: tuple[Setting, ...]  # settings that are compared
    rate: float  # learning rate
    patience: int  # number of trees without gain after which fitting stops
    folds: int  # number of folds whose models are averaged; 1 holds out a fifth of the rows
    word: str  # remark about reduced tuning; empty for full tuning


def effort_for(rows: int, columns: int, outputs: int) -> Effort:
    """Choose settings by the numbers of rows, columns and outputs; full tuning if it takes seconds."""
    # Measured on one core: a step with n rows, d columns and k trees of l leaves takes about
    # 1e-8 n d k + 1e-6 l d k seconds. A fit usually takes 100 steps at a rate of 0.1.
    per_leaf = 1e-6 * columns * outputs
    per_step = 1e-8 * rows * columns * outputs
    if columns * outputs > 60_000:
        raise InvalidData(
            f"not fitted: trees on {columns} columns for {outputs} outputs would take more than a minute "
            "per fold; allowed: 60000 columns times outputs"
        )
    # On eleven tables of 90 to 300 rows, the mean of the models of three folds with these settings has
    # a smaller error than one model tuned on two held-out fifths on eight, a larger one on two.
    few_rows, folds = 2000, 3
    full: tuple[Setting, ...] = (
        Setting(3, 5),
        Setting(8, 20),
        Setting(8, 2, 0.5),
        Setting(31, 5, 0.5),
    )
    # scikit-learn's default of 20 rows per leaf is too large for tables of a hundred rows.
    least = int(np.clip(rows // 50, 3, 20))
    if rows >= few_rows:
        full, folds = tuple(Setting(leaves, least) for leaves in (3, 8, 31)), 1
    leaves = sum(setting.leaves for setting in full)
    if 100 * folds * (len(full) * per_step + leaves * per_leaf) < 4:
        return Effort(rows, full, 0.1, 15 if folds > 1 else 10, folds, "")
    if 30 * (2 * per_step + (8 + 31) * per_leaf) < 10:
        word = "two sizes of trees and a learning rate of 0.3, to save time"
        return Effort(rows, (Setting(8, least), Setting(31, least)), 0.3, 5, 1, word)
    word = "trees of 16 leaves and a learning rate of 0.3, only their number tuned, to save time"
    most = min(rows, 40_000_000 // (columns * outputs))
    return Effort(most, (Setting(16, least),), 0.3, 5, 1, word)


class _Trees(BaseEstimator):
    """Boosted trees; held-out training rows choose the settings and the number of the trees."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray | None) -> None:
        outputs = 1 if classes is None or classes.max() < 2 else int(classes.max()) + 1
        effort = effort_for(len(y), X.shape[1], outputs)
        order = random_stream(self.seed, "rows of the trees").permutation(len(y))
        some = np.sort(order[: effort.rows])
        self.rows_, self.remark_ = len(some), effort.word
        X, y = X[some], y[some]
        held_out = _held_out(effort.folds, None if classes is None else y, len(y), self.seed)
        tried: dict[Setting, list[tuple[float, int, Any]]] = {one: [] for one in effort.settings}
        left = list(effort.settings)
        for part, held in enumerate(held_out):
            for setting in left:
                tried[setting].append(self._tried(X, y, held, effort, setting))
            sums = {one: sum(loss for loss, *_ in tried[one]) for one in left}
            # A setting this much worse than the best so far is fitted to no further part: on eight
            # tables, this saves a quarter of the time without a change of the error.
            most = (1.25 if part else 1.5) * min(sums.values())
            left = [one for one in left if sums[one] <= most]
        self.setting_ = min(left, key=lambda one: sums[one])
        steps = round(float(np.mean([number for _, number, _ in tried[self.setting_]])))
        self.models_ = [model for *_, model in tried[self.setting_]]
        if effort.folds == 1 and len(effort.settings) > 1:
            model = self._model(effort, self.setting_)
            model.set_params(max_iter=steps, early_stopping=False)
            self.models_ = [model.fit(X, y)]

    def _tried(
        self, X: np.ndarray, y: np.ndarray, held: np.ndarray, effort: Effort, setting: Setting
    ) -> tuple[float, int, Any]:
        """Return the smallest held-out loss, the number of trees that gives it, and the model."""
        model = self._model(effort, setting)
        model.fit(X[~held], y[~held], X_val=X[held], y_val=y[held])
        # The first score belongs to the model without trees.
        steps = max(int(np.argmax(model.validation_score_)), 1)
        return -float(np.max(model.validation_score_)), steps, model

    def _raw(self, X: np.ndarray) -> np.ndarray:
        """Return the sum of the trees, shape (n, C), with C = 1 for numbers and two classes."""
        raw = [
            model(X)
            if isinstance(model, TreeArrays)
            else getattr(model, "decision_function", model.predict)(X).reshape(len(X), -1)
            for model in self.models_
        ]
        return np.asarray(np.mean(raw, axis=0), dtype=np.float64)

    def as_arrays(self) -> TreeArrays:
        """Return the fitted trees as arrays."""
        return TreeArrays.mean(
            [one if isinstance(one, TreeArrays) else TreeArrays.of(one) for one in self.models_]
        )

    def _model(self, effort: Effort, setting: Setting) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier as Classifier
        from sklearn.ensemble import HistGradientBoostingRegressor as Regressor

        return (Regressor if isinstance(self, RegressorMixin) else Classifier)(
            learning_rate=effort.rate,
            max_iter=500,
            max_leaf_nodes=setting.leaves,
            min_samples_leaf=setting.least,
            max_features=setting.share,
            l2_regularization=float(effort.folds > 1),
            early_stopping=True,
            n_iter_no_change=effort.patience,
            tol=1e-3 if effort.folds == 1 else 0.0,
            random_state=self.seed % 2**32,
        )


def _held_out(folds: int, classes: np.ndarray | None, rows: int, seed: int) -> list[np.ndarray]:
    """Return masks of held-out rows, classes in proportion; no class is held out completely."""
    dealt = deal_folds(5 if folds == 1 else folds, np.arange(rows), classes, seed=seed)
    masks = [dealt == fold for fold in range(folds)]
    if classes is not None:
        masks = [held & np.isin(classes, classes[~held]) for held in masks]
    return masks


class TreesRegressor(RegressorMixin, _Trees):
    """Boosted trees for a numeric target."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TreesRegressor:
        """Choose the size and number of trees, then fit all rows."""
        # The target is standardised, as the tolerance of early stopping is absolute.
        self.mean_, self.deviation_ = float(np.mean(y)), float(np.std(y)) or 1.0
        self._fit(X, (np.asarray(y, dtype=np.float64) - self.mean_) / self.deviation_, None)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted numbers, shape (n,)."""
        return np.asarray(self.mean_ + self.deviation_ * self._raw(X)[:, 0])


class TreesClassifier(ClassifierMixin, _Trees):
    """Boosted trees for classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TreesClassifier:
        """Choose the size and number of trees, then fit all rows."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._fit(X, codes, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted classes, shape (n,)."""
        raw = self._raw(X)
        places = (raw[:, 0] > 0).astype(int) if raw.shape[1] == 1 else np.argmax(raw, axis=1)
        return np.asarray(self.classes_[places])

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the log odds, shape (n,) of the second class of two, or (n, C) of each class."""
        from scipy.special import logsumexp

        raw = self._raw(X)
        if raw.shape[1] == 1:
            return raw[:, 0]
        # log p_c / (1 - p_c) with p = softmax(raw)
        others = [logsumexp(np.delete(raw, c, axis=1), axis=1) for c in range(raw.shape[1])]
        return np.asarray(raw - np.stack(others, axis=1))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the estimated probabilities of the C classes, shape (n, C)."""
        from scipy.special import expit, softmax

        raw = self._raw(X)
        if raw.shape[1] == 1:
            return np.concatenate([expit(-raw), expit(raw)], axis=1)
        return np.asarray(softmax(raw, axis=1))
