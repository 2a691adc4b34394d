"""Blend: weighted mean of the predictions of a few methods, with weights chosen on held-out folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from solvable.learn.calibration import Calibration, held_out_probabilities
from solvable.learn.competitors import BLEND, CONSTANT, LEARNED, SIMPLEST, Method, simplest_of_best
from solvable.learn.fold_fits import Measured, outputs_of
from solvable.plots.numbers import format_number
from solvable.plots.words import listed

PARTS = 10  # weights are multiples of 1 / PARTS
MOST_MEMBERS = 3


@dataclass(frozen=True, eq=False)
class Blend:
    """Weights from all folds, and predictions of each fold with weights from the other folds."""

    weights: dict[str, float]  # weight of each method, the largest first
    fits: list[Measured]
    # mean squared error of numbers (over their variance) or probabilities on held-out folds: of the
    # blend, and of the method with the smallest one on the other folds
    squared: float
    picked: float

    @property
    def is_better(self) -> bool:
        """Return True if the blend is better than the choice of one method on the other folds."""
        # The smallest of several errors on the same rows is too small, so both are nested.
        return self.squared < self.picked

    def method(self, compared: Sequence[Method]) -> Method:
        """Return the description of the blend."""
        phrases = {method.key: method.phrase for method in compared}
        shares = listed([f"{phrases[key]} ({100 * w:.0f} %)" for key, w in self.weights.items()])
        return Method(
            BLEND,
            "blend of methods",
            f"a blend of {shares}",
            f"weighted mean of the predictions (for classes: the probabilities) of {shares}; weights "
            "are chosen on held-out folds, and each fold is predicted with weights from the others",
            lambda: None,
        )


def blend_of(
    measured: Mapping[str, Sequence[Measured]], y: np.ndarray, folds: np.ndarray, *, classes: int
) -> Blend | None:
    """Return the blend of the methods; None if a single method has all weight."""
    # `classes` is 0 for numbers.
    parts = _parts(measured, y, folds, classes)
    if len(parts) < 2:
        return None
    numbers = [fit.fold for fit in next(iter(measured.values()))]
    truth = [_truth(y[folds == fold], classes) for fold in numbers]
    # residuals of each method: arrays of shape (rows of the fold, outputs)
    off = {key: [p - t for p, t in zip(part, truth, strict=True)] for key, part in parts.items()}
    weights = weights_of({key: np.concatenate(part) for key, part in off.items()})
    if len(weights) < 2:
        return None
    fits, squares, of_picked = [], [], []
    for place, fold in enumerate(numbers):
        others = {
            key: np.concatenate([one for i, one in enumerate(part) if i != place])
            for key, part in off.items()
        }
        mixed = sum(w * parts[key][place] for key, w in weights_of(others).items())
        fits.append(_fit(np.asarray(mixed), [measured[key][place] for key in weights], fold))
        squares.append((mixed - truth[place]) ** 2)
        losses = {key: float(np.mean(one**2)) for key, one in others.items()}
        of_picked.append(off[simplest_of_best(losses)][place] ** 2)
    scale = classes or 1 / np.var(y[folds >= 0])
    squared, picked = (float(scale * np.concatenate(one).mean()) for one in (squares, of_picked))
    what = "probabilities" if classes else "predictions over the variance"
    remark = (
        f"squared error of the {what} {format_number(squared, 3)}; {format_number(picked, 3)} for the "
        "single method that is the best on the other folds"
    )
    return Blend(weights, [replace(fit, remark=remark) for fit in fits], squared, picked)


def without_chance(
    measured: Mapping[str, Sequence[Measured]], y: np.ndarray, folds: np.ndarray, *, classes: int
) -> dict[str, str]:
    """Return the methods that the first folds exclude from being recommended, each with the reason.

    Their squared error (of numbers or probabilities) is larger than the smallest by a quarter and by
    four standard errors of the difference, and they have no weight in the blend.
    """
    parts = _parts(measured, y, folds, classes)
    if not parts:
        return {}
    fits = next(iter(measured.values()))
    truth = np.concatenate([_truth(y[folds == fit.fold], classes) for fit in fits])
    off = {key: np.concatenate(part) - truth for key, part in parts.items()}
    rows = {key: np.sum(one**2, axis=1) for key, one in off.items()}
    means = {key: float(one.mean()) for key, one in rows.items()}
    best, weights = simplest_of_best(means), weights_of(off)
    found = {}
    for key in means.keys() - weights.keys() - {LEARNED, "ridge", "multi-index"}:
        gap = rows[key] - rows[best]
        error = float(gap.std(ddof=1)) / len(gap) ** 0.5
        if gap.mean() > 4 * error and means[key] > 1.25 * means[best]:
            found[key] = (
                f"stopped after {len(fits)} folds: its squared error is {means[key] / means[best]:.3g} "
                "times the smallest"
            )
    return found


def blended(
    weights: Mapping[str, float],
    measured: Mapping[str, Sequence[Measured]],
    y: np.ndarray,
    folds: np.ndarray,
    *,
    classes: int,
) -> list[Measured]:
    """Return the predictions of each fold by a blend with given weights; [] if a fit is missing."""
    parts = _parts(measured, y, folds, classes)
    if set(parts) != set(weights):
        return []
    found = []
    for place, fit in enumerate(next(iter(measured.values()))):
        mixed = sum(w * parts[key][place] for key, w in weights.items())
        fits = [measured[key][place] for key in weights]
        found.append(_fit(np.asarray(mixed), fits, fit.fold))
    return found


def weights_of(residuals: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Choose the weights of at most three methods by their residuals on held-out rows."""
    # Ensemble selection with replacement (Caruana et al. 2004): ten times, add the method with which
    # the mean has the smallest squared error. As the weights add up to 1, the error of the mean with
    # weights w is w' G w for the matrix G of mean products of residuals.
    keys = [key for key in SIMPLEST if key in residuals]
    flat = np.stack([residuals[key].reshape(-1) for key in keys])
    products = flat @ flat.T / flat.shape[1]
    counts = np.zeros(len(keys))
    for _ in range(PARTS):
        tried = counts + np.eye(len(keys))
        losses = np.einsum("ij,jk,ik->i", tried, products, tried)
        if np.count_nonzero(counts) == MOST_MEMBERS:
            losses[counts == 0] = np.inf
        counts[int(np.argmin(losses))] += 1
    order = [place for place in np.argsort(-counts, kind="stable") if counts[place]]
    return {keys[place]: float(counts[place]) / PARTS for place in order}


