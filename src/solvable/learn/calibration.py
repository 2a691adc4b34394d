"""Turn outputs of a classifier into probabilities, calibrated and judged on held-out folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Calibration:
    """Logistic function of each class's output; the results are divided by their sum over classes."""

    slopes: tuple[float, ...]  # one per class, or a single one for two classes
    intercepts: tuple[float, ...]

    @classmethod
    def fit(cls, outputs: np.ndarray, codes: np.ndarray) -> Calibration:
        """Fit the logistic functions to held-out outputs, shape (n,) or (n, C), and class codes."""
        columns = outputs[:, None] if outputs.ndim == 1 else outputs
        members = (
            [codes == 1] if outputs.ndim == 1 else [codes == c for c in range(columns.shape[1])]
        )
        lines = [_platt(one, inside) for one, inside in zip(columns.T, members, strict=True)]
        return cls(tuple(slope for slope, _ in lines), tuple(offset for _, offset in lines))

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probability of each class, shape (n, C)."""
        from scipy.special import expit

        columns = outputs[:, None] if outputs.ndim == 1 else outputs
        each = expit(columns * np.array(self.slopes) + np.array(self.intercepts))
        if outputs.ndim == 1:
            return np.column_stack([1 - each[:, 0], each[:, 0]])
        each = np.maximum(each, 1e-12)
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Calibration:
        """Create a calibration from the result of :meth:`to_dict`."""
        slopes, intercepts = (tuple(map(float, fields[name])) for name in ("slopes", "intercepts"))
        if len(slopes) != len(intercepts) or not slopes:
            raise ValueError(f"{len(slopes)} slopes and {len(intercepts)} intercepts")
        return cls(slopes, intercepts)


def _platt(output: np.ndarray, inside: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of a logistic regression on one output."""
    from sklearn.linear_model import LogisticRegression

    centre, spread = float(output.mean()), float(output.std())
    positive, n = int(inside.sum()), len(inside)
    # Targets (m + 1) / (m + 2) and 1 / (n - m + 2) instead of 1 and 0 (Platt 1999) keep the slope
    # finite for separated classes. Each row enters twice, with these weights.
    target = np.where(inside, (positive + 1) / (positive + 2), 1 / (n - positive + 2))
    if spread == 0:
        share = float(target.mean())
        return 0.0, float(np.log(share / (1 - share)))
    scaled = np.tile((output - centre) / spread, 2)[:, None]
    fitted = LogisticRegression(C=1e6, max_iter=1000)
    fitted.fit(scaled, np.repeat([1, 0], n), sample_weight=np.concatenate([target, 1 - target]))
    slope = float(fitted.coef_[0, 0]) / spread
    return slope, float(fitted.intercept_[0]) - slope * centre


@dataclass(frozen=True)
class Reliability:
    """Quality of calibrated probabilities on rows that took no part in model or calibration."""

    log_loss: float  # mean of -log p of the true class, in nats
    constant_log_loss: float  # the same with the shares of the classes in the other folds
    # mean difference between predicted probability and observed share in ten bins, and the value that
    # is expected by chance if all probabilities are right
    deviation: float
    chance: float
    calibration: Calibration  # fitted to the held-out rows of all folds, stored with the model
    # mean probability, observed share and its standard error in each of the ten bins
    bins: tuple[tuple[float, float, float], ...] = ()


def reliability_of(
    outputs: Sequence[np.ndarray], codes: Sequence[np.ndarray], classes: int
) -> Reliability | None:
    """Judge the probabilities of each fold, calibrated on the other folds; None if that is impossible."""
    if len(outputs) < 2 or any(len(np.unique(one)) < 2 for one in codes):
        return None
    shares = []
    for fold, here in enumerate(codes):
        known = np.concatenate([one for i, one in enumerate(codes) if i != fold])
        share = (np.bincount(known, minlength=classes) + 1) / (len(known) + classes)
        shares.append(np.tile(share, (len(here), 1)))
    true, predicted = (
        np.concatenate(codes),
        np.concatenate(held_out_probabilities(outputs, codes)),
    )
    deviation, chance = deviation_of(predicted, true)
    return Reliability(
        log_loss(predicted, true),
        log_loss(np.concatenate(shares), true),
        deviation,
        chance,
        Calibration.fit(np.concatenate(outputs), true),
        bins_of(predicted, true),
    )


def held_out_probabilities(
    outputs: Sequence[np.ndarray], codes: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the probabilities in each fold, calibrated on the other folds."""
    found = []
    for fold, output in enumerate(outputs):
        others = [i for i in range(len(outputs)) if i != fold]
        known = np.concatenate([codes[i] for i in others])
        fitted = Calibration.fit(np.concatenate([outputs[i] for i in others]), known)
        found.append(fitted.probabilities(output))
    return found


def log_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Return the mean of -log p of the true class."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(codes)), codes], 1e-12)).mean())


def deviation_of(probabilities: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Return the mean deviation of probabilities from observed shares, and that expected by chance."""
    stated, happened, bins = _binned(probabilities, codes)
    found = [abs(stated[rows].mean() - happened[rows].mean()) for rows in bins]
    # A normal variable of variance v has mean absolute value sqrt(2 v / pi).
    variances = [np.sum(stated[rows] * (1 - stated[rows])) / len(rows) ** 2 for rows in bins]
    weights = [len(rows) for rows in bins]
    by_chance = np.sqrt(2 / np.pi * np.array(variances))
    return float(np.average(found, weights=weights)), float(np.average(by_chance, weights=weights))


def bins_of(probabilities: np.ndarray, codes: np.ndarray) -> tuple[tuple[float, float, float], ...]:
    """Return mean probability, observed share and standard error of each of ten bins."""
    stated, happened, bins = _binned(probabilities, codes)
    return tuple(
        (
            float(stated[rows].mean()),
            float(happened[rows].mean()),
            float(happened[rows].std() / len(rows) ** 0.5),
        )
        for rows in bins
    )


def _binned(
    probabilities: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return stated probabilities, whether they happened, and ten bins with equal numbers of rows."""
    # Class 1 of two classes; the predicted class of more.
    if probabilities.shape[1] == 2:
        stated, happened = probabilities[:, 1], codes == 1
    else:
        stated, happened = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    return stated, happened, np.array_split(np.argsort(stated, kind="stable"), min(10, len(codes)))
