r"""Layer-wise filters coupled backwards: each layer also learns what the layers above use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.learners.backlofi_network import forward_layers, propagate
from solvable.learners.backlofi_signals import SIGNALS, Signal
from solvable.learners.backlofi_steps import DROPS, Drop, PassSettings
from solvable.learners.backlofi_trainer import Outcome, Rows, train
from solvable.learners.inputs import seed_from
from solvable.learners.lofi_base import real_code, standardise_columns
from solvable.learners.lofi_blocks import LabelCode
from solvable.learners.ridge_readout import Regularisation
from solvable.operators.activations import check_activation

SCALINGS = ("columns", "global", "none")
"""How inputs are standardised."""

PREDICTION_ROWS = 4_096
"""Rows predicted at a time."""


class _BackLoFi(TransformerMixin, BaseEstimator):
    """What classifier and regressor share."""

    def __init__(
        self,
        signal: Signal = "first_order",
        *,
        depth: int = 3,
        reduce: int | Sequence[int] = 64,
        width: int | Sequence[int] = 1000,
        activation: str = "relu",
        first_moment: bool = True,
        n_passes: int = 4,
        fraction: float = 0.2,
        amplitude: float = 0.25,
        drop: Drop = "rayleigh",
        damping: float = 1.0,
        scaling: Literal["columns", "global", "none"] = "columns",
        held_back: float | int = 0.2,
        regularisation: Regularisation = "leave-one-out",
        random_state: Any = 0,
    ) -> None:
        self.signal = signal
        self.depth = depth
        self.reduce = reduce
        self.width = width
        self.activation = activation
        self.first_moment = first_moment
        self.n_passes = n_passes
        self.fraction = fraction
        self.amplitude = amplitude
        self.drop = drop
        self.damping = damping
        self.scaling = scaling
        self.held_back = held_back
        self.regularisation = regularisation
        self.random_state = random_state

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Features of the last layer.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n, p)
            What the ridge readout takes.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return propagate(self.layers_, self._scaled(X))

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        parts = []
        for start in range(0, len(X), PREDICTION_ROWS):
            features = propagate(self.layers_, self._scaled(X[start : start + PREDICTION_ROWS]))
            parts.append(features @ self.readout_.coefficients + self.readout_.intercept)
        return np.concatenate(parts)

    def _train(self, X: np.ndarray, encoded: np.ndarray, code: LabelCode) -> None:
        reduce, widths = self._sizes()
        seed = seed_from(self.random_state)
        kept, apart = self._split(encoded, code, seed)
        self.scaling_ = standardise_columns(X[kept], self.scaling)
        rows = Rows(self._scaled(X), code.weights(encoded), code.outputs(encoded))
        fitted, held_back = (
            Rows(rows.inputs[part], rows.labels[part], rows.targets[part]) for part in (kept, apart)
        )
        layers = forward_layers(
            fitted.inputs,
            fitted.labels,
            reduce=reduce,
            widths=widths,
            activation=self.activation,
            first_moment=self.first_moment,
            seed=seed,
        )
        outcome = train(
            layers,
            fitted,
            held_back,
            PassSettings(
                signal=self.signal,
                n_replaced=_replaced(
                    [int(np.sum(one.kinds == 1)) for one in layers], self.fraction
                ),
                amplitude=float(self.amplitude),
                drop=self.drop,
                damping=float(self.damping),
                seed=seed,
            ),
            int(self.n_passes),
            self.regularisation,
            _misclassified if not code.is_real else lambda outputs, targets: float("nan"),
        )
        self._keep(outcome, apart)

    def _keep(self, outcome: Outcome, apart: np.ndarray) -> None:
        self.layers_ = outcome.layers
        self.readout_ = outcome.readout
        self.history_ = outcome.history
        self.best_pass_ = outcome.best_pass
        self.stopped_reason_ = outcome.stopped_reason
        self.held_back_rows_ = apart

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return X if self.scaling_ is None else self.scaling_.apply(X)

    def _split(
        self, encoded: np.ndarray, code: LabelCode, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows to fit, and rows to watch the passes with: of every class the same part."""
        n = len(encoded)
        if not isinstance(self.held_back, (float, np.floating)):
            if self.held_back >= n - 1:
                raise InvalidParameter(
                    f"held_back is {self.held_back} rows of {n}; allowed: at most {n - 2}."
                )
            kept, apart = np.arange(n - self.held_back), np.arange(n - self.held_back, n)
        else:
            order = random_stream(seed, "held back").permutation(n)
            groups = encoded[order] if not code.is_real else np.zeros(n)
            parts = [order[groups == group] for group in np.unique(groups)]
            apart = np.sort(
                np.concatenate([part[: int(self.held_back * len(part))] for part in parts])
            )
            kept = np.setdiff1d(np.arange(n), apart)
        if not code.is_real and len(np.unique(encoded[kept])) < code.counts.size:
            raise InvalidData(
                "a class has all its rows among those held back; allowed: every class in the rows "
                "that are fitted. Shuffle the rows, or give held_back as a fraction."
            )
        return kept, apart

    def _sizes(self) -> tuple[list[int], list[int]]:
        """Check every parameter; filters and widths per layer."""
        for name, allowed in (("signal", SIGNALS), ("drop", DROPS), ("scaling", SCALINGS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise InvalidParameter(unknown_choice(name, value, allowed))
        check_activation(self.activation)
        _check_integer("depth", self.depth, 2)
        _check_integer("n_passes", self.n_passes, 0)
        _check_real("fraction", self.fraction, 0, 0.5)
        _check_real("amplitude", self.amplitude, 0, np.inf, open_below=True)
        _check_real("damping", self.damping, 0, 1, open_below=True)
        if isinstance(self.held_back, (float, np.floating)):
            _check_real("held_back", self.held_back, 0, 0.9)
        else:
            _check_integer("held_back", self.held_back, 0)
        if not isinstance(self.first_moment, (bool, np.bool_)):
            raise InvalidParameter(f"first_moment is {self.first_moment!r}; allowed: True, False.")
        return _per_layer("reduce", self.reduce, self.depth), _per_layer(
            "width", self.width, self.depth
        )


class BackLoFiClassifier(ClassifierMixin, _BackLoFi):
    r"""Classifier of filter-then-lift layers with backward coupling."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> BackLoFiClassifier:
        """Fit forwards, then couple backwards.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.
        y : array of shape (n,)
            Classes.

        Returns
        -------
        BackLoFiClassifier
            Itself.

        Raises
        ------
        InvalidParameter, InvalidData, NotConverged
            For settings out of range, data that cannot be learned from, and filters whose
            eigensolver gives up.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, encoded = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidData(f"y holds {len(self.classes_)} class; allowed: at least two classes.")
        self._train(X, encoded, LabelCode(np.bincount(encoded)))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict classes.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        outputs = self._outputs(X)
        return np.asarray(self.classes_[_chosen(outputs)])


class BackLoFiRegressor(RegressorMixin, _BackLoFi):
    r"""Regressor of filter-then-lift layers with backward coupling."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> BackLoFiRegressor:
        """Fit forwards, then couple backwards.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.
        y : array of shape (n,)
            Real labels; they are standardised.

        Returns
        -------
        BackLoFiRegressor
            Itself.

        Raises
        ------
        InvalidParameter, InvalidData, NotConverged
            For settings out of range, data that cannot be learned from, and filters whose
            eigensolver gives up.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        labels = np.asarray(y, dtype=np.float64)
        self.code_ = real_code(labels)
        self._train(X, self.code_.encode(labels), self.code_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Real labels.
        """
        outputs = self._outputs(X)[:, 0]
        return np.asarray(outputs * self.code_.deviation + self.code_.mean)


def _chosen(outputs: np.ndarray) -> np.ndarray:
    """Class numbers: by sign of one output, by the largest of several."""
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0).astype(int)
    return np.asarray(np.argmax(outputs, axis=1))


def _misclassified(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float(np.mean(_chosen(outputs) != _chosen(targets)))


def _replaced(kept: Sequence[int], fraction: float) -> tuple[int, ...]:
    """Columns replaced at each boundary: a fraction of the smaller of the filters beside it."""
    return tuple(max(1, round(fraction * min(pair))) if fraction else 0 for pair in pairwise(kept))


def _per_layer(name: str, value: Any, depth: int) -> list[int]:
    entries = list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value] * depth
    if len(entries) != depth:
        raise InvalidParameter(
            f"{name} has {len(entries)} entries; allowed: one for each of the {depth} layers of "
            "depth, or one number for all."
        )
    for entry in entries:
        _check_integer(name, entry, 1)
    return [int(entry) for entry in entries]


def _check_integer(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < least:
        raise InvalidParameter(f"{name} is {value!r}; allowed: an integer of at least {least}.")


def _check_real(
    name: str, value: Any, least: float, most: float, *, open_below: bool = False
) -> None:
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if (
        not real
        or not least <= value <= most
        or not np.isfinite(value)
        or (open_below and value == least)
    ):
        below = "above" if open_below else "from"
        raise InvalidParameter(f"{name} is {value!r}; allowed: a number {below} {least} to {most}.")