def fitted_blend(
    weights: Mapping[str, float],
    models: Mapping[str, Any],
    measured: Mapping[str, Sequence[Measured]],
    y: np.ndarray,
    folds: np.ndarray,
    *,
    classes: int,
    columns: int,
) -> BlendRegressor | BlendClassifier:
    """Return the blend of models that are fitted to all rows."""
    shares, members = np.array(list(weights.values())), tuple(models[key] for key in weights)
    if not classes:
        return BlendRegressor()._of(columns, members, shares, ())
    calibrations = []
    for key in weights:
        outputs = np.concatenate([np.asarray(fit.scores) for fit in measured[key]])
        codes = np.concatenate([y[folds == fit.fold] for fit in measured[key]])
        calibrations.append(Calibration.fit(outputs, codes.astype(np.int64)))
    model = BlendClassifier()._of(columns, members, shares, tuple(calibrations))
    model.classes_ = members[0].classes_
    return model


class _Blend(BaseEstimator):
    """Weighted mean of fitted models; it is put together, not fitted."""

    def _of(
        self,
        columns: int,
        members: tuple[Any, ...],
        weights: np.ndarray,
        calibrations: tuple[Calibration, ...],
    ) -> Any:
        self.members_, self.weights_, self.calibrations_ = members, weights, calibrations
        self.n_features_in_ = columns
        return self


class BlendRegressor(RegressorMixin, _Blend):
    """Weighted mean of the predicted numbers."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted numbers, shape (n,)."""
        parts = [np.asarray(one.predict(X), dtype=np.float64) for one in self.members_]
        return np.asarray(self.weights_ @ np.stack(parts))


class BlendClassifier(ClassifierMixin, _Blend):
    """Weighted mean of the calibrated probabilities."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the C classes, shape (n, C)."""
        parts = [
            calibration.probabilities(np.asarray(outputs_of(one, X)))
            for one, calibration in zip(self.members_, self.calibrations_, strict=True)
        ]
        return np.asarray(np.einsum("m,mnc->nc", self.weights_, np.stack(parts)))

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the log odds, shape (n,) of the second class of two, or (n, C) of each class."""
        return log_odds(self.predict_proba(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable class of each row, shape (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return log p / (1 - p), of the second class only if there are two."""
    inside = np.clip(probabilities, 1e-12, 1 - 1e-12)
    odds = np.log(inside / (1 - inside))
    return np.asarray(odds[:, 1] if odds.shape[1] == 2 else odds)


def _parts(
    measured: Mapping[str, Sequence[Measured]], y: np.ndarray, folds: np.ndarray, classes: int
) -> dict[str, list[np.ndarray]]:
    """Return predictions of numbers, or probabilities of classes, of each fold by each usable method."""
    found = {}
    for key, fits in measured.items():
        if key in (CONSTANT, BLEND) or not fits or any(fit.failure for fit in fits):
            continue
        if not classes:
            found[key] = [fit.predicted[:, None] for fit in fits]
            continue
        outputs = [fit.scores for fit in fits if fit.scores is not None]
        # A class that is missing in the training rows of a fold has no output there.
        shape = () if classes == 2 else (classes,)
        if len(outputs) == len(fits) > 1 and all(one.shape[1:] == shape for one in outputs):
            codes = [y[folds == fit.fold].astype(np.int64) for fit in fits]
            found[key] = held_out_probabilities(outputs, codes)
    return found


def _truth(y: np.ndarray, classes: int) -> np.ndarray:
    """Return the numbers as a column, or the indicators of the classes."""
    return np.eye(classes)[y.astype(np.int64)] if classes else y[:, None]


def _fit(mixed: np.ndarray, fits: Sequence[Measured], fold: int) -> Measured:
    """Return the fit of a blend from its mean predictions, shape (n, outputs)."""
    regression = mixed.shape[1] == 1
    return replace(
        fits[0],
        method=BLEND,
        fold=fold,
        predicted=mixed[:, 0] if regression else np.argmax(mixed, axis=1).astype(float),
        scores=None if regression else log_odds(mixed),
        seconds=sum(fit.seconds for fit in fits),
        rows=max(fit.rows for fit in fits),
        n_significant=(),
        above=(),
        model=None,
        remark="",
        attribution=None,
        unseen=None,
    )
